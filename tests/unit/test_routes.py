"""Which route a method and a path are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paypilot.routes import ROUTES, match_route

SUMMARY, HISTORY = "GET /decisions/outcomes/summary", "GET /decisions/{invoice_id}"
OUTCOME = "POST /decisions/{invoice_id}/outcome"


def found(method: str, path: str) -> tuple[str, str]:
    route, parameters = match_route(method, path)
    return route.name, parameters.get("invoice_id", "")


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
    assert found(method, path) == (route, invoice_id)


@given(st.text())
def test_everything_between_is_the_invoice_id(invoice_id: str) -> None:
    if invoice_id and invoice_id != "outcomes/summary":
        assert found("GET", f"/decisions/{invoice_id}") == (HISTORY, invoice_id)
        assert found("POST", f"/decisions/{invoice_id}/outcome") == (OUTCOME, invoice_id)


@pytest.mark.parametrize(
    ("path", "parameters"),
    [("/rails/ach", {"rail": "ach"}), ("/rails/a%2/codes/R 1", {"rail": "a%2", "code": "R 1"}), ("/rails", {})],
)
def test_a_segment_of_a_path_is_a_parameter(path: str, parameters: dict[str, str]) -> None:
    assert match_route("GET", path).parameters == parameters


def test_a_routes_name_holds_no_part_of_a_path_that_a_caller_chose() -> None:
    assert match_route("HEAD", "/decisions/in_1001").route.name == HISTORY
    assert len({route.name for route in ROUTES}) == len(ROUTES)
