"""An answer, and how it becomes API Gateway's payload format 2.0."""

import base64
import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from paypilot.http.request import Request

JSON = "application/json"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})

# ASCII escapes, so that no client's encoding matters; no spaces, as in the canonical bodies.
ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class Response(NamedTuple):
    """One answer. `facts` are for the log line, `metric` is counted: names of our own, never input."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = NO_HEADERS
    facts: Mapping[str, str] = NO_HEADERS
    metric: str | None = None


def json_body(value: object) -> bytes:
    """The bytes of a body that is not canonical."""
    return ENCODER.encode(value).encode()


def json_response(value: object) -> Response:
    return Response(200, json_body(value))


def recorded_response(
    body: bytes, *, replayed: bool, new_status: int = 200, facts: Mapping[str, str] = NO_HEADERS
) -> Response:
    """A committed row's body, the same bytes each time, with their digest (RFC 9530)."""
    body_digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    headers = {"repr-digest": f"sha-256=:{body_digest}:"}
    if replayed:
        headers["idempotent-replayed"] = "true"
    return Response(200 if replayed else new_status, body, headers=headers, facts=facts)


def cacheable_response(request: Request, body: bytes, version: str, seconds_max: int) -> Response:
    """A body that is the same for everybody until a deployment; 304 where the caller has it by its ETag."""
    etag = f'"{version}"'
    headers = {"etag": etag, "cache-control": f"public, max-age={seconds_max}"}
    asked = request.headers.get("if-none-match", "")
    if asked.strip() == "*" or etag in (tag.strip().removeprefix("W/") for tag in asked.split(",")):
        return Response(304, b"", headers=headers)
    return Response(200, body, headers=headers)


def write_event_response(response: Response, request: Request) -> dict[str, Any]:
    """`response` in payload format 2.0, with the headers that every answer carries.

    The answer to HEAD has the body of GET: the host takes it off, and keeps its length.
    """
    headers = {
        "cache-control": "no-store",
        "content-type": response.content_type,
        "x-content-type-options": "nosniff",
        "x-request-id": request.request_id,
        **response.headers,
    }
    return {
        "statusCode": response.status,
        "headers": headers,
        "body": response.body.decode(),
        "isBase64Encoded": False,
    }
