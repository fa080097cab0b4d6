"""A rules table: its shape, what makes it valid, and its digest.

A table answers for the same payment instrument, later. A table for another processor, right now, reads
differently.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from paypilot.core.canonical import canonical_json, digest

DEFAULT_RULE = "default"

ACTIONS = frozenset(
    {
        "request_card_update",
        "request_manual_payment",
        "request_new_payment_method",
        "retry_and_verify",
        "wait_and_retry",
    }
)
RETRYING_ACTIONS = frozenset({"retry_and_verify", "wait_and_retry"})
TONES = frozenset({"calm_helpful", "friendly_routine", "plain_no_blame", "soft_no_pressure"})

_DOCUMENT_KEYS = {"table", "published", "question", "rules"}
_RULE_KEYS = {"rule", "retry_in_days", "action", "tone", "why", "source"}


class InvalidRuleset(ValueError):
    """A table that must not decide: the message names the row and what is wrong with it."""


class Rule(NamedTuple):
    """One row. `retry_in_days` is whole days of 24 hours, or None for never."""

    name: str
    retry_in_days: int | None
    action: str
    tone: str
    why: str
    source: str


class Ruleset(NamedTuple):
    """A checked table. `version` is the digest of the whole document's canonical form, why and source included."""

    rules: Mapping[str, Rule]
    default: Rule
    version: str


def load_ruleset(document: Mapping[str, Any]) -> Ruleset:
    """Check a published table (the parsed JSON document) and return it.

    Raises `InvalidRuleset` if a key is missing or unknown, a rule is named twice (its second row could never be
    reached), there is no default, or a value is outside what a decision may say.
    """
    if document.keys() != _DOCUMENT_KEYS:
        raise InvalidRuleset(f"a table has exactly the keys {sorted(_DOCUMENT_KEYS)}")
    rules: dict[str, Rule] = {}
    for row in document["rules"]:
        if row.keys() != _RULE_KEYS:
            raise InvalidRuleset(f"a rule has exactly the keys {sorted(_RULE_KEYS)}: {row.get('rule')!r} has not")
        name, days = row["rule"], row["retry_in_days"]
        if name in rules:
            raise InvalidRuleset(f"rule {name!r} stands twice: its second row can never be reached")
        if days is not None and not (type(days) is int and days >= 1):
            raise InvalidRuleset(f"rule {name!r}: retry_in_days is a whole number of days from 1, or null")
        if days is None and row["action"] in RETRYING_ACTIONS:
            raise InvalidRuleset(f"rule {name!r}: its action retries and its retry_in_days says never")
        if row["action"] not in ACTIONS or row["tone"] not in TONES:
            raise InvalidRuleset(f"rule {name!r}: unknown action or tone")
        if not row["why"] or not row["source"]:
            raise InvalidRuleset(f"rule {name!r} gives no why or no source")
        rules[name] = Rule(name, days, row["action"], row["tone"], row["why"], row["source"])
    default = rules.pop(DEFAULT_RULE, None)
    if default is None:
        raise InvalidRuleset("a table has one default rule")
    return Ruleset(rules, default, digest(canonical_json(document)))
