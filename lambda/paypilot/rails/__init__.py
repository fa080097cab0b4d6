"""The published rail tables. One that answered is never edited: a change is a new file of another day."""

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paypilot.core.rails import Answer, Registry


def load_registry() -> "Registry":
    """Every published rail. Raises `InvalidRail` rather than answer from a table that isn't whole."""
    from paypilot.core.rails import Registry

    files = sorted(Path(__file__).parent.glob("*.json"))
    return Registry(json.loads(path.read_bytes()) for path in files)


class PublishedRails:
    """The published rails, loaded when a request first needs one: to load them takes a seventh of a cold start."""

    def answer_for(self, failure_code: str) -> "Answer | None":
        """As `Registry.answer_for`."""
        return self.registry.answer_for(failure_code) if ":" in failure_code else None

    @cached_property
    def registry(self) -> "Registry":
        return load_registry()
