"""The published tables, and what makes a table valid."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paypilot.rules
from paypilot.core.ruleset import InvalidRuleset, load_ruleset
from paypilot.rules import CURRENT, current_ruleset, published_rulesets

FOLDER = Path(paypilot.rules.__file__).parent
DOCUMENT: dict[str, Any] = json.loads((FOLDER / CURRENT).read_bytes())

# A published table is never edited: its digest is on every decision that it made.
PUBLISHED = {"2026-12-01.json": "sha256:d6badfff776b6bc3f2314607dd831de7d217b70531fe0cac7f0e34323cd5abe8"}


def test_every_published_table_keeps_its_digest() -> None:
    versions = {path.name: load_ruleset(json.loads(path.read_bytes())).version for path in FOLDER.glob("*.json")}
    assert versions == PUBLISHED
    assert set(published_rulesets()) == set(PUBLISHED.values())
    assert current_ruleset().version == PUBLISHED[CURRENT]


def test_the_digest_is_of_the_table_and_not_of_how_it_is_written() -> None:
    rewritten = json.loads(json.dumps(dict(reversed(DOCUMENT.items())), indent=4))
    assert load_ruleset(rewritten).version == current_ruleset().version


def test_another_why_is_another_table() -> None:
    changed = copy.deepcopy(DOCUMENT)
    changed["rules"][0]["why"] += " "
    assert load_ruleset(changed).version != current_ruleset().version


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
    with pytest.raises(InvalidRuleset, match=message):
        load_ruleset(document)
