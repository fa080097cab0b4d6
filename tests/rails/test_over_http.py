"""The rails' routes answer from the tables alone: they never reach the record.

What they answer is in tests/contract/test_rails.py.
"""

from types import SimpleNamespace
from typing import NoReturn

import pytest

from paypilot import function
from paypilot.call import Call
from paypilot.http.request import Request
from paypilot.http.response import Response
from paypilot.record.rows import Record
from paypilot.routes import match_route
from paypilot.settings import read_settings
from support.slice import TOKEN, TOKENS


def ask(method: str, path: str, body: str = "", **headers: str) -> Response:
    """The function's own answer."""
    request = Request(method, path, "", headers, body, False, "id")
    route, parameters = match_route(method, path)
    return function.answer(Call(route, request, parameters, function.published, Record(reached, "")), float("inf"))


def reached(*_: object, **__: object) -> NoReturn:
    raise LookupError("the record was reached")


def test_a_lookup_never_reaches_the_record_and_a_decision_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "database", SimpleNamespace(run=reached))
    for path in ("/rails", "/rails/ach", "/rails/sepa/codes/AM04", "/rails/ach/codes/R99", "/rails/bacs/codes/0"):
        assert ask("GET", path).status in {200, 422}
    monkeypatch.setattr(function, "settings", read_settings({"DECISION_API_TOKEN": TOKENS}))
    with pytest.raises(LookupError, match="reached"):
        ask("POST", "/decide", '{"invoice_id": "in_1", "failure_code": "ach:R01"}', authorization=f"Bearer {TOKEN}")


@pytest.mark.parametrize("path", ["/rails/bacs/codes/0", "/rails/ach/codes/R1"])
def test_a_refused_lookup_is_not_counted_among_the_clients_refusals(path: str) -> None:
    response = ask("GET", path)
    assert ("code" in response.facts, response.metric) == (False, None)
