"""Each invariant of `make faults` notices the bug that it is there for: planted in the function, under one fault."""

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from scripts.labs import faults
from scripts.labs.faulting import invariants
from scripts.labs.faulting.worker import PLANTS

# bug -> (the fault that brings it out, the invariant that must notice)
NOTICED = {
    "answers without a row": ("kill -9 of Postgres", invariants.NO_ROW),
    "answers other bytes": ("no fault", invariants.STORED),
    "forgets the key": ("no fault", invariants.ONE_ROW),
    "writes twice": ("answers lost", invariants.ONE_ROW),
    "waits for ever": ("frozen Postgres", invariants.NO_HANG),
    "keeps a dead connection": ("connections reset", invariants.RECOVERY),
    "lets an error through": ("too many connections", invariants.STATUS),
}


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[faults.Cast]:
    # The bootstrap names its database in the environment, where a later test's `make run` would find it.
    with patch.dict(os.environ), faults.cast(tmp_path_factory.mktemp("faults"), "planted") as made:
        yield made


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_bug_is_noticed_by_its_invariant(
    plant: str, play: faults.Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "RECOVERY_SECONDS", 5)
    fault, invariant = NOTICED[plant]
    # Long enough to outlast the deadline twice where the fault is a freeze.
    seconds = 3.0 if plant == "waits for ever" else 1.0
    result = faults.suffer(play, fault, f"planted-{plant}", workers=2, seconds=seconds, PLANT=plant)
    assert invariant in {violation.invariant for violation in result.violations}
