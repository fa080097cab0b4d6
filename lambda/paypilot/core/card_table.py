"""The card table: its shape and what makes it valid.

It answers for the same payment instrument, later. A table for another processor, right now, reads differently.
"""

from collections.abc import Mapping
from typing import Any

from paypilot.core.canonical import canonical_json, digest
from paypilot.core.rule import InvalidTable, Rule

DEFAULT_RULE = "default"

RETRYING_ACTIONS = frozenset({"retry_and_verify", "wait_and_retry"})
ACTIONS = RETRYING_ACTIONS | {"request_card_update", "request_manual_payment", "request_new_payment_method"}
TONES = frozenset({"calm_helpful", "friendly_routine", "plain_no_blame", "soft_no_pressure"})

_DOCUMENT_KEYS = {"table", "published", "question", "rules"}
_ROW_KEYS = {"rule", "retry_in_days", "action", "tone", "why", "source"}


class CardTable:
    """A checked table. `version` is the digest of the whole document's canonical form, why and source included.

    Raises `InvalidTable` if a key is missing or unknown, a rule is named twice (its second row could never be
    reached), there is no default, or a value is outside what a decision may say.
    """

    name = "card"

    def __init__(self, document: Mapping[str, Any]) -> None:
        if document.keys() != _DOCUMENT_KEYS:
            raise InvalidTable(f"a card table has exactly the keys {sorted(_DOCUMENT_KEYS)}")
        self.document = document
        self.published: str = document["published"]
        self.rows: dict[str, Mapping[str, Any]] = {}
        for row in document["rules"]:
            _check(row)
            if row["rule"] in self.rows:
                raise InvalidTable(f"rule {row['rule']!r} is listed twice: its second row can never be reached")
            self.rows[row["rule"]] = row
        if DEFAULT_RULE not in self.rows:
            raise InvalidTable("a card table has one default rule")
        self.version = digest(canonical_json(document))
        self.rules = {name: self._rule(row) for name, row in self.rows.items() if name != DEFAULT_RULE}
        self.default = self._rule(self.rows[DEFAULT_RULE])

    def rule(self, failure_code: str, attempt: int) -> Rule:
        """The rule of that name, or the default, whatever the attempt."""
        return self.rules.get(failure_code, self.default)

    def _rule(self, row: Mapping[str, Any]) -> Rule:
        name = row["rule"]
        return Rule(name, name != DEFAULT_RULE, row["action"], row["tone"], row["retry_in_days"], self.version)


def _check(row: Mapping[str, Any]) -> None:
    if row.keys() != _ROW_KEYS:
        raise InvalidTable(f"a rule has exactly the keys {sorted(_ROW_KEYS)}: {row.get('rule')!r} has not")
    where, days = f"rule {row['rule']!r}", row["retry_in_days"]
    if days is not None and not (type(days) is int and days >= 1):
        raise InvalidTable(f"{where}: retry_in_days is a whole number of days from 1, or null")
    if days is None and row["action"] in RETRYING_ACTIONS:
        raise InvalidTable(f"{where}: its action retries and its retry_in_days says never")
    if row["action"] not in ACTIONS or row["tone"] not in TONES:
        raise InvalidTable(f"{where}: unknown action or tone")
    if not row["why"] or not row["source"]:
        raise InvalidTable(f"{where} gives no why or no source")
