"""Every part of an event, a report, a query and a problem: mutating the parser showed that nothing held these here."""

import json
import uuid
from typing import Any

import pytest

from paypilot import refusals
from paypilot.core.decide import FailedPayment
from paypilot.decisions import LISTING, read_failed_payment
from paypilot.http import problems
from paypilot.http.auth import read_bearer_token
from paypilot.http.page import Page, read_page, write_cursor
from paypilot.http.problems import problem_response
from paypilot.http.request import Request, read_event
from paypilot.http.response import Response, write_event_response
from paypilot.outcomes import OutcomeReport, read_outcome_report

EVENT: dict[str, Any] = {
    "rawPath": "/decisions/in_1/outcome",
    "rawQueryString": "limit=2",
    "headers": {"Authorization": "Bearer t", "x-a": "1"},
    "requestContext": {"http": {"method": "PUT"}, "requestId": "r-1", "stage": "$default"},
    "body": "{}",
    "isBase64Encoded": True,
}


def request(query: str) -> Request:
    return Request("POST", "/", query, {}, "", False, "r-1")


def test_every_part_of_an_event_is_read() -> None:
    headers = {"authorization": "Bearer t", "x-a": "1"}
    assert read_event(EVENT) == Request("PUT", "/decisions/in_1/outcome", "limit=2", headers, "{}", True, "r-1")


@pytest.mark.parametrize("event", [None, [], [1], "text", 7, {"requestContext": [], "headers": [], "body": 1}])
def test_an_event_that_is_not_http_is_a_request_for_no_path(event: object) -> None:
    assert read_event(event) == Request("", "/", "", {}, "", False, "")


def test_a_header_value_that_is_not_text_is_read_as_text_and_null_is_none() -> None:
    assert read_event({"headers": {"A": None, "B": 7, "C": True}}).headers == {"b": "7", "c": "True"}


def test_whatever_an_event_leaves_out_is_empty() -> None:
    assert read_event({}) == Request("", "/", "", {}, "", False, "")
    assert read_event({"requestContext": None, "headers": None, "body": None}).headers == {}
    assert read_event({"rawPath": "/$default/decide"}).path == "/$default/decide"
    assert read_bearer_token(read_event(EVENT)) == "t"
    with pytest.raises(problems.Unauthorized):
        read_bearer_token(read_event({}))


def test_each_field_of_a_payment_is_read_by_its_own_name() -> None:
    fields = {"invoice_id": "in_9", "failure_code": "code", "attempt": 3, "prior_failures": 7}
    assert read_failed_payment(fields) == FailedPayment("in_9", "code", 3, 7)
    for name in ("attempt", "prior_failures"):
        with pytest.raises(problems.InvalidValue) as refused:
            read_failed_payment(fields | {name: 1001})
        assert refused.value.members["field"] == name
    assert read_failed_payment(fields | {"prior_failures": 0}).prior_failures == 0
    with pytest.raises(problems.InvalidValue):
        read_failed_payment(fields | {"attempt": 0})


def test_an_outcome_report_is_read_and_refused_by_field() -> None:
    good = {"outcome": "not_paid", "report_key": "k-1"}
    assert read_outcome_report(good) == OutcomeReport("not_paid", "k-1")
    assert read_outcome_report({"outcome": "paid", "report_key": "~"}).outcome == "paid"
    cases: list[tuple[dict[str, Any], type[problems.Refusal], str]] = [
        ({"outcome": "unknown"}, problems.InvalidValue, "outcome"),
        ({"outcome": "paidnot_paid"}, problems.InvalidValue, "outcome"),
        ({"outcome": None}, problems.InvalidType, "outcome"),
        ({"report_key": "é"}, problems.InvalidValue, "report_key"),
        ({"report_key": "k" * 256}, problems.InvalidValue, "report_key"),
        ({"note": "x"}, problems.UnknownField, "note"),
    ]
    for change, error, field in cases:
        with pytest.raises(error) as refused:
            read_outcome_report(good | change)
        assert (type(refused.value), refused.value.members["field"]) == (error, field)
    for name in good:
        with pytest.raises(problems.MissingField) as missing:
            read_outcome_report({key: value for key, value in good.items() if key != name})
        assert missing.value.members["field"] == name


def test_a_listing_takes_all_its_parameters_at_once_and_names_the_one_it_refuses() -> None:
    last = uuid.UUID(int=2**128 - 2)
    cursor = write_cursor(b"h", last)
    assert (len(cursor), cursor.isascii(), "=" in cursor) == (23, True, False)
    assert read_page(request(f"limit=7&cursor={cursor}"), LISTING) == Page(7, last, None, b"h")
    query = f"limit=7&cursor={write_cursor(b'r', last)}&kind=refusal"
    assert read_page(request(query), refusals.LISTING) == Page(7, last, "refusal", b"r")
    for refused, field in (("kind=x", "kind"), ("cursor=x", "cursor"), ("limit=x", "limit"), ("Kind=refusal", "Kind")):
        with pytest.raises(problems.InvalidQuery) as error:
            read_page(request(refused), refusals.LISTING)
        assert error.value.members["field"] == field
        assert error.value.detail
    with pytest.raises(problems.InvalidQuery):
        read_page(request("kind=refusal"), LISTING)


@pytest.mark.parametrize(
    ("problem", "headers", "more"),
    [
        (problems.NotFound("No."), {}, {}),
        (problems.InvalidValue("It is.", field="attempt"), {}, {"field": "attempt"}),
        (problems.MethodNotAllowed("GET, HEAD"), {"allow": "GET, HEAD"}, {}),
        (problems.Unauthorized("Send."), {"www-authenticate": "Bearer"}, {}),
        (problems.AuditUnavailable("Later."), {"retry-after": "5"}, {}),
        (problems.Internal("Sorry.", request_id="r-1"), {}, {"request_id": "r-1"}),
    ],
)
def test_a_problem_is_written_whole(problem: problems.Problem, headers: dict[str, str], more: dict[str, str]) -> None:
    response = problem_response(problem)
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
    refusal = problems.InvalidJson("No.")
    refusal.members["refusal_id"] = "row-1"
    assert json.loads(problem_response(refusal).body)["refusal_id"] == "row-1"


def test_an_answer_carries_the_headers_that_every_answer_has() -> None:
    answer = write_event_response(Response(201, b"{}", headers={"allow": "GET"}), read_event(EVENT))
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
    with pytest.raises(problems.Refusal) as refused:
        read_failed_payment(body)
    assert refused.value.members["field"] == named
    assert refused.value.detail.startswith((f"{named} is required", f"{named} must be "))
    assert any(allowed in refused.value.detail for allowed in ("A-Z a-z 0-9", "from 1 to 1000"))
