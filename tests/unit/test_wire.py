"""Bytes in: what is read, and what is refused by name. The contract suite sends the same over HTTP."""

import base64
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paypilot import wire
from paypilot.core import errors
from paypilot.core.decide import FailedPayment

GOOD = {"invoice_id": "in_1", "failure_code": "card_expired"}


def request(body: bytes | str = b"", *, query: str = "", **headers: str) -> wire.Request:
    event = {
        "rawPath": "/decide",
        "rawQueryString": query,
        "headers": {name.replace("_", "-"): value for name, value in headers.items()},
        "requestContext": {"http": {"method": "POST"}, "requestId": "r-1", "stage": "$default"},
        "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        "isBase64Encoded": isinstance(body, bytes),
    }
    return wire.read_event(event)


def payment(**fields: Any) -> FailedPayment:
    return wire.read_failed_payment(request(json.dumps(GOOD | fields)))


def test_a_body_is_read_with_its_defaults() -> None:
    assert payment() == FailedPayment("in_1", "card_expired", attempt=1, prior_failures=0)
    assert payment(attempt=1000, prior_failures=1000).attempt == 1000


@given(st.binary(max_size=200))
def test_any_bytes_are_a_payment_or_a_refusal(body: bytes) -> None:
    try:
        wire.read_failed_payment(request(body))
    except errors.Refusal as refusal:
        assert refusal.code in {"invalid_json", "not_an_object", "unknown_field", "missing_field", "duplicate_field"}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=2)
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys((*GOOD, "attempt", "prior_failures", "x"), JSON_VALUES)))
def test_any_json_object_is_a_payment_within_the_limits_or_a_refusal_that_names_a_field(fields: dict[str, Any]) -> None:
    try:
        read = wire.read_failed_payment(request(json.dumps(fields)))
    except errors.InvalidJson:
        assert any(token in json.dumps(fields) for token in ("NaN", "Infinity"))
    except errors.Refusal as refusal:
        assert refusal.field in {*GOOD, "attempt", "prior_failures", "x"}
    else:
        assert fields.keys() <= {*GOOD, "attempt", "prior_failures"}
        assert type(read.attempt) is int
        assert 1 <= read.attempt <= 1000
        assert 0 <= read.prior_failures <= 1000
        assert wire.is_invoice_id(read.invoice_id)


def test_fields_are_refused_in_the_order_of_their_table_and_others_after_them() -> None:
    with pytest.raises(errors.InvalidType) as caught:
        payment(invoice_id=1, failure_code=2, client_id="acme", x=1)
    assert caught.value.field == "invoice_id"
    with pytest.raises(errors.ClientIdInBody):
        payment(client_id="acme", x=1)
    with pytest.raises(errors.UnknownField) as unknown:
        payment(x=1, client_id="acme")
    assert unknown.value.field == "x"


@pytest.mark.parametrize(
    "text", ["in/1", "a", "A:1.2_3-4", "a" * 255, "in_1/outcome", "outcomes", "outcomes/summary/x"]
)
def test_an_invoice_id_may_be(text: str) -> None:
    assert wire.is_invoice_id(text)
    assert payment(invoice_id=text).invoice_id == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "a/./b",
        "a/../b",
        "a/..",
        ".a",
        "a b",
        "é",
        "a\n",
        "a" * 256,
        "outcomes/summary",
        "a\x00",
    ],
)
def test_an_invoice_id_may_not_be(text: str) -> None:
    assert not wire.is_invoice_id(text)
    with pytest.raises(errors.InvalidValue):
        payment(invoice_id=text)


def test_the_echoed_name_of_a_field_is_escaped_and_cut() -> None:
    with pytest.raises(errors.UnknownField) as caught:
        wire.read_failed_payment(request(json.dumps(GOOD | {'<é"\ud800' + "x" * 300: 1})))
    assert caught.value.field is not None
    assert caught.value.field.isascii()
    assert len(caught.value.field) == 64


@pytest.mark.parametrize("size", [wire.MAX_BODY_BYTES, wire.MAX_BODY_BYTES + 1])
@pytest.mark.parametrize("as_base64", [True, False])
def test_a_body_of_16_kib_is_read_and_a_byte_more_is_not(size: int, as_base64: bool) -> None:
    text = json.dumps(GOOD).ljust(size)
    body = request(text.encode() if as_base64 else text)
    if size == wire.MAX_BODY_BYTES:
        assert wire.read_failed_payment(body).invoice_id == "in_1"
    else:
        with pytest.raises(errors.BodyTooLarge):
            wire.read_failed_payment(body)


@pytest.mark.parametrize("text", ["%%%", "e30", "e30=\n", "e30=e30=", "é"])
def test_broken_base64_is_refused(text: str) -> None:
    broken = wire.Request("POST", "/decide", "", {}, text, body_is_base64=True, request_id="")
    with pytest.raises(errors.InvalidJson):
        wire.read_failed_payment(broken)


@pytest.mark.parametrize("header", ["Bearer t0ken", "bearer t0ken", "BEARER   t0ken"])
def test_a_bearer_token_is_read(header: str) -> None:
    assert wire.read_bearer_token(request(authorization=header)) == "t0ken"


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic t0ken", "t0ken", "Bearer a b", "Bearer a,b", "Bearer a,Bearer a", "Bearer é",
     " Bearer a", "Bearer a ", "Bearer\ta", "Bearera"],
)  # fmt: skip
def test_anything_else_is_no_bearer_token(header: str) -> None:
    with pytest.raises(errors.Unauthorized):
        wire.read_bearer_token(request(authorization=header))


def test_two_authorization_headers_are_no_token_whatever_their_case() -> None:
    event = {"headers": {"Authorization": "Bearer a", "authorization": "Bearer a"}}
    with pytest.raises(errors.Unauthorized):
        wire.read_bearer_token(wire.read_event(event))


@pytest.mark.parametrize("key", ["a", " ~", "x" * 255])
def test_an_idempotency_key_is_read(key: str) -> None:
    assert wire.read_idempotency_key(request(idempotency_key=key)) == key


@pytest.mark.parametrize("key", ["", "x" * 256, "é", "a\tb", "a\x7f"])
def test_an_idempotency_key_outside_printable_ascii_is_refused(key: str) -> None:
    with pytest.raises(errors.IdempotencyKeyInvalid):
        wire.read_idempotency_key(request(idempotency_key=key))


def test_without_the_header_there_is_no_idempotency_key() -> None:
    assert wire.read_idempotency_key(request()) is None


def test_the_stage_is_taken_from_the_path_unless_it_is_the_default() -> None:
    def path(raw: str, stage: str) -> str:
        return wire.read_event({"rawPath": raw, "requestContext": {"stage": stage}}).path

    assert path("/prod/decide", "prod") == "/decide"
    assert path("/prod", "prod") == "/"
    assert path("/$default/decide", "$default") == "/$default/decide"


LISTINGS = st.sampled_from(sorted(wire.CURSOR_MARKS))


@given(LISTINGS, st.uuids())
def test_a_cursor_reads_back_in_its_own_listing_and_in_no_other(listing: str, last_id: uuid.UUID) -> None:
    cursor = wire.write_cursor(listing, last_id)
    assert wire.read_cursor(listing, cursor) == last_id
    for other in wire.CURSOR_MARKS.keys() - {listing}:
        with pytest.raises(errors.InvalidQuery):
            wire.read_cursor(other, cursor)


@given(LISTINGS, st.text(max_size=30) | st.from_regex(r"[A-Za-z0-9_-]{20,24}", fullmatch=True))
def test_only_what_was_written_is_a_cursor(listing: str, cursor: str) -> None:
    try:
        last_id = wire.read_cursor(listing, cursor)
    except errors.InvalidQuery as error:
        assert error.field == "cursor"
    else:
        assert wire.write_cursor(listing, last_id) == cursor


def test_a_listings_query_is_read() -> None:
    assert wire.read_page(request()) == wire.Page(50, None)
    assert wire.read_page(request(query="limit=200")) == wire.Page(200, None)
    assert wire.read_page(request(query="kind=refusal&limit=1"), kinds=True) == wire.Page(1, None, "refusal", "refusal")
    assert wire.read_page(request(), kinds=True) == wire.Page(50, None, None, "refusals")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=", "limit"),
        ("limit=%D9%A1", "limit"),
        ("limit=1.0", "limit"),
        ("limit=+1", "limit"),
        ("limit=1&limit=1", "limit"),
        ("cursor=", "cursor"),
        ("cursor=x", "cursor"),
        ("kind=refusal", "kind"),
        ("page=2", "page"),
        ("%00=1", "\\u0000"),
        ("x", "x"),
    ],
)
def test_a_listings_query_is_refused_by_name(query: str, field: str) -> None:
    with pytest.raises(errors.InvalidQuery) as caught:
        wire.read_page(request(query=query))
    assert caught.value.field == field


def test_a_kind_is_one_of_two() -> None:
    with pytest.raises(errors.InvalidQuery):
        wire.read_page(request(query="kind=all"), kinds=True)


@given(st.text(max_size=60))
def test_any_query_is_a_page_within_its_limits_or_refused(query: str) -> None:
    try:
        page = wire.read_page(request(query=query), kinds=True)
    except errors.InvalidQuery as error:
        assert error.field is not None
    else:
        assert 1 <= page.limit <= 200
