"""The arguments that Lambda gives a handler: an event of payload format 2.0 as API Gateway makes it, and a context.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import base64
import re
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

# The function's timeout as it is deployed.
FUNCTION_SECONDS = 10.0

TEXTUAL = re.compile(r"text/.*|application/(json|javascript|xml|.+\+json|.+\+xml)", re.IGNORECASE)


class Context:
    """A Lambda context: the function's remaining time by `clock`, and which function it is."""

    function_name = "paypilot-local"
    memory_limit_in_mb = 256
    invoked_function_arn = "arn:aws:lambda:eu-central-1:000000000000:function:paypilot-local"
    aws_request_id = "00000000-0000-4000-8000-000000000000"

    def __init__(self, clock: Callable[[], float] = time.monotonic, seconds: float = FUNCTION_SECONDS) -> None:
        self._clock = clock
        self._ends = clock() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._ends - self._clock()) * 1000))


def event(
    method: str,
    path: str,
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    protocol: str = "HTTP/1.1",
    source_ip: str = "127.0.0.1",
) -> dict[str, Any]:
    """The event of one request. Names of headers are in lower case, and `path` is decoded."""
    headers = dict(headers or {})
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "http": {
                "method": method,
                "path": path,
                "protocol": protocol,
                "sourceIp": source_ip,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": str(uuid.uuid4()),
            "routeKey": "$default",
            "stage": "$default",
            "timeEpoch": int(time.time() * 1000),
        },
        **_body(body, headers.get("content-type", "")),
    }


def _body(body: bytes, content_type: str) -> dict[str, Any]:
    if not body:
        return {"isBase64Encoded": False}
    if TEXTUAL.fullmatch(content_type.partition(";")[0].strip()):
        try:
            return {"body": body.decode(), "isBase64Encoded": False}
        except UnicodeDecodeError:
            pass  # an event is JSON and can't carry these bytes as text
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
