"""The wire: an API Gateway event in, checked values out, and answers as bytes.

Errors say what is allowed and never repeat what was sent.
"""

import base64
import json
import re
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from paypilot.core import errors
from paypilot.core.decide import FailedPayment

MAX_BODY_BYTES = 16 * 1024
MAX_BASE64_CHARACTERS = (MAX_BODY_BYTES + 2) // 3 * 4

INVOICE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}")
FAILURE_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")
PRINTABLE_KEY = re.compile(r"[ -~]{1,255}")
BEARER = re.compile(r"bearer +([^ ,]+)", re.IGNORECASE)
LIMIT = re.compile(r"[0-9]{1,3}")

SUMMARY_ID = "outcomes/summary"
OUTCOMES = ("paid", "not_paid")
REFUSAL_KINDS = ("refusal", "fell_through")
# A cursor says first which listing it goes on with, so that another one refuses it.
HISTORY, REFUSALS = "history", "refusals"
CURSOR_MARKS = {HISTORY: b"h", REFUSALS: b"a", "refusal": b"r", "fell_through": b"f"}
DEFAULT_LIMIT, MAX_LIMIT = 50, 200
LARGEST_COUNT = 1000

JSON = "application/json"
PROBLEM_JSON = "application/problem+json"

NOTHING: Mapping[str, str] = MappingProxyType({})


class Request(NamedTuple):
    """One HTTP request. Header names are lower case; `path` is percent-decoded and has no stage; `query` is raw."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: str
    body_is_base64: bool
    request_id: str


class Response(NamedTuple):
    """One answer. `facts` are for the log line and the metrics: names of our own, never input."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = NOTHING
    facts: Mapping[str, str] = NOTHING


class Page(NamedTuple):
    """What a listing was asked for. `after` is the id of the last entry of the page before, or None.

    `listing` is a key of CURSOR_MARKS.
    """

    limit: int
    after: uuid.UUID | None
    kind: str | None = None
    listing: str = HISTORY


class OutcomeReport(NamedTuple):
    outcome: str
    report_key: str


def read_event(event: Mapping[str, Any]) -> Request:
    """The request of an API Gateway HTTP API event, payload format 2.0."""
    context = event.get("requestContext") or {}
    path = event.get("rawPath") or "/"
    stage = context.get("stage", "$default")
    if stage != "$default":
        path = path.removeprefix(f"/{stage}") or "/"
    headers: dict[str, str] = {}
    for name, value in (event.get("headers") or {}).items():
        name = name.lower()
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return Request(
        method=context.get("http", {}).get("method", ""),
        path=path,
        query=event.get("rawQueryString") or "",
        headers=headers,
        body=event.get("body") or "",
        body_is_base64=bool(event.get("isBase64Encoded")),
        request_id=context.get("requestId", ""),
    )


def read_bearer_token(request: Request) -> str:
    """The token of the Authorization header. Raises `Unauthorized`."""
    header = request.headers.get("authorization", "")
    if (match := BEARER.fullmatch(header)) and header.isascii():
        return match[1]
    raise errors.Unauthorized("Send one header Authorization: Bearer <token>, with a token issued to you.")


def read_idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key, or None without the header. Raises `IdempotencyKeyInvalid`."""
    key = request.headers.get("idempotency-key")
    if key is not None and not PRINTABLE_KEY.fullmatch(key):
        raise errors.IdempotencyKeyInvalid("An Idempotency-Key is 1-255 printable ASCII characters.")
    return key


def read_failed_payment(request: Request) -> FailedPayment:
    """The body of `POST /decide`. Raises a `Refusal`."""
    fields = _read_object(request)
    payment = FailedPayment(
        invoice_id=_invoice_id(fields),
        failure_code=_text(
            fields,
            "failure_code",
            FAILURE_CODE,
            "1-100 of A-Z a-z 0-9 . _ : / -, the first a letter or digit",
        ),
        attempt=_count(fields, "attempt", default=1, least=1),
        prior_failures=_count(fields, "prior_failures", default=0, least=0),
    )
    _refuse_other_fields(fields, {"invoice_id", "failure_code", "attempt", "prior_failures"})
    return payment


def read_outcome_report(request: Request) -> OutcomeReport:
    """The body of `POST /decisions/{invoice_id}/outcome`. Raises a `Refusal`."""
    fields = _read_object(request)
    report = OutcomeReport(
        outcome=_text(fields, "outcome", re.compile("|".join(OUTCOMES)), "paid or not_paid"),
        report_key=_text(fields, "report_key", PRINTABLE_KEY, "1-255 printable ASCII characters"),
    )
    _refuse_other_fields(fields, {"outcome", "report_key"})
    return report


def is_invoice_id(text: str) -> bool:
    """Whether `text` can name an invoice: the characters, no segment that a path would fold away, no route's name."""
    segments = text.split("/")
    return (
        INVOICE_ID.fullmatch(text) is not None
        and not any(segment in {"", ".", ".."} for segment in segments)
        and text != SUMMARY_ID
    )


def read_page(request: Request, *, kinds: bool = False) -> Page:
    """The query of a listing: `limit`, `cursor` and, for refusals, `kind`. Raises `InvalidQuery`."""
    allowed = ("limit", "cursor", "kind") if kinds else ("limit", "cursor")
    parameters: dict[str, str] = {}
    for name, value in urllib.parse.parse_qsl(request.query, keep_blank_values=True):
        if name not in allowed:
            raise errors.InvalidQuery(f"This listing takes {', '.join(allowed)}.", field=printable(name))
        if name in parameters:
            raise errors.InvalidQuery("A query parameter is given once.", field=name)
        parameters[name] = value
    limit = parameters.get("limit", str(DEFAULT_LIMIT))
    if not (LIMIT.fullmatch(limit) and 1 <= int(limit) <= MAX_LIMIT):
        raise errors.InvalidQuery(f"limit is a whole number from 1 to {MAX_LIMIT}.", field="limit")
    kind = parameters.get("kind")
    if kind is not None and kind not in REFUSAL_KINDS:
        raise errors.InvalidQuery(f"kind is {' or '.join(REFUSAL_KINDS)}.", field="kind")
    cursor = parameters.get("cursor")
    listing = (kind or REFUSALS) if kinds else HISTORY
    return Page(int(limit), None if cursor is None else read_cursor(listing, cursor), kind, listing)


def write_cursor(listing: str, last_id: uuid.UUID) -> str:
    """The cursor that goes on with `listing` after the entry `last_id`."""
    return base64.urlsafe_b64encode(CURSOR_MARKS[listing] + last_id.bytes).rstrip(b"=").decode()


def read_cursor(listing: str, cursor: str) -> uuid.UUID:
    """The id in a cursor. Raises `InvalidQuery` for anything that `write_cursor` doesn't write for `listing`."""
    try:
        last_id = uuid.UUID(bytes=base64.urlsafe_b64decode(cursor + "=")[1:])
    except ValueError:
        refuse_cursor()
    if write_cursor(listing, last_id) != cursor:
        refuse_cursor()
    return last_id


def refuse_cursor() -> NoReturn:
    raise errors.InvalidQuery("cursor is the next of this listing's page before, as it was given.", field="cursor")


def problem_response(problem: errors.Problem, request_id: str) -> Response:
    """`problem` as RFC 9457 problem details."""
    body: dict[str, object] = {
        "type": f"urn:paypilot:problem:{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
    }
    headers: dict[str, str] = {}
    if problem.field is not None:
        body["field"] = problem.field
    if isinstance(problem, errors.Refusal) and problem.refusal_id:
        body["refusal_id"] = problem.refusal_id
    if isinstance(problem, errors.RailRefused):
        body["refusal"] = asdict(problem.why)
    if isinstance(problem, errors.MethodNotAllowed):
        headers["allow"] = problem.allowed
    if isinstance(problem, errors.Unauthorized):
        headers["www-authenticate"] = "Bearer"
    if isinstance(problem, errors.AuditUnavailable):
        headers["retry-after"] = "5"
    if isinstance(problem, errors.Internal):
        body["request_id"] = request_id
    return Response(problem.status, json.dumps(body).encode(), PROBLEM_JSON, headers, facts={"code": problem.code})


def write_event_response(response: Response, request: Request) -> dict[str, Any]:
    """`response` in API Gateway's payload format 2.0, with the headers that every answer carries."""
    headers = {
        "cache-control": "no-store",
        "content-type": response.content_type,
        "x-content-type-options": "nosniff",
        "x-request-id": request.request_id,
        **response.headers,
    }
    body = "" if request.method == "HEAD" else response.body.decode()
    return {"statusCode": response.status, "headers": headers, "body": body, "isBase64Encoded": False}


def printable(name: str) -> str:
    """A field's name as it may be echoed: ASCII escapes for the rest, cut to 64 characters."""
    return json.dumps(name)[1:-1][:64]


def _read_object(request: Request) -> dict[str, Any]:
    try:
        fields = STRICT_JSON.decode(_read_body(request).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise errors.InvalidJson("The body is one JSON text in UTF-8 (RFC 8259), with no BOM.") from error
    if not isinstance(fields, dict):
        raise errors.NotAnObject("The body's top level is a JSON object.")
    return fields


def _read_body(request: Request) -> bytes:
    if not request.body_is_base64:
        body = request.body.encode("utf-8", "surrogatepass")
    elif len(request.body) <= MAX_BASE64_CHARACTERS:
        body = _decode_base64(request.body)
    else:
        raise _too_large()
    if len(body) > MAX_BODY_BYTES:
        raise _too_large()
    return body


def _too_large() -> errors.BodyTooLarge:
    return errors.BodyTooLarge(f"A body is at most {MAX_BODY_BYTES} bytes.")


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise errors.InvalidJson("The body is base64 where the event says so.") from error


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise errors.DuplicateField("Each field is given once.", field=printable(name))
        fields[name] = value
    return fields


def _refuse_constant(_: str) -> NoReturn:
    raise errors.InvalidJson("NaN and Infinity are not JSON.")


def _bounded_integer(digits: str) -> int:
    # An integer of thousands of digits costs quadratic time to read, and forty are out of any range just as well.
    return int(digits[:40])


STRICT_JSON = json.JSONDecoder(
    object_pairs_hook=_unique_fields, parse_constant=_refuse_constant, parse_int=_bounded_integer
)


def _invoice_id(fields: Mapping[str, Any]) -> str:
    allowed = (
        "1-255 of A-Z a-z 0-9 . _ : / -, the first a letter or digit, with no empty, . or .. path segment, "
        f"and not {SUMMARY_ID}"
    )
    invoice_id = _text(fields, "invoice_id", INVOICE_ID, allowed)
    if not is_invoice_id(invoice_id):
        raise errors.InvalidValue(f"invoice_id is {allowed}.", field="invoice_id")
    return invoice_id


def _text(fields: Mapping[str, Any], name: str, pattern: re.Pattern[str], allowed: str) -> str:
    if name not in fields:
        raise errors.MissingField(f"{name} is required: {allowed}.", field=name)
    value = fields[name]
    if not isinstance(value, str):
        raise errors.InvalidType(f"{name} is a string: {allowed}.", field=name)
    if not pattern.fullmatch(value):
        raise errors.InvalidValue(f"{name} is {allowed}.", field=name)
    return value


def _count(fields: Mapping[str, Any], name: str, *, default: int, least: int) -> int:
    value = fields.get(name, default)
    if type(value) is not int:
        raise errors.InvalidType(f"{name} is an integer from {least} to {LARGEST_COUNT}.", field=name)
    if not least <= value <= LARGEST_COUNT:
        raise errors.InvalidValue(f"{name} is an integer from {least} to {LARGEST_COUNT}.", field=name)
    return value


def _refuse_other_fields(fields: Mapping[str, Any], known: set[str]) -> None:
    for name in fields:
        if name == "client_id":
            raise errors.ClientIdInBody("The client is known by its token: a body does not name it.", field=name)
        if name not in known:
            raise errors.UnknownField(f"The fields are {', '.join(sorted(known))}.", field=printable(name))
