"""What people run, and the rooms behind it: README.md has a line for each."""
