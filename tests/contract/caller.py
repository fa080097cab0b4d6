"""One client of a running slice, over HTTP only. Every answer that passes here is held to what all answers owe."""

import base64
import hashlib
import json
import time
import uuid
from collections.abc import Iterator
from typing import Any, TypeVar

import httpx
import pytest

from scripts.contract.models import Decision, History, Outcome, Problem, RefusalEntry, Refusals, Summary
from scripts.contract.wire import Wire

Model = TypeVar("Model", bound=Wire)

# API Gateway's own throttling passes; a test account may have a concurrency of ten.
GATEWAY_TRIES = 8
FIRST_WAIT_SECONDS = 0.1
THROTTLED = {429, 503}
# What API Gateway may refuse before any function sees it: what it holds for broken HTTP, or for too much.
REFUSED_BY_GATEWAY = {400, 413, 414, 431}
# The function refuses 413 before it has read such a body; a slow line must not fail the suite.
TIMEOUT_SECONDS = 35.0


class GatewayAnswer(AssertionError):
    """API Gateway answered, not the function: nothing can be concluded about the contract."""


def is_gateway_made(response: httpx.Response) -> bool:
    """Whether the answer is API Gateway's own, `{"message": …}`, which none of ours is."""
    if response.headers.get("content-type", "").startswith("application/problem+json"):
        return False
    try:
        body = response.json()
    except ValueError:
        return False
    return isinstance(body, dict) and {name.lower() for name in body} == {"message"}


def new_invoice() -> str:
    """An invoice id that no run had before."""
    return f"contract/{uuid.uuid4()}"


def new_key() -> str:
    """An Idempotency-Key or report_key that no run had before."""
    return f"contract {uuid.uuid4()}"


class Caller:
    """Calls `base_url` with `token`. `concurrent` is the most connections at once."""

    def __init__(self, base_url: str, token: str, concurrent: int = 10) -> None:
        self.token = token
        self.http = httpx.Client(
            base_url=base_url, timeout=TIMEOUT_SECONDS, limits=httpx.Limits(max_connections=concurrent)
        )

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: Any = None,
        content: bytes | Iterator[bytes] | None = None,
        auth: bool = True,
    ) -> httpx.Response:
        """The answer, checked for what every answer owes. `path` is sent as it stands. Raises `GatewayAnswer`.

        Waits where the gateway throttles, and skips the test where it refuses the request itself.
        """
        sent = [("authorization", f"Bearer {self.token}")] if auth else []
        sent += list(headers.items() if isinstance(headers, dict) else headers or [])
        for tried in range(GATEWAY_TRIES):
            response = self.http.request(method, path, headers=sent, content=content)
            if not is_gateway_made(response):
                check_every_answer(method, response)
                return response
            if response.status_code in REFUSED_BY_GATEWAY:
                pytest.skip(f"the gateway refused this request itself: {response.status_code}")
            if response.status_code not in THROTTLED:
                break
            time.sleep(FIRST_WAIT_SECONDS * 2**tried)
        raise GatewayAnswer(f"{method} was answered {response.status_code} by the gateway: {response.text}")

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, body: Any, *, headers: dict[str, str] | None = None) -> httpx.Response:
        sent = {"content-type": "application/json", **(headers or {})}
        return self.send("POST", path, headers=sent, content=json.dumps(body).encode())

    def try_decide(self, invoice_id: str, key: str | None = None, **fields: Any) -> httpx.Response:
        body = {"invoice_id": invoice_id, "failure_code": "card_expired", **fields}
        return self.post("/decide", body, headers={} if key is None else {"idempotency-key": key})

    def decide(self, invoice_id: str, key: str | None = None, **fields: Any) -> Decision:
        return read(self.try_decide(invoice_id, key, **fields), Decision)

    def try_report(self, invoice_id: str, outcome: str, report_key: str) -> httpx.Response:
        return self.post(f"/decisions/{invoice_id}/outcome", {"outcome": outcome, "report_key": report_key})

    def report(self, invoice_id: str, outcome: str, report_key: str | None = None) -> Outcome:
        return read(self.try_report(invoice_id, outcome, report_key or new_key()), Outcome, 201)

    def history(self, invoice_id: str, query: str = "") -> History:
        return read(self.get(f"/decisions/{invoice_id}{query}"), History)

    def summary(self) -> Summary:
        return read(self.get("/decisions/outcomes/summary"), Summary)

    def refusals(self, query: str = "") -> Refusals:
        return read(self.get(f"/refusals{query}"), Refusals)

    def refusals_since(self, last: RefusalEntry | None) -> list[RefusalEntry]:
        """Everything listed after `last`, newest first."""
        found: list[RefusalEntry] = []
        for page in self.pages("/refusals?limit=200", Refusals):
            for entry in page.refusals:
                if entry == last:
                    return found
                found.append(entry)
        return found

    def newest_refusal(self) -> RefusalEntry | None:
        return next(iter(self.refusals("?limit=1").refusals), None)

    def pages(self, path: str, model: type[Model]) -> Iterator[Model]:
        """Each page of a listing; `path` has its own query."""
        cursor = ""
        while True:
            page = read(self.get(path + cursor), model)
            yield page
            if page.next is None:  # type: ignore[attr-defined]
                return
            cursor = f"&cursor={page.next}"  # type: ignore[attr-defined]


def read(response: httpx.Response, model: type[Model], status: int = 200) -> Model:
    """The body as `model`, strictly, of an answer with `status`."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return model.model_validate_json(response.content)


def refused(response: httpx.Response, status: int, code: str, field: str | None = None) -> Problem:
    """The problem that `response` must be."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    problem = Problem.model_validate_json(response.content)
    assert (problem.code, problem.status) == (code, status)
    assert problem.field == field if "field" in problem.model_fields_set else field is None, problem
    return problem


def recorded_once(caller: Caller, last: RefusalEntry | None, problem: Problem, route: str, gate: str) -> None:
    """Of all that was listed since `last`, the refusal `problem` is the only row."""
    (row,) = caller.refusals_since(last)
    assert (row.id, row.kind, row.reason) == (problem.refusal_id, "refusal", problem.code)
    assert (row.route, row.gate) == (route, gate)


def check_every_answer(method: str, response: httpx.Response) -> None:
    """Headers, digest and problem details: on every answer, whatever was asked."""
    headers = response.headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-request-id"]
    # What the rails' tables say is the same for everybody, and changes with a deployment only.
    kept = response.request.url.path.startswith("/rails") and response.status_code < 400
    assert headers["cache-control"] == ("public, max-age=300" if kept else "no-store")
    assert ("etag" in headers) == kept
    assert headers["content-type"] in {"application/json", "application/problem+json"}
    assert (headers["content-type"] == "application/problem+json") == (response.status_code >= 400)
    if method == "HEAD":
        assert response.content == b""
    elif response.status_code >= 400:
        problem = Problem.model_validate_json(response.content)
        assert problem.status == response.status_code
        assert problem.title and problem.detail
        assert ("retry-after" in headers) == (problem.code == "audit_unavailable")
        assert ("www-authenticate" in headers) == (problem.code == "unauthorized")
        assert ("allow" in headers) == (problem.code == "method_not_allowed")
    if digest := headers.get("repr-digest"):
        expected = base64.b64encode(hashlib.sha256(response.content).digest()).decode()
        assert digest == f"sha-256=:{expected}:"


def canonical(value: Any) -> bytes:
    """RFC 8785 for the values of this contract: ASCII names, strings, small integers, booleans, null."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
