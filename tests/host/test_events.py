"""The local host's events are API Gateway's: raw HTTP in, the event that the handler is given out."""

import base64
import contextlib
import socket
import threading
from typing import Any

import pytest

from scripts.local.host import http_server

ANSWER = {"statusCode": 200, "headers": {"content-type": "text/plain"}, "body": "answered", "isBase64Encoded": False}


class Gateway:
    """A running host whose handler keeps its events."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=http_server(self._handle, self.listener).run, daemon=True).start()

    def _handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        assert 0 < context.get_remaining_time_in_millis() <= 10_000
        self.events.append(event)
        return ANSWER

    def send(self, request: bytes) -> bytes:
        """What comes back for these bytes, until it is an answer or the host closes."""
        received = b""
        # Refused early, what is still on its way resets the connection.
        with (
            contextlib.suppress(ConnectionResetError, BrokenPipeError),
            socket.create_connection(self.listener.getsockname(), timeout=10) as connection,
        ):
            connection.sendall(request)
            while b"answered" not in received and (data := connection.recv(65536)):
                received += data
        return received

    def event(self, request: bytes) -> dict[str, Any]:
        self.events.clear()
        assert b"200 OK" in self.send(request)
        (event,) = self.events
        return event


@pytest.fixture(scope="module")
def gateway() -> Gateway:
    return Gateway()


def post(body: bytes, content_type: bytes | None) -> bytes:
    header = b"" if content_type is None else b"Content-Type: " + content_type + b"\r\n"
    return b"POST /decide HTTP/1.1\r\nHost: h\r\n%bContent-Length: %d\r\n\r\n%b" % (header, len(body), body)


def test_header_names_are_lower_case_and_repeated_ones_are_joined_by_commas(gateway: Gateway) -> None:
    event = gateway.event(b"GET / HTTP/1.1\r\nHost: h\r\nX-Ab: a\r\nAUTHORIZATION: one\r\nAuthorization: two\r\n\r\n")
    headers = event["headers"]
    assert headers["x-ab"] == "a"
    assert [value.strip() for value in headers["authorization"].split(",")] == ["one", "two"]
    assert all(name == name.lower() for name in headers)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/decisions/a%2Fb", "/decisions/a/b", ""),
        (b"/decisions/%E2%82%AC", "/decisions/\u20ac", ""),
        (b"/decisions/%ff", "/decisions/\ufffd", ""),
        (b"/a%3Fb?limit=1%20&limit=2&x=%2F", "/a?b", "limit=1%20&limit=2&x=%2F"),
        (b"/a+b?c+d", "/a+b", "c+d"),
        (b"//a//b/../c", "//a//b/../c", ""),
        (b"/a%252Fb", "/a%2Fb", ""),
        (b"/?", "/", ""),
        (b"http://elsewhere.example/health?x=1", "/health", "x=1"),
        (b"http://elsewhere.example", "/", ""),
    ],
)
def test_the_path_is_decoded_once_and_the_query_is_raw(gateway: Gateway, target: bytes, path: str, query: str) -> None:
    event = gateway.event(b"GET " + target + b" HTTP/1.1\r\nHost: h\r\n\r\n")
    assert (event["rawPath"], event["rawQueryString"]) == (path, query)
    assert event["requestContext"]["http"]["path"] == path


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/json",
        b"APPLICATION/JSON; charset=utf-8",
        b"text/plain",
        b"application/xml",
        b"application/vnd.x+json",
    ],
)
def test_a_textual_body_comes_as_it_is(gateway: Gateway, content_type: bytes) -> None:
    event = gateway.event(post('{"é": 1}'.encode(), content_type))
    assert (event["body"], event["isBase64Encoded"]) == ('{"é": 1}', False)


@pytest.mark.parametrize("content_type", [None, b"image/png", b"application/x-www-form-urlencoded", b"json"])
def test_any_other_body_comes_in_base64_and_so_does_one_without_a_type(
    gateway: Gateway, content_type: bytes | None
) -> None:
    event = gateway.event(post(b'{"a": 1}', content_type))
    assert (base64.b64decode(event["body"]), event["isBase64Encoded"]) == (b'{"a": 1}', True)


def test_bytes_that_are_no_text_come_in_base64_whatever_their_type_says(gateway: Gateway) -> None:
    event = gateway.event(post(b"\xff\xfe", b"application/json"))
    assert (base64.b64decode(event["body"]), event["isBase64Encoded"]) == (b"\xff\xfe", True)


def test_a_request_without_a_body_has_none_in_its_event(gateway: Gateway) -> None:
    event = gateway.event(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert "body" not in event
    assert event["isBase64Encoded"] is False


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 300_000 + b"\r\n\r\n", b" 431 "),
        (b"nonsense\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n", b" 400 "),
        (post(b"", b"text/plain").replace(b"Content-Length: 0", b"Content-Length: 99999999"), b" 413 "),
    ],
    ids=["huge header", "no HTTP", "no length", "bad chunk", "huge body"],
)
def test_what_is_no_request_never_reaches_the_handler_and_the_host_goes_on(
    gateway: Gateway, request_bytes: bytes, status: bytes
) -> None:
    gateway.events.clear()
    answer = gateway.send(request_bytes)
    assert not answer or status in answer.splitlines()[0] + b" "
    assert gateway.events == []
    assert gateway.event(b"GET /after HTTP/1.1\r\nHost: h\r\n\r\n")["rawPath"] == "/after"
