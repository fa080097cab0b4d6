"""The published tables: which one answers for a failure code, and any that ever answered by its digest.

A table is a document of one name and one day. The newest of a name answers now. One that answered is never edited: a
change is a document of another day, so that a recorded decision can be replayed.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from paypilot.core.card_table import CardTable
from paypilot.core.rail_table import RailTable
from paypilot.core.rule import InvalidTable, NotACode, Rule, TableRefuses

CARD = "card"
Document = Mapping[str, Any]
Table = CardTable | RailTable
Kind = TypeVar("Kind", CardTable, RailTable)


class NoTable(NamedTuple):
    """No table of the name that was asked for."""

    detail: str


class Tables:
    """`documents` reads each published document, by its name and day: `card-2026-12-01`.

    A document is read and checked when it is first needed. Reading raises `InvalidTable` rather than answer from a
    table that isn't whole, or isn't the one that its key says.
    """

    def __init__(self, documents: Mapping[str, Callable[[], Document]]) -> None:
        self._documents = documents
        self._read: dict[str, Table] = {}
        # A later day of a name replaces an earlier one: days sort as text.
        self._current = {key[:-11]: key for key in sorted(documents)}
        self.rail_names = [name for name in self._current if name != CARD]

    @property
    def card(self) -> CardTable:
        """The card table that answers now."""
        return self._table(self._current[CARD], CardTable)

    @property
    def rails(self) -> list[RailTable]:
        """The tables of all rails that answer now, by name."""
        return [self._rail(name) for name in self.rail_names]

    def rail(self, name: str) -> RailTable | NoTable:
        """The table of a rail that answers now."""
        if name not in self.rail_names:
            return NoTable(f"The rails are {', '.join(self.rail_names)}.")
        return self._rail(name)

    @cached_property
    def versions(self) -> dict[str, Table]:
        """Every table that ever answered, by its digest."""
        every: list[Table] = []
        for key in self._documents:
            every.append(self._table(key, CardTable) if key[:-11] == CARD else self._table(key, RailTable))
        return {table.version: table for table in every}

    def rule(self, failure_code: str, attempt: int) -> Rule | NotACode | TableRefuses:
        """The rule that answers for `failure_code` after `attempt` failures."""
        name = self.name_for(failure_code)
        if isinstance(name, NotACode):
            return name
        return self.card.rule(failure_code, attempt) if name == CARD else self._rail(name).rule(failure_code, attempt)

    def name_for(self, failure_code: str) -> str | NotACode:
        """The name of the table that `failure_code` is meant for.

        A rail is named before a colon, as in `ach:R01`. Its name in other letters (`ACH:R01`) is not a code: it is
        meant for the rail, and the card table's default would answer for it.
        """
        name, colon, _ = failure_code.partition(":")
        if not colon or name.lower() not in self.rail_names:
            return CARD
        if name not in self.rail_names:
            return NotACode(f"Write the rail's name in lower case: {', '.join(self.rail_names)}.")
        return name

    def _rail(self, name: str) -> RailTable:
        return self._table(self._current[name], RailTable)

    def _table(self, key: str, kind: type[Kind]) -> Kind:
        table = self._read.get(key)
        if table is None:
            table = kind(self._documents[key]())
            if f"{table.name}-{table.published}" != key:
                raise InvalidTable(f"{key} holds the table {table.name} of {table.published}")
            self._read[key] = table
        assert isinstance(table, kind)
        return table
