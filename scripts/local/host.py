"""A real HTTP server that turns each request into the event that API Gateway makes of it.

Facts of payload format 2.0 that it keeps: header names in lower case, a repeated header joined by commas, the path
percent-decoded, the body base64 unless its content type is text or a well-known JSON or XML one.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html

Invalid HTTP, and more than API Gateway takes, never reaches the handler: the HTTP server answers in plain text, where
API Gateway has JSON of its own.
"""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from http.client import responses
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from waitress.server import create_server

from scripts.local.checkout import ROOT
from scripts.local.events import Context, event

# API Gateway's own limit on a request's body.
LARGEST_BODY_BYTES = 10 * 1024 * 1024
# Each thread keeps one connection, as each function instance does. More requests than threads wait for one.
THREADS = 16
OPEN_SOCKETS = 500

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


class HostError(Exception):
    """The host did not start; the message says what it logged."""


def http_server(handler: Handler, listener: socket.socket) -> Any:
    """A server whose `run()` answers on `listener` by a Lambda handler, until an exception ends it."""
    return create_server(
        wsgi_application(handler),
        sockets=[listener],
        threads=THREADS,
        max_request_body_size=LARGEST_BODY_BYTES,
        connection_limit=OPEN_SOCKETS,
        asyncore_use_poll=True,
        clear_untrusted_proxy_headers=False,
    )


@contextlib.contextmanager
def running_host(log: Path, **environment: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The URL and the process of a host that was started as `make run` starts it, on a free port.

    What it logs is appended to `log`. Raises `HostError`.
    """
    with (
        log.open("a") as stderr,
        subprocess.Popen(
            [sys.executable, ROOT / "scripts" / "serve.py"],
            env={**os.environ, "PORT": "0", **environment},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            words = process.stdout.readline().split()
            if words[:1] != ["ready"]:
                raise HostError(f"the host did not start: {log.read_text()}")
            yield words[1], process
        finally:
            process.terminate()


def wsgi_application(handler: Handler) -> Callable[..., Iterable[bytes]]:
    """A WSGI application that answers by a Lambda handler of payload format 2.0."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = handler(event_of(environ), Context())
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
    return event(
        environ["REQUEST_METHOD"],
        path,
        query=query,
        headers=headers,
        body=environ["wsgi.input"].read(),
        protocol=environ["SERVER_PROTOCOL"],
        source_ip=environ["REMOTE_ADDR"],
    )
