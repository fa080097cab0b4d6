"""The routes: one function each, and the only place that orders the steps of an answer."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from paypilot import record, wire
from paypilot.core import errors
from paypilot.core.canonical import canonical_json
from paypilot.core.decide import decide
from paypilot.core.ruleset import Ruleset
from paypilot.database import LONGEST_WAIT_SECONDS, Database
from paypilot.rail_routes import RAIL_ROUTES, find_rail_route
from paypilot.rails import PublishedRails
from paypilot.settings import Settings

LEAST_REPORTED_FOR_A_RATE = 30
Listing = TypeVar("Listing")
REPLAYED = {"idempotent-replayed": "true"}


class Service(NamedTuple):
    """What an answer needs. `commit` is the build's; `openapi` the document's bytes."""

    settings: Settings
    ruleset: Ruleset
    rails: PublishedRails
    database: Database
    commit: str
    openapi: bytes


class Call(NamedTuple):
    """An authenticated request at its route. `invoice_id` is the path's, unchecked; `deadline` as in Database.run."""

    request: wire.Request
    route: str
    client_id: str
    invoice_id: str
    deadline: float


def answer(service: Service, request: wire.Request, seconds_left: float) -> wire.Response:
    """The answer to `request`. Raises a `Problem`; `seconds_left` is what the host still gives."""
    deadline = time.monotonic() + min(seconds_left, LONGEST_WAIT_SECONDS)
    route, named = find_route(request.method, request.path)
    if route in PUBLIC_ROUTES:
        return PUBLIC_ROUTES[route](service)
    if route in RAIL_ROUTES:
        return RAIL_ROUTES[route](service.rails.registry, request, named)
    client_id = authenticate(service.settings, request)
    call = Call(request, route, client_id, named, deadline)
    try:
        return CLIENT_ROUTES[route](service, call)
    except errors.Refusal as refusal:
        record_refusal(service, call, refusal)
        raise


def find_route(method: str, path: str) -> tuple[str, str]:
    """The route and what its path names: an invoice id, a rail, a rail's code, or nothing.

    Raises `NotFound` and `MethodNotAllowed`.
    """
    method = "GET" if method == "HEAD" else method
    named = path.removeprefix("/decisions/")
    if path in FIXED_PATHS:
        routes, named = FIXED_PATHS[path], ""
    elif rail_route := find_rail_route(path):
        routes, named = {"GET": rail_route}, path.removeprefix("/rails/")
    elif named == path or not named:
        raise errors.NotFound("No such path.")
    elif named.endswith("/outcome"):
        routes = {"GET": HISTORY, "POST": OUTCOME}
    else:
        routes = {"GET": HISTORY}
    if method not in routes:
        allowed = sorted({*routes, *(["HEAD"] if "GET" in routes else [])})
        raise errors.MethodNotAllowed(", ".join(allowed))
    route = routes[method]
    return route, named.removesuffix("/outcome") if route == OUTCOME else named


def route_name(method: str, path: str) -> str:
    """The route, for the log; `none` where there is none. It holds no part of the path that a caller chose."""
    try:
        return find_route(method, path)[0]
    except (errors.NotFound, errors.MethodNotAllowed):
        return "none"


def authenticate(settings: Settings, request: wire.Request) -> str:
    """The client id of the request's token. Raises `AuthNotConfigured` and `Unauthorized`."""
    if not settings.clients:
        raise errors.AuthNotConfigured("DECISION_API_TOKEN holds no valid tokens, so nobody is let in.")
    presented = hashlib.sha256(wire.read_bearer_token(request).encode()).digest()
    found = None
    # Every configured token is compared, each in constant time, so that time tells nothing of them.
    for token_digest, client_id in settings.clients.items():
        if hmac.compare_digest(token_digest, presented):
            found = client_id
    if found is None:
        raise errors.Unauthorized("Send one header Authorization: Bearer <token>, with a token issued to you.")
    return found


def record_refusal(service: Service, call: Call, refusal: errors.Refusal) -> None:
    """Write the refusal's row and put its id on the refusal. Raises `AuditUnavailable`."""
    refusal_id = record.new_id()
    service.database.run(
        lambda connection: record.record_refusal(
            connection, call.client_id, refusal_id, call.route, refusal.gate, refusal.code
        ),
        call.deadline,
    )
    refusal.refusal_id = str(refusal_id)


def health(service: Service) -> wire.Response:
    return _json({"status": "ok", "commit": service.commit})


def openapi(service: Service) -> wire.Response:
    return wire.Response(200, service.openapi)


def decide_payment(service: Service, call: Call) -> wire.Response:
    idempotency_key = wire.read_idempotency_key(call.request)
    payment = wire.read_failed_payment(call.request)
    decision = decide(payment, service.ruleset, service.rails)
    decision_id = record.new_id()
    stored = service.database.run(
        lambda connection: record.record_decision(
            connection, call.client_id, decision_id, payment, decision, idempotency_key
        ),
        call.deadline,
    )
    if stored.payment != payment:
        raise errors.IdempotencyKeyReused(
            "This Idempotency-Key has decided another request: use a new one for a new request."
        )
    replayed = stored.decision_id != decision_id
    return _digested(
        200,
        stored.body(),
        REPLAYED if replayed else {},
        facts={
            "decision_id": str(stored.decision_id),
            "rule": stored.rule,
            "rules_table": "matched" if stored.matched else "fell_through",
            "written": "replayed" if replayed else "recorded",
        },
    )


def history(service: Service, call: Call) -> wire.Response:
    page = wire.read_page(call.request)
    found = None
    if wire.is_invoice_id(call.invoice_id):
        found = _page(
            service,
            call,
            lambda connection: record.read_history(connection, call.client_id, call.invoice_id, page.limit, page.after),
        )
    if found is None:
        raise _no_such_invoice()
    body = {
        "invoice_id": call.invoice_id,
        "outcome": found.outcome,
        "decisions": [decision.fields() for decision in found.decisions],
        "next": wire.write_cursor(page.listing, found.decisions[-1].decision_id) if found.more else None,
    }
    return wire.Response(200, canonical_json(body))


def report_outcome(service: Service, call: Call) -> wire.Response:
    report = wire.read_outcome_report(call.request)
    outcome_id = record.new_id()
    stored = None
    if wire.is_invoice_id(call.invoice_id):
        stored = service.database.run(
            lambda connection: record.record_outcome(
                connection, call.client_id, outcome_id, call.invoice_id, report.outcome, report.report_key
            ),
            call.deadline,
        )
    if stored is None:
        raise _no_such_invoice()
    if (stored.invoice_id, stored.outcome) != (call.invoice_id, report.outcome):
        raise errors.ReportKeyReused("This report_key has reported something else: use a new one for a new report.")
    if stored.outcome_id == outcome_id:
        return _digested(201, stored.body(), {}, facts={"written": "recorded"})
    return _digested(200, stored.body(), REPLAYED, facts={"written": "replayed"})


def summary(service: Service, call: Call) -> wire.Response:
    rows = service.database.run(lambda connection: record.read_summary(connection, call.client_id), call.deadline)
    by_rule = [_counts(invoices, paid, not_paid, rule=rule) for rule, invoices, paid, not_paid in rows]
    totals = _counts(sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows))
    reported = totals["paid"] + totals["not_paid"]
    enough = reported >= LEAST_REPORTED_FOR_A_RATE
    return _json(
        {
            **totals,
            "recovery_rate": totals["paid"] / reported if enough else None,
            "recovery_rate_withheld": None
            if enough
            else f"fewer than {LEAST_REPORTED_FOR_A_RATE} invoices have a reported outcome",
            "by_rule": by_rule,
        }
    )


def refusals(service: Service, call: Call) -> wire.Response:
    page = wire.read_page(call.request, kinds=True)
    entries, more = _page(
        service,
        call,
        lambda connection: record.read_refusals(connection, call.client_id, page.limit, page.after, page.kind),
    )
    return _json(
        {
            "refusals": [
                {
                    "id": str(entry.id),
                    "kind": entry.kind,
                    "route": entry.route,
                    "gate": entry.gate,
                    "reason": entry.reason,
                    "at": record.timestamp(entry.at),
                }
                for entry in entries
            ],
            "next": wire.write_cursor(page.listing, entries[-1].id) if more else None,
        }
    )


def _page(service: Service, call: Call, read: Callable[[Any], Listing]) -> Listing:
    try:
        return service.database.run(read, call.deadline)
    except record.UnknownCursor:
        wire.refuse_cursor()


def _no_such_invoice() -> errors.NotFound:
    return errors.NotFound("No decision of yours is on record for this invoice.")


def _counts(invoices: int, paid: int, not_paid: int, **names: str) -> dict[str, Any]:
    return {
        **names,
        "invoices": invoices,
        "paid": paid,
        "not_paid": not_paid,
        "unknown": invoices - paid - not_paid,
    }


def _json(body: Mapping[str, Any]) -> wire.Response:
    return wire.Response(200, json.dumps(body).encode())


def _digested(status: int, body: bytes, headers: Mapping[str, str], facts: Mapping[str, str]) -> wire.Response:
    """An answer whose bytes are the same each time, with their digest (RFC 9530)."""
    body_digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    return wire.Response(status, body, headers={**headers, "repr-digest": f"sha-256=:{body_digest}:"}, facts=facts)


HISTORY = "GET /decisions/{invoice_id}"
OUTCOME = "POST /decisions/{invoice_id}/outcome"

PUBLIC_ROUTES: Mapping[str, Callable[[Service], wire.Response]] = {
    "GET /health": health,
    "GET /openapi.json": openapi,
}
CLIENT_ROUTES: Mapping[str, Callable[[Service, Call], wire.Response]] = {
    "POST /decide": decide_payment,
    HISTORY: history,
    OUTCOME: report_outcome,
    "GET /decisions/outcomes/summary": summary,
    "GET /refusals": refusals,
}
# The routes whose path holds no id: path -> method -> route.
FIXED_PATHS: Mapping[str, Mapping[str, str]] = {
    path: {method: route}
    for route in (*PUBLIC_ROUTES, *RAIL_ROUTES, *CLIENT_ROUTES)
    for method, path in [route.split(" ")]
    if "{" not in path
}
