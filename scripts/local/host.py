"""Host 2: a real HTTP server that turns each request into the event that API Gateway makes of it.

Facts of payload format 2.0 that it keeps: header names in lower case, a repeated header joined by commas, the path
percent-decoded, the body base64 unless its content type is text or a well-known JSON or XML one.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html

What is no HTTP, or more than API Gateway takes, the HTTP server answers itself: in plain text, where API Gateway has
JSON of its own. The handler never sees it.
"""

import base64
import re
import time
import uuid
from collections.abc import Callable, Iterable
from http.client import responses
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

# API Gateway's own limit on a request's body.
LARGEST_BODY_BYTES = 10 * 1024 * 1024
# The function's timeout as it is deployed.
FUNCTION_SECONDS = 10.0

TEXTUAL = re.compile(r"text/.*|application/(json|javascript|xml|.+\+json|.+\+xml)", re.IGNORECASE)


class LocalContext:
    """What the handler asks of a Lambda context: how long it still has."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + FUNCTION_SECONDS

    def get_remaining_time_in_millis(self) -> int:
        return int((self._ends - time.monotonic()) * 1000)


def wsgi_application(
    handler: Callable[[dict[str, Any], Any], dict[str, Any]],
) -> Callable[..., Iterable[bytes]]:
    """A WSGI application that answers by a Lambda handler of payload format 2.0."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = handler(event_of(environ), LocalContext())
        status = answer["statusCode"]
        body, headers = answer["body"].encode(), list(answer["headers"].items())
        if environ["REQUEST_METHOD"] == "HEAD":
            body, headers = b"", [*headers, ("content-length", str(len(body)))]
        start_response(f"{status} {responses[status]}", headers)
        return [body]

    return application


def event_of(environ: dict[str, Any]) -> dict[str, Any]:
    """The payload-2.0 event of a WSGI request (waitress's, which gives the raw target as REQUEST_URI)."""
    target, _, query = environ["REQUEST_URI"].partition("?")
    if not target.startswith("/"):
        target = urlsplit(target).path or "/"
    path = unquote_to_bytes(target).decode("utf-8", "replace")
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name in {"CONTENT_TYPE", "CONTENT_LENGTH"} and value)
    }
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "http": {
                "method": environ["REQUEST_METHOD"],
                "path": path,
                "protocol": environ["SERVER_PROTOCOL"],
                "sourceIp": environ["REMOTE_ADDR"],
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": str(uuid.uuid4()),
            "routeKey": "$default",
            "stage": "$default",
            "timeEpoch": int(time.time() * 1000),
        },
        **_event_body(environ["wsgi.input"].read(), headers.get("content-type", "")),
    }


def _event_body(body: bytes, content_type: str) -> dict[str, Any]:
    if not body:
        return {"isBase64Encoded": False}
    if TEXTUAL.fullmatch(content_type.partition(";")[0].strip()):
        try:
            return {"body": body.decode(), "isBase64Encoded": False}
        except UnicodeDecodeError:
            pass  # an event is JSON and can't carry these bytes as text
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
