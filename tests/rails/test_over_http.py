"""The rails' routes answer from the tables alone: they never reach the record.

What they answer is in tests/contract/test_rails.py.
"""

from typing import Any

import psycopg
import pytest

from paypilot import function
from paypilot.call import Call
from paypilot.http.request import Request
from paypilot.http.response import Response
from paypilot.record.database import Database
from paypilot.record.rows import Record
from paypilot.routes import match_route
from paypilot.settings import read_settings
from support.slice import TOKEN, TOKENS, TestDatabase

FAR = float("inf")


def ask(method: str, path: str, body: str = "", **headers: str) -> Response:
    """The function's own answer."""
    request = Request(method, path, "", headers, body, False, "id")
    route, parameters = match_route(method, path)
    return function.answer(Call(route, request, parameters, function.published, Record(no_client, "")), FAR)


def no_client(work: object) -> Any:
    raise AssertionError("a public route used the record")


@pytest.fixture(autouse=True)
def no_tokens_and_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "settings", read_settings({}))
    monkeypatch.setattr(function, "database", Database(iam_login=False))


def test_a_lookup_opens_no_database_connection(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "settings", read_settings({"DECISION_API_TOKEN": TOKENS}))
    connect, opened = psycopg.Connection.connect, []

    def counted(*args: Any, **named: Any) -> Any:
        opened.append(named)
        return connect(*args, **named)

    monkeypatch.setattr(psycopg.Connection, "connect", counted)
    for path in ("/rails", "/rails/ach", "/rails/sepa/codes/AM04", "/rails/ach/codes/R99", "/rails/bacs/codes/0"):
        assert ask("GET", path).status in {200, 422}
    assert len(opened) == 0
    # The control: the same function does connect where a route needs the record.
    body = '{"invoice_id": "in_1", "failure_code": "ach:R01"}'
    assert ask("POST", "/decide", body, authorization=f"Bearer {TOKEN}").status == 200
    assert len(opened) == 1
    function.database.drop()


@pytest.mark.parametrize("path", ["/rails/bacs/codes/0", "/rails/ach/codes/R1"])
def test_a_refused_lookup_is_not_counted_among_the_clients_refusals(path: str) -> None:
    response = ask("GET", path)
    assert ("code" in response.facts, response.metric) == (False, None)
