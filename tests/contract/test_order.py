"""Of two faults, the one that is checked first is the answer.

Each step of ORDER is a way to spoil a good request. A request that is spoiled twice is answered as by the earlier one.
"""

import itertools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from contract.caller import Caller, new_invoice

Request = dict[str, Any]


class Step(NamedTuple):
    code: str
    field: str | None
    spoil: Callable[[Request], object]


def fields(**changed: Any) -> Callable[[Request], object]:
    return lambda request: request["fields"].update(changed)


def without(name: str) -> Callable[[Request], object]:
    return lambda request: request["fields"].pop(name, None)


def request_with(**changed: Any) -> Callable[[Request], object]:
    return lambda request: request.update(changed)


ORDER = [
    Step("not_found", None, request_with(path="/decide/")),
    Step("method_not_allowed", None, request_with(method="PUT")),
    Step("unauthorized", None, request_with(auth=False)),
    Step("idempotency_key_invalid", None, request_with(key="k" * 256)),
    Step("body_too_large", None, request_with(after=" " * 16384)),
    Step("invalid_json", None, request_with(before="\x00")),
    Step("duplicate_field", "x", fields(twice=True)),
    Step("missing_field", "invoice_id", without("invoice_id")),
    Step("invalid_type", "failure_code", fields(failure_code=None)),
    Step("invalid_value", "attempt", fields(attempt=0)),
    Step("invalid_type", "prior_failures", fields(prior_failures="1")),
    Step("client_id_in_body", "client_id", fields(client_id="me")),
    Step("not_a_rail_code", "failure_code", fields(failure_code="ach:nothing")),
]


def answer(client: Caller, steps: list[Step]) -> tuple[str, str | None]:
    request: Request = {"method": "POST", "path": "/decide", "auth": True, "key": "", "before": "", "after": ""}
    request["fields"] = {"invoice_id": new_invoice(), "failure_code": "card_expired"}
    for step in reversed(steps):
        step.spoil(request)
    body = json.dumps(request["fields"])
    if request["fields"].pop("twice", False):
        body = '{"x": 1, "x": 2, ' + json.dumps(request["fields"])[1:]
    problem = client.send(
        request["method"],
        request["path"],
        auth=request["auth"],
        headers={"idempotency-key": request["key"]} if request["key"] else {},
        content=(request["before"] + body + request["after"]).encode(),
    ).json()
    return problem["code"], problem.get("field")


@pytest.mark.parametrize("step", ORDER, ids=lambda step: f"{step.code}-{step.field}")
def test_each_fault_alone_is_its_own_answer(client: Caller, step: Step) -> None:
    assert answer(client, [step]) == (step.code, step.field)


@pytest.mark.parametrize(
    ("first", "second"),
    list(itertools.combinations(ORDER, 2)),
    ids=lambda step: f"{step.code}-{step.field}",
)
def test_of_two_faults_the_earlier_one_is_the_answer(client: Caller, first: Step, second: Step) -> None:
    assert answer(client, [first, second]) == (first.code, first.field)


def test_a_listing_asks_for_the_token_then_the_query_then_the_invoice(client: Caller) -> None:
    path = f"/decisions/{new_invoice()}?page=2"
    assert client.get(path, auth=False).json()["code"] == "unauthorized"
    assert client.get(path).json()["code"] == "invalid_query"
    assert client.get(path.partition("?")[0]).json()["code"] == "not_found"


def test_a_report_asks_for_its_body_before_the_invoice(client: Caller) -> None:
    path = f"/decisions/{new_invoice()}/outcome"
    assert client.post(path, {"outcome": "lost", "report_key": 1}).json()["field"] == "outcome"
    assert client.post(path, {"outcome": "paid", "report_key": 1, "x": 1}).json()["field"] == "report_key"
    assert client.post(path, {"outcome": "paid", "report_key": "k", "x": 1}).json()["field"] == "x"
    assert client.post(path, {"outcome": "paid", "report_key": new_invoice()}).json()["code"] == "not_found"
