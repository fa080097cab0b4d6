"""Which route a method and a path are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paypilot.core import errors
from paypilot.service import HISTORY, OUTCOME, find_route, route_name

SUMMARY = "GET /decisions/outcomes/summary"


@pytest.mark.parametrize(
    ("method", "path", "route", "invoice_id"),
    [
        ("GET", "/health", "GET /health", ""),
        ("HEAD", "/health", "GET /health", ""),
        ("POST", "/decide", "POST /decide", ""),
        ("GET", "/refusals", "GET /refusals", ""),
        ("GET", "/decisions/outcomes/summary", SUMMARY, ""),
        ("GET", "/decisions/in_1", HISTORY, "in_1"),
        ("HEAD", "/decisions/in_1", HISTORY, "in_1"),
        ("GET", "/decisions/a/b", HISTORY, "a/b"),
        ("GET", "/decisions/a/outcome", HISTORY, "a/outcome"),
        ("POST", "/decisions/a/outcome", OUTCOME, "a"),
        ("POST", "/decisions/a/outcome/outcome", OUTCOME, "a/outcome"),
        ("POST", "/decisions/outcomes/summary/outcome", OUTCOME, "outcomes/summary"),
        ("GET", "/decisions/outcomes/summary/", HISTORY, "outcomes/summary/"),
    ],
)
def test_a_path_is_its_route(method: str, path: str, route: str, invoice_id: str) -> None:
    assert find_route(method, path) == (route, invoice_id)


@pytest.mark.parametrize(
    "path", ["", "/", "/decide/", "/Decide", "/decisions", "/decisions/", "/health/", "//health", "/x"]
)
def test_any_other_path_is_none(path: str) -> None:
    with pytest.raises(errors.NotFound):
        find_route("GET", path)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/health", "GET, HEAD"),
        ("GET", "/decide", "POST"),
        ("HEAD", "/decide", "POST"),
        ("OPTIONS", "/decide", "POST"),
        ("POST", "/decisions/a", "GET, HEAD"),
        ("POST", "/decisions/outcomes/summary", "GET, HEAD"),
        ("DELETE", "/decisions/a/outcome", "GET, HEAD, POST"),
        ("get", "/health", "GET, HEAD"),
    ],
)
def test_another_method_is_told_what_is_allowed(method: str, path: str, allowed: str) -> None:
    with pytest.raises(errors.MethodNotAllowed) as caught:
        find_route(method, path)
    assert caught.value.allowed == allowed


@given(st.text())
def test_everything_between_is_the_invoice_id(invoice_id: str) -> None:
    if invoice_id and invoice_id != "outcomes/summary":
        assert find_route("GET", f"/decisions/{invoice_id}") == (HISTORY, invoice_id)
        assert find_route("POST", f"/decisions/{invoice_id}/outcome") == (OUTCOME, invoice_id)


def test_the_log_is_told_the_route_and_nothing_of_what_the_path_names() -> None:
    assert route_name("HEAD", "/decisions/in_1001") == HISTORY
    assert route_name("POST", "/decisions/in_1001") == "none"
    assert route_name("GET", "/in_1001") == "none"
