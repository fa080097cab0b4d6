"""One client of a running slice, over HTTP only. Every answer that passes here is held to what all answers owe.

Bodies are checked by the OpenAPI document that the slice serves, and by AGREE for what no schema can say. Nothing of
the product is imported, so that this folder runs alone: `python -m pytest contract` beside it, with a URL and a token.
"""

import base64
import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import jsonschema
import pytest

# JSON Schema takes 1.0 for an integer, and the contract doesn't.
STRICT = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)
CHANGES_FIRST = {
    "yes": "nothing",
    "not_on_this_entry": "account_details",
    "not_until_they_ask": "their_instruction",
    "corrected_only": "our_own_entry",
    "no": "nothing_will",
}

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


class Values(SimpleNamespace):
    """A JSON object of an answer, its fields as attributes."""


class Document:
    """The schemas by which bodies are read: those that the slice under test serves."""

    components: dict[str, Any]

    @classmethod
    def parse(cls, content: bytes, schema: str) -> Values:
        """The body, which must be what `schema` describes and may not contradict itself."""
        checker = STRICT({"$ref": f"#/components/schemas/{schema}", "components": cls.components})
        wrong = jsonschema.exceptions.best_match(checker.iter_errors(json.loads(content)))
        assert wrong is None, f"{schema} at {wrong.json_path}: {wrong.message}"
        values: Values = json.loads(content, object_hook=lambda fields: Values(**fields))
        if schema in AGREE:
            AGREE[schema](values)
        return values


def decision_agrees(decision: Values) -> None:
    assert decision.retry == (decision.retry_in_days is not None) == (decision.next_retry_at is not None)
    if decision.retry:
        days = timedelta(days=decision.retry_in_days)
        assert moment(decision.next_retry_at) - moment(decision.decided_at) == days
    assert decision.escalated == (decision.churn_risk == "high")
    gates = [(gate.gate, gate.result) for gate in decision.gates_checked]
    assert gates[:2] == [("authentication", "passed"), ("body", "passed")]
    assert gates[2] in {("rules_table", "matched"), ("rules_table", "fell_through")}
    assert gates[3:] == [("audit", "recorded")]
    assert uuid.UUID(decision.decision_id).version == 7


def history_agrees(history: Values) -> None:
    for decision in history.decisions:
        decision_agrees(decision)
        assert decision.invoice_id == history.invoice_id


def summary_agrees(summary: Values) -> None:
    for counts in (summary, *summary.by_rule):
        assert counts.invoices == counts.paid + counts.not_paid + counts.unknown
    for name in ("invoices", "paid", "not_paid", "unknown"):
        assert getattr(summary, name) == sum(getattr(counts, name) for counts in summary.by_rule)
    reported = summary.paid + summary.not_paid
    assert (summary.recovery_rate is None) == (summary.recovery_rate_withheld is not None) == (reported < 30)
    assert summary.recovery_rate in {None, summary.paid / max(reported, 1)}


def problem_agrees(problem: Values) -> None:
    assert problem.type == f"urn:paypilot:problem:{problem.code}"


def rail_answer_agrees(answer: Values) -> None:
    assert answer.changes_first == CHANGES_FIRST[answer.goes_again]
    assert answer.a_person_acts_first == (answer.goes_again == "no")
    assert (answer.policy.retry_in_days is not None) == (answer.goes_again == "yes")
    assert answer.sources if answer.matched else answer.goes_again == "no"


# What one field says, no other may deny.
AGREE: dict[str, Callable[[Values], None]] = {
    "Decision": decision_agrees,
    "History": history_agrees,
    "Summary": summary_agrees,
    "Problem": problem_agrees,
    "RailAnswer": rail_answer_agrees,
}


def moment(timestamp: str) -> datetime:
    """The moment of a timestamp on the wire."""
    return datetime.strptime(timestamp, "%Y-%m-%dT%H:%M:%S.%f%z")


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

    def routes(self, having: str = "operationId") -> set[tuple[str, str]]:
        """The method and path of each operation of the served document that has the member `having`."""
        paths = self.get("/openapi.json", auth=False).json()["paths"]
        return {(method.upper(), path) for path, item in paths.items() for method in item if having in item[method]}

    def post(self, path: str, body: Any, *, headers: dict[str, str] | None = None) -> httpx.Response:
        sent = {"content-type": "application/json", **(headers or {})}
        return self.send("POST", path, headers=sent, content=json.dumps(body).encode())

    def try_decide(self, invoice_id: str, key: str | None = None, **fields: Any) -> httpx.Response:
        body = {"invoice_id": invoice_id, "failure_code": "card_expired", **fields}
        return self.post("/decide", body, headers={} if key is None else {"idempotency-key": key})

    def decide(self, invoice_id: str, key: str | None = None, **fields: Any) -> Values:
        return read(self.try_decide(invoice_id, key, **fields), "Decision")

    def try_report(self, invoice_id: str, outcome: str, report_key: str) -> httpx.Response:
        return self.post(f"/decisions/{invoice_id}/outcome", {"outcome": outcome, "report_key": report_key})

    def report(self, invoice_id: str, outcome: str, report_key: str | None = None) -> Values:
        return read(self.try_report(invoice_id, outcome, report_key or new_key()), "Outcome", 201)

    def history(self, invoice_id: str, query: str = "") -> Values:
        return read(self.get(f"/decisions/{invoice_id}{query}"), "History")

    def summary(self) -> Values:
        return read(self.get("/decisions/outcomes/summary"), "Summary")

    def refusals(self, query: str = "") -> Values:
        return read(self.get(f"/refusals{query}"), "Refusals")

    def refusals_since(self, last: Values | None) -> list[Values]:
        """Everything listed after `last`, newest first."""
        found: list[Values] = []
        for page in self.pages("/refusals?limit=200", "Refusals"):
            for entry in page.refusals:
                if entry == last:
                    return found
                found.append(entry)
        return found

    def newest_refusal(self) -> Values | None:
        return next(iter(self.refusals("?limit=1").refusals), None)

    def pages(self, path: str, schema: str) -> Iterator[Values]:
        """Each page of a listing; `path` has its own query."""
        cursor = ""
        while True:
            page = read(self.get(path + cursor), schema)
            yield page
            if page.next is None:
                return
            cursor = f"&cursor={page.next}"


def read(response: httpx.Response, schema: str, status: int = 200) -> Values:
    """The body as `schema` describes it, of an answer with `status`."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return Document.parse(response.content, schema)


def refused(response: httpx.Response, status: int, code: str, field: str | None = None) -> Values:
    """The problem that `response` must be."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    problem = Document.parse(response.content, "Problem")
    assert (problem.code, problem.status) == (code, status)
    assert getattr(problem, "field", None) == field, problem
    return problem


def recorded_once(caller: Caller, last: Values | None, problem: Values, route: str, gate: str) -> None:
    """Of all that was listed since `last`, the refusal `problem` is the only row."""
    (row,) = caller.refusals_since(last)
    assert (row.id, row.kind, row.reason) == (problem.refusal_id, "refusal", problem.code)
    assert (row.route, row.gate) == (route, gate)


def not_covered(routes: Iterable[tuple[str, str]], requests: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of `routes` that no method and path of `requests` is of."""
    sent = list(requests)
    patterns = {route: re.compile(re.sub(r"\{\w+\}", "[^/]+", route[1])) for route in routes}
    return [
        route
        for route, pattern in patterns.items()
        if not any(method == route[0] and pattern.fullmatch(path) for method, path in sent)
    ]


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
        problem = Document.parse(response.content, "Problem")
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
