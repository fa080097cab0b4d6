"""What is read of a request, what is refused by name, and how an answer is written."""

import base64
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paypilot import refusals
from paypilot.core.decide import FailedPayment
from paypilot.decisions import LISTING, read_failed_payment
from paypilot.http import problems
from paypilot.http.auth import read_bearer_token
from paypilot.http.body import read_idempotency_key, read_object
from paypilot.http.page import Page, read_cursor, read_page, write_cursor
from paypilot.http.problems import problem_response
from paypilot.http.request import Request, read_event
from paypilot.http.response import Response, write_event_response
from paypilot.invoices import is_invoice_id
from paypilot.outcomes import OutcomeReport, read_outcome_report

GOOD = {"invoice_id": "in_1", "failure_code": "card_expired"}
BODY_BYTES_MAX = 16 * 1024


def request(body: bytes | str = b"", *, query: str = "", **headers: str) -> Request:
    event = {
        "rawPath": "/decide",
        "rawQueryString": query,
        "headers": {name.replace("_", "-"): value for name, value in headers.items()},
        "requestContext": {"http": {"method": "POST"}, "requestId": "r-1", "stage": "$default"},
        "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        "isBase64Encoded": isinstance(body, bytes),
    }
    return read_event(event)


def read_payment(sent: Request) -> FailedPayment:
    return read_failed_payment(read_object(sent, BODY_BYTES_MAX))


def payment(**fields: Any) -> FailedPayment:
    return read_payment(request(json.dumps(GOOD | fields)))


def test_a_body_is_read_with_its_defaults() -> None:
    assert payment() == FailedPayment("in_1", "card_expired", attempt=1, prior_failures=0)
    assert payment(attempt=1000, prior_failures=1000).attempt == 1000


@given(st.binary(max_size=200))
def test_any_bytes_are_a_payment_or_a_refusal(body: bytes) -> None:
    try:
        read_payment(request(body))
    except problems.Refusal as refusal:
        assert refusal.code in {"invalid_json", "not_an_object", "unknown_field", "missing_field", "duplicate_field"}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=2)
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys((*GOOD, "attempt", "prior_failures", "x"), JSON_VALUES)))
def test_any_json_object_is_a_payment_within_limits_or_a_refusal_naming_a_field(fields: dict[str, Any]) -> None:
    try:
        read = read_payment(request(json.dumps(fields)))
    except problems.InvalidJson:
        assert any(token in json.dumps(fields) for token in ("NaN", "Infinity"))
    except problems.Refusal as refusal:
        assert refusal.members["field"] in {*GOOD, "attempt", "prior_failures", "x"}
    else:
        assert fields.keys() <= {*GOOD, "attempt", "prior_failures"}
        assert type(read.attempt) is int
        assert 1 <= read.attempt <= 1000
        assert 0 <= read.prior_failures <= 1000
        assert is_invoice_id(read.invoice_id)


def test_fields_are_refused_in_the_order_of_their_table_and_others_after_them() -> None:
    with pytest.raises(problems.InvalidType) as caught:
        payment(invoice_id=1, failure_code=2, client_id="acme", x=1)
    assert caught.value.members["field"] == "invoice_id"
    with pytest.raises(problems.ClientIdInBody):
        payment(client_id="acme", x=1)
    with pytest.raises(problems.UnknownField) as unknown:
        payment(x=1, client_id="acme")
    assert unknown.value.members["field"] == "x"


def test_the_echoed_name_of_a_field_is_escaped_and_cut() -> None:
    with pytest.raises(problems.UnknownField) as caught:
        read_payment(request(json.dumps(GOOD | {'<é"\ud800' + "x" * 300: 1})))
    field = str(caught.value.members["field"])
    assert field.isascii()
    assert len(field) == 64


@pytest.mark.parametrize("size", [BODY_BYTES_MAX, BODY_BYTES_MAX + 1])
@pytest.mark.parametrize("as_base64", [True, False])
def test_a_body_of_16_kib_is_read_and_a_byte_more_is_not(size: int, as_base64: bool) -> None:
    text = json.dumps(GOOD).ljust(size)
    body = request(text.encode() if as_base64 else text)
    if size == BODY_BYTES_MAX:
        assert read_payment(body).invoice_id == "in_1"
    else:
        with pytest.raises(problems.BodyTooLarge):
            read_payment(body)


@pytest.mark.parametrize("text", ["%%%", "e30", "e30=\n", "e30=e30=", "é"])
def test_broken_base64_is_refused(text: str) -> None:
    broken = Request("POST", "/decide", "", {}, text, body_is_base64=True, request_id="")
    with pytest.raises(problems.InvalidJson):
        read_payment(broken)


@pytest.mark.parametrize("header", ["Bearer t0ken", "bearer t0ken", "BEARER   t0ken"])
def test_a_bearer_token_is_read(header: str) -> None:
    assert read_bearer_token(request(authorization=header)) == "t0ken"


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic t0ken", "t0ken", "Bearer a b", "Bearer a,b", "Bearer a,Bearer a", "Bearer é",
     " Bearer a", "Bearer a ", "Bearer\ta", "Bearera"],
)  # fmt: skip
def test_anything_else_is_no_bearer_token(header: str) -> None:
    with pytest.raises(problems.Unauthorized):
        read_bearer_token(request(authorization=header))


def test_two_authorization_headers_are_no_token_whatever_their_case() -> None:
    event = {"headers": {"Authorization": "Bearer a", "authorization": "Bearer a"}}
    with pytest.raises(problems.Unauthorized):
        read_bearer_token(read_event(event))


@pytest.mark.parametrize("key", ["a", " ~", "x" * 255])
def test_an_idempotency_key_is_read(key: str) -> None:
    assert read_idempotency_key(request(idempotency_key=key)) == key


@pytest.mark.parametrize("key", ["", "x" * 256, "é", "a\tb", "a\x7f", "a,b"])
def test_an_idempotency_key_outside_printable_ascii_or_with_a_comma_is_refused(key: str) -> None:
    with pytest.raises(problems.IdempotencyKeyInvalid):
        read_idempotency_key(request(idempotency_key=key))


def test_without_the_header_there_is_no_idempotency_key() -> None:
    assert read_idempotency_key(request()) is None


def test_the_stage_is_taken_from_the_path_unless_it_is_the_default() -> None:
    def path(raw: str, stage: str) -> str:
        return read_event({"rawPath": raw, "requestContext": {"stage": stage}}).path

    assert path("/prod/decide", "prod") == "/decide"
    assert path("/prod", "prod") == "/"
    assert path("/$default/decide", "$default") == "/$default/decide"


MARKS = [*LISTING.values(), *refusals.LISTING.values()]
LISTINGS = st.sampled_from(MARKS)


@given(LISTINGS, st.uuids())
def test_a_cursor_reads_back_in_its_own_listing_and_in_no_other(mark: bytes, last_id: uuid.UUID) -> None:
    cursor = write_cursor(mark, last_id)
    assert read_cursor(mark, cursor) == last_id
    for other in set(MARKS) - {mark}:
        with pytest.raises(problems.InvalidQuery):
            read_cursor(other, cursor)


@given(LISTINGS, st.text(max_size=30) | st.from_regex(r"[A-Za-z0-9_-]{20,24}", fullmatch=True))
def test_only_what_was_written_is_a_cursor(mark: bytes, cursor: str) -> None:
    try:
        last_id = read_cursor(mark, cursor)
    except problems.InvalidQuery as error:
        assert error.members["field"] == "cursor"
    else:
        assert write_cursor(mark, last_id) == cursor


def test_a_listings_query_is_read() -> None:
    assert read_page(request(), LISTING) == Page(50, None, None, b"h")
    assert read_page(request(query="limit=200"), LISTING).limit == 200
    assert read_page(request(query="kind=refusal&limit=1"), refusals.LISTING) == Page(1, None, "refusal", b"r")
    assert read_page(request(), refusals.LISTING) == Page(50, None, None, b"a")


@given(st.text(max_size=60))
def test_any_query_is_a_page_within_its_limits_or_refused(query: str) -> None:
    try:
        page = read_page(request(query=query), refusals.LISTING)
    except problems.InvalidQuery as error:
        assert "field" in error.members
    else:
        assert 1 <= page.limit <= 200


# Every part of an event, a report, a query and a problem: mutating the parser showed that nothing held these.

EVENT: dict[str, Any] = {
    "rawPath": "/decisions/in_1/outcome",
    "rawQueryString": "limit=2",
    "headers": {"Authorization": "Bearer t", "x-a": "1"},
    "requestContext": {"http": {"method": "PUT"}, "requestId": "r-1", "stage": "$default"},
    "body": "{}",
    "isBase64Encoded": True,
}


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
    assert read_page(request(query=f"limit=7&cursor={cursor}"), LISTING) == Page(7, last, None, b"h")
    query = f"limit=7&cursor={write_cursor(b'r', last)}&kind=refusal"
    assert read_page(request(query=query), refusals.LISTING) == Page(7, last, "refusal", b"r")
    for refused in ("kind=x", "cursor=x", "limit=x", "limit=0", "limit=201", "limit=1&limit=1", "Kind=refusal"):
        with pytest.raises(problems.InvalidQuery) as error:
            read_page(request(query=refused), refusals.LISTING)
        assert error.value.members["field"] == refused.partition("=")[0]
        assert error.value.detail


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
