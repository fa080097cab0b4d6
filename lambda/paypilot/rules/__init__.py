"""The published tables. A table that decided once is never edited: a change is a new file beside it."""

import json
from pathlib import Path

from paypilot.core.ruleset import Ruleset, load_ruleset

CURRENT = "2026-12-01.json"


def published_rulesets() -> dict[str, Ruleset]:
    """Every table that ever decided, by its version, so that a recorded decision can be replayed."""
    rulesets = [_load(path) for path in sorted(Path(__file__).parent.glob("*.json"))]
    return {ruleset.version: ruleset for ruleset in rulesets}


def current_ruleset() -> Ruleset:
    """The table that decides now. Raises `InvalidRuleset` rather than decide by a table that isn't whole."""
    return _load(Path(__file__).parent / CURRENT)


def _load(path: Path) -> Ruleset:
    return load_ruleset(json.loads(path.read_bytes()))
