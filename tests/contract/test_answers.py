"""What every answer owes, and what is no answer of ours. `Caller.send` holds every answer of this suite to the same."""

import httpx
import pytest

from contract import caller as callers
from contract.caller import Caller, GatewayAnswer, is_gateway_made, new_invoice

SAMPLE = [
    ("GET", "/health", 200),
    ("HEAD", "/health", 200),
    ("GET", "/openapi.json", 200),
    ("GET", "/refusals", 200),
    ("GET", "/nowhere", 404),
    ("HEAD", "/nowhere", 404),
    ("PUT", "/decide", 405),
    ("POST", "/decide", 422),
    ("GET", "/refusals?x", 422),
    ("GET", "/decisions/nobody-knows-this-one", 404),
    ("GET", "/decisions/outcomes/summary", 200),
]


@pytest.mark.parametrize(("method", "path", "status"), SAMPLE)
def test_every_answer_is_marked_and_never_cached(client: Caller, method: str, path: str, status: int) -> None:
    response = client.send(method, path)
    assert response.status_code == status
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-type"] == ("application/json" if status < 400 else "application/problem+json")


def test_every_answer_has_a_request_id_of_its_own_that_the_caller_does_not_choose(client: Caller) -> None:
    answers = [client.send(method, path, headers={"x-request-id": "mine"}) for method, path, _ in SAMPLE]
    ids = {answer.headers["x-request-id"] for answer in answers}
    assert len(ids) == len(SAMPLE)
    assert "mine" not in ids


def test_a_problem_of_the_same_code_has_the_same_type_and_title(client: Caller) -> None:
    first = client.try_decide(new_invoice(), attempt=0).json()
    second = client.try_decide(new_invoice(), prior_failures=-1).json()
    assert (first["type"], first["title"]) == (second["type"], second["title"])
    assert first["type"] == "urn:paypilot:problem:invalid_value"
    assert (first["field"], second["field"]) == ("attempt", "prior_failures")
    assert "1000" in first["detail"]


@pytest.mark.parametrize(("status", "text"), [(429, "Too Many Requests"), (500, "Internal Server Error"), (503, "x")])
def test_an_answer_of_the_gateway_is_known_apart(status: int, text: str) -> None:
    assert is_gateway_made(httpx.Response(status, json={"message": text}))


@pytest.mark.parametrize("code", ["audit_unavailable", "internal"])
def test_a_problem_of_ours_is_never_taken_for_the_gateways(code: str) -> None:
    headers = {"content-type": "application/problem+json"}
    assert not is_gateway_made(httpx.Response(503, json={"code": code}, headers=headers))
    assert not is_gateway_made(httpx.Response(200, json={"status": "ok"}))
    assert not is_gateway_made(httpx.Response(502, text="<html>"))


OURS = httpx.Response(
    200,
    json={"status": "ok", "commit": "unknown"},
    headers={"cache-control": "no-store", "x-request-id": "1", "x-content-type-options": "nosniff"},
)


def behind_gateway(*statuses: int) -> Caller:
    """A caller whose gateway answers with each of `statuses` before the function does."""
    answers = [httpx.Response(status, json={"message": "x"}) for status in statuses] + [OURS]
    caller = Caller("http://slice", "token")
    caller.http = httpx.Client(base_url="http://slice", transport=httpx.MockTransport(lambda _: answers.pop(0)))
    return caller


def test_the_suite_waits_while_the_gateway_throttles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "FIRST_WAIT_SECONDS", 0.0)
    assert behind_gateway(429, 503, 429).get("/health") is OURS


@pytest.mark.parametrize("statuses", [(500,), (504,), (403,), (404,), (429,) * 8], ids=str)
def test_the_suite_fails_on_an_answer_of_the_gateway(monkeypatch: pytest.MonkeyPatch, statuses: tuple[int]) -> None:
    monkeypatch.setattr(callers, "FIRST_WAIT_SECONDS", 0.0)
    with pytest.raises(GatewayAnswer):
        behind_gateway(*statuses).get("/health")
