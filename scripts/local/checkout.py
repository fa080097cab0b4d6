"""This checkout: where it is, and which commit."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def commit() -> str:
    """The commit, with "-dirty" where the checkout differs from it; or "unknown" where git or a repository isn't."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        described = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown"
    return described.stdout.strip() or "unknown"
