"""Every part of an event, a report, a query and a problem: mutating the parser showed that nothing held these here."""

import json
import uuid
from typing import Any

import pytest

from paypilot import wire
from paypilot.core import errors
from paypilot.core.decide import FailedPayment

EVENT: dict[str, Any] = {
    "rawPath": "/decisions/in_1/outcome",
    "rawQueryString": "limit=2",
    "headers": {"Authorization": "Bearer t", "x-a": "1"},
    "requestContext": {"http": {"method": "PUT"}, "requestId": "r-1", "stage": "$default"},
    "body": "{}",
    "isBase64Encoded": True,
}


def request(body: dict[str, Any] | None = None, query: str = "") -> wire.Request:
    return wire.Request("POST", "/", query, {}, json.dumps(body), False, "r-1")


def test_every_part_of_an_event_is_read() -> None:
    headers = {"authorization": "Bearer t", "x-a": "1"}
    assert wire.read_event(EVENT) == wire.Request(
        "PUT", "/decisions/in_1/outcome", "limit=2", headers, "{}", True, "r-1"
    )


def test_whatever_an_event_leaves_out_is_empty() -> None:
    assert wire.read_event({}) == wire.Request("", "/", "", {}, "", False, "")
    assert wire.read_event({"requestContext": None, "headers": None, "body": None}).headers == {}
    assert wire.read_event({"rawPath": "/$default/decide"}).path == "/$default/decide"
    assert wire.read_bearer_token(wire.read_event(EVENT)) == "t"
    with pytest.raises(errors.Unauthorized):
        wire.read_bearer_token(wire.read_event({}))


def test_each_field_of_a_payment_is_read_by_its_own_name() -> None:
    fields = {"invoice_id": "in_9", "failure_code": "code", "attempt": 3, "prior_failures": 7}
    assert wire.read_failed_payment(request(fields)) == FailedPayment("in_9", "code", 3, 7)
    for name in ("attempt", "prior_failures"):
        with pytest.raises(errors.InvalidValue) as refused:
            wire.read_failed_payment(request(fields | {name: 1001}))
        assert refused.value.field == name
    assert wire.read_failed_payment(request(fields | {"prior_failures": 0})).prior_failures == 0
    with pytest.raises(errors.InvalidValue):
        wire.read_failed_payment(request(fields | {"attempt": 0}))


def test_an_outcome_report_is_read_and_refused_by_field() -> None:
    good = {"outcome": "not_paid", "report_key": "k-1"}
    assert wire.read_outcome_report(request(good)) == wire.OutcomeReport("not_paid", "k-1")
    assert wire.read_outcome_report(request({"outcome": "paid", "report_key": "~"})).outcome == "paid"
    cases: list[tuple[dict[str, Any], type[errors.Refusal], str]] = [
        ({"outcome": "unknown"}, errors.InvalidValue, "outcome"),
        ({"outcome": "paidnot_paid"}, errors.InvalidValue, "outcome"),
        ({"outcome": None}, errors.InvalidType, "outcome"),
        ({"report_key": "é"}, errors.InvalidValue, "report_key"),
        ({"report_key": "k" * 256}, errors.InvalidValue, "report_key"),
        ({"note": "x"}, errors.UnknownField, "note"),
    ]
    for change, error, field in cases:
        with pytest.raises(error) as refused:
            wire.read_outcome_report(request(good | change))
        assert (type(refused.value), refused.value.field) == (error, field)
    for name in good:
        with pytest.raises(errors.MissingField) as missing:
            wire.read_outcome_report(request({key: value for key, value in good.items() if key != name}))
        assert missing.value.field == name


def test_a_listing_takes_all_its_parameters_at_once_and_names_the_one_it_refuses() -> None:
    last = uuid.UUID(int=2**128 - 2)
    cursor = wire.write_cursor("history", last)
    assert (len(cursor), cursor.isascii(), "=" in cursor) == (23, True, False)
    assert wire.read_page(request(query=f"limit=7&cursor={cursor}")) == wire.Page(7, last)
    query = f"limit=7&cursor={wire.write_cursor('refusal', last)}&kind=refusal"
    assert wire.read_page(request(query=query), kinds=True) == wire.Page(7, last, "refusal", "refusal")
    for refused, field in (("kind=x", "kind"), ("cursor=x", "cursor"), ("limit=x", "limit"), ("Kind=refusal", "Kind")):
        with pytest.raises(errors.InvalidQuery) as error:
            wire.read_page(request(query=refused), kinds=True)
        assert error.value.field == field
        assert error.value.detail
    with pytest.raises(errors.InvalidQuery):
        wire.read_page(request(query="kind=refusal"))


@pytest.mark.parametrize(
    ("problem", "headers", "more"),
    [
        (errors.NotFound("No."), {}, {}),
        (errors.InvalidValue("It is.", field="attempt"), {}, {"field": "attempt"}),
        (errors.MethodNotAllowed("GET, HEAD"), {"allow": "GET, HEAD"}, {}),
        (errors.Unauthorized("Send."), {"www-authenticate": "Bearer"}, {}),
        (errors.AuditUnavailable("Later."), {"retry-after": "5"}, {}),
        (errors.Internal("Sorry."), {}, {"request_id": "r-1"}),
    ],
)
def test_a_problem_is_written_whole(problem: errors.Problem, headers: dict[str, str], more: dict[str, str]) -> None:
    response = wire.problem_response(problem, "r-1")
    assert (response.status, response.content_type) == (problem.status, "application/problem+json")
    assert dict(response.headers) == headers
    assert dict(response.facts) == {"code": problem.code}
    assert json.loads(response.body) == {
        "type": f"urn:paypilot:problem:{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
        **more,
    }


def test_a_recorded_refusal_tells_the_id_of_its_row() -> None:
    refusal = errors.InvalidJson("No.")
    refusal.refusal_id = "row-1"
    assert json.loads(wire.problem_response(refusal, "r-1").body)["refusal_id"] == "row-1"


def test_an_answer_carries_the_headers_that_every_answer_has() -> None:
    answer = wire.write_event_response(wire.Response(201, b"{}", headers={"allow": "GET"}), wire.read_event(EVENT))
    assert answer == {
        "statusCode": 201,
        "headers": {
            "cache-control": "no-store",
            "content-type": "application/json",
            "x-content-type-options": "nosniff",
            "x-request-id": "r-1",
            "allow": "GET",
        },
        "body": "{}",
        "isBase64Encoded": False,
    }
    head = wire.write_event_response(wire.Response(200, b"{}"), wire.read_event(EVENT)._replace(method="HEAD"))
    assert head["body"] == ""


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "invoice_id"),
        ({"invoice_id": 1}, "invoice_id"),
        ({"invoice_id": "a//b"}, "invoice_id"),
        ({"invoice_id": "a"}, "failure_code"),
        ({"invoice_id": "a", "failure_code": " "}, "failure_code"),
        ({"invoice_id": "a", "failure_code": "b", "attempt": "1"}, "attempt"),
        ({"invoice_id": "a", "failure_code": "b", "attempt": 0}, "attempt"),
    ],
)
def test_what_is_told_of_a_refused_field_names_it_and_what_is_allowed(body: dict[str, Any], named: str) -> None:
    with pytest.raises(errors.Refusal) as refused:
        wire.read_failed_payment(request(body))
    assert refused.value.field == named
    assert refused.value.detail.startswith(f"{named} is ")
    assert any(allowed in refused.value.detail for allowed in ("A-Z a-z 0-9", "from 1 to 1000"))
