"""How the programs of scripts/ read their arguments."""

import argparse
from collections.abc import Sequence

from paypilot import __version__


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows --help, which shows `description` as it is, and --version."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    made.add_argument("--version", action="version", version=f"PayPilot {__version__}")
    return made


def words(description: str | None, *names: str) -> Sequence[str]:
    """The arguments of a program that another one of this folder starts: a word for each of `names`."""
    reader = parser(description)
    for name in names:
        reader.add_argument(name)
    read = reader.parse_args()
    return [getattr(read, name) for name in names]
