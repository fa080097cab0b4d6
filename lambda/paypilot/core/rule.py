"""What any published table says of a failure code, whatever kind of table it is."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class InvalidTable(ValueError):
    """A document that must not answer: the message names the row and what is wrong with it."""


class Rule(NamedTuple):
    """The row that answers for a failure code.

    `retry_in_days` is whole days of 24 hours, or None for never. `matched` is false where the table doesn't list the
    code and its default answers. `rules_version` is the table's digest. `rail` is what a bank debit's table says of the
    return code, and None for a card's failure.
    """

    rule: str
    matched: bool
    action: str
    tone: str
    retry_in_days: int | None
    rules_version: str
    rail: Mapping[str, Any] | None = None


class NotACode(NamedTuple):
    """The table is known, and the code isn't of its form. `detail` says what is."""

    detail: str


class TableRefuses(NamedTuple):
    """The table is published and answers nothing. `why` is its own account of that."""

    detail: str
    why: Mapping[str, Any]
