"""Every file of bad_inputs, at each route with a body: refused with its reason, on record once, echoed nowhere."""

import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from contract.caller import Caller, new_invoice, recorded_once, refused

FOLDER = Path(__file__).parent / "bad_inputs"
INDEX = tomllib.loads((FOLDER / "index.toml").read_text())
# Stands in every file whose attack leaves room for it.
CANARY = "canary-7f3a"
ROUTES = {"decide": "POST /decide", "outcome": "POST /decisions/{invoice_id}/outcome"}


class Case(NamedTuple):
    file: Path
    route: str
    code: str
    field: str | None


CASES = [
    Case(FOLDER / folder / name, route, expected["code"], expected.get("field"))
    for folder, files in INDEX.items()
    for name, expected in files.items()
    for route in (ROUTES if folder == "any" else [folder])
]


def test_every_file_has_its_answer_in_the_index() -> None:
    on_disk = {f"{file.parent.name}/{file.name}" for file in FOLDER.glob("*/*")}
    assert on_disk == {f"{folder}/{name}" for folder, files in INDEX.items() for name in files}


def test_no_route_with_a_body_is_missing_here(client: Caller) -> None:
    assert {f"{method} {path}" for method, path in client.routes("requestBody")} == set(ROUTES.values())


# With a JSON content type the event carries text, without one base64.
@pytest.mark.parametrize("content_type", ["application/json", None], ids=["as_text", "as_base64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route}-{case.file.stem}")
def test_a_bad_body_is_refused_with_its_reason_and_leaves_one_row(
    client: Caller, case: Case, content_type: str | None
) -> None:
    path = "/decide" if case.route == "decide" else f"/decisions/{new_invoice()}/outcome"
    last = client.newest_refusal()
    response = client.send(
        "POST", path, content=case.file.read_bytes(), headers={"content-type": content_type} if content_type else {}
    )
    problem = refused(response, 413 if case.code == "body_too_large" else 422, case.code, case.field)
    assert CANARY not in response.text + str(response.headers)
    gate = "rules_table" if case.code in {"not_a_rail_code", "rail_refused"} else "body"
    recorded_once(client, last, problem, ROUTES[case.route], gate)
