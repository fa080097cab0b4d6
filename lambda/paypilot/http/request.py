"""An API Gateway event, payload format 2.0, as one HTTP request."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Request(NamedTuple):
    """One HTTP request. Header names are lower case; `path` is percent-decoded and has no stage; `query` is raw."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: str
    body_is_base64: bool
    request_id: str


def read_event(event: object) -> Request:
    """The request of an HTTP API event. What isn't such an event is a request for no path."""
    fields = _mapping(event)
    context = _mapping(fields.get("requestContext"))
    path = _text(fields.get("rawPath")) or "/"
    stage = _text(context.get("stage")) or "$default"
    if stage != "$default":
        path = path.removeprefix(f"/{stage}") or "/"
    headers: dict[str, str] = {}
    for name, value in _mapping(fields.get("headers")).items():
        if value is not None:
            name, value = str(name).lower(), str(value)
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    return Request(
        method=_text(_mapping(context.get("http")).get("method")),
        path=path,
        query=_text(fields.get("rawQueryString")),
        headers=headers,
        body=_text(fields.get("body")),
        body_is_base64=fields.get("isBase64Encoded") is True,
        request_id=_text(context.get("requestId")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
