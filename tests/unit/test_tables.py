"""The published tables together: their digests, and which one answers."""

import copy
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paypilot import tables
from paypilot.core.rule import InvalidTable, NotACode
from paypilot.core.tables import NoTable, Tables
from paypilot.tables import published_tables

FOLDER = Path(tables.__file__).parent
TABLES = published_tables()

# A published table is never edited: its digest is on every decision that it made. A change is a new file.
PUBLISHED = {
    "card-2026-12-01": "sha256:d6badfff776b6bc3f2314607dd831de7d217b70531fe0cac7f0e34323cd5abe8",
    "ach-2026-12-01": "sha256:faa649c99a16112c1db241ef3da24ab8d34c42c9d73003b3ddc8701f5c6032f7",
    "bacs-2026-12-01": "sha256:f18176afc29d98e4c7b107f0f17dca0aa3488c3e37e5e19d85ef155696d65933",
    "sepa-2026-12-01": "sha256:827cbde0357a459eaa6d8a799321eb83ea7a84a17cbb8e5befd8a80e595893f0",
}


def documents() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_bytes()) for path in FOLDER.glob("*.json")}


def tables_of(found: dict[str, dict[str, Any]]) -> Tables:
    read: dict[str, Callable[[], Any]] = {key: partial(copy.deepcopy, document) for key, document in found.items()}
    return Tables(read)


def test_every_published_table_keeps_its_digest() -> None:
    versions = {f"{table.name}-{table.published}": version for version, table in TABLES.versions.items()}
    assert versions == PUBLISHED
    assert set(documents()) == set(PUBLISHED)


@pytest.mark.parametrize("name", ["card", "ach", "sepa", "bacs"])
def test_a_later_table_answers_and_the_earlier_one_can_still_be_replayed(name: str) -> None:
    earlier = documents()
    later = copy.deepcopy(earlier[f"{name}-2026-12-01"]) | {"published": "9999-12-31"}
    both = tables_of({f"{name}-9999-12-31": later, **earlier})
    now = both.card if name == "card" else both.rail(name)
    assert not isinstance(now, NoTable)
    assert now.published == "9999-12-31"
    assert both.versions[PUBLISHED[f"{name}-2026-12-01"]].published == "2026-12-01"


@pytest.mark.parametrize("key", ["ach-9999-12-31", "nacha-2026-12-01"])
def test_a_file_that_holds_another_table_than_its_name_says_answers_nothing(key: str) -> None:
    misnamed = tables_of({key: documents()["ach-2026-12-01"]})
    with pytest.raises(InvalidTable, match=f"{key} holds the table ach of 2026-12-01"):
        misnamed.rail(key[:-11])


@pytest.mark.parametrize(
    ("failure_code", "name"),
    [
        ("card_expired", "card"),
        ("ach:R01", "ach"),
        ("sepa:", "sepa"),
        ("foo:R01", "card"),
        ("ach", "card"),
        (":", "card"),
    ],
)
def test_a_failure_code_is_meant_for_one_table(failure_code: str, name: str) -> None:
    assert TABLES.name_for(failure_code) == name


@pytest.mark.parametrize("failure_code", ["ACH:R01", "Sepa:AM04", "BACS:0"])
def test_a_rail_s_name_in_other_letters_is_meant_for_the_rail_and_refused(failure_code: str) -> None:
    assert TABLES.name_for(failure_code) == NotACode("Write the rail's name in lower case: ach, bacs, sepa.")


def test_a_rail_that_is_not_registered_is_not_found() -> None:
    assert TABLES.rail("Ach") == NoTable("The rails are ach, bacs, sepa.")
    assert TABLES.rail("card") == NoTable("The rails are ach, bacs, sepa.")
