"""What people run, and the rooms behind it: the README of each room says what is in it."""
