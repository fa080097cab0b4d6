"""How the programs of scripts/ read their arguments, and how they end where nobody reads what they print."""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence

from paypilot import __version__

STANDARD_OUTPUT = 1


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


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """End quietly, after the block has cleaned up, where the reader of standard output has gone."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left to write has no reader, and Python would say so at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), STANDARD_OUTPUT)
        sys.exit(128 + signal.SIGPIPE)
