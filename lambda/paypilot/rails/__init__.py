"""The published rail tables. One that answered is never edited: a change is a new file of another day."""

import json
from pathlib import Path

from paypilot.core.rails import Registry


def load_registry() -> Registry:
    """Every published rail. Raises `InvalidRail` rather than answer from a table that isn't whole."""
    files = sorted(Path(__file__).parent.glob("*.json"))
    return Registry(json.loads(path.read_bytes()) for path in files)
