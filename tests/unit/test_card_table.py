"""The card tables that are published, and what makes one valid."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from paypilot.core.card_table import CardTable
from paypilot.core.rule import InvalidTable
from paypilot.tables import published_tables

CARD = published_tables().card
DOCUMENT: dict[str, Any] = copy.deepcopy(dict(CARD.document))


def test_the_digest_is_of_the_table_and_not_of_how_it_is_written() -> None:
    rewritten = json.loads(json.dumps(dict(reversed(DOCUMENT.items())), indent=4))
    assert CardTable(rewritten).version == CARD.version


def test_another_why_is_another_table() -> None:
    changed = copy.deepcopy(DOCUMENT)
    changed["rules"][0]["why"] += " "
    assert CardTable(changed).version != CARD.version


def drop_default(document: dict[str, Any]) -> None:
    document["rules"] = [rule for rule in document["rules"] if rule["rule"] != "default"]


def repeat_a_rule(document: dict[str, Any]) -> None:
    document["rules"].append(dict(document["rules"][0]))


def set_on_first_rule(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["rules"][0].__setitem__(key, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_default, "one default"),
        (repeat_a_rule, "twice"),
        (lambda document: document.pop("question"), "exactly the keys"),
        (lambda document: document.update(extra=1), "exactly the keys"),
        (lambda document: document["rules"][0].pop("why"), "exactly the keys"),
        (set_on_first_rule("note", "x"), "exactly the keys"),
        (set_on_first_rule("retry_in_days", 0), "whole number"),
        (set_on_first_rule("retry_in_days", True), "whole number"),
        (set_on_first_rule("retry_in_days", 1.0), "whole number"),
        (set_on_first_rule("action", "charge_at_once"), "unknown action"),
        (set_on_first_rule("tone", "angry"), "unknown action or tone"),
        (set_on_first_rule("why", ""), "no why"),
        (set_on_first_rule("source", ""), "no why or no source"),
        (lambda document: document["rules"][1].update(retry_in_days=None), "says never"),
    ],
)
def test_a_table_that_is_not_whole_does_not_decide(change: Callable[[dict[str, Any]], object], message: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    change(document)
    with pytest.raises(InvalidTable, match=message):
        CardTable(document)
