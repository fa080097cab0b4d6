"""What the route table doesn't say of a route: what its OpenAPI operation is called, what it answers, and examples."""

import json
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from paypilot import __version__, about, decisions, outcomes, rails, refusals
from paypilot.call import Call
from paypilot.core import rail_types
from paypilot.core.decide import Decision, FailedPayment, decide
from paypilot.core.rail_table import PERSON_RULE
from paypilot.http.problems import MissingField, problem_response
from paypilot.http.response import Response
from scripts.contract import models
from scripts.contract.models import TABLES
from scripts.local.example import FAILED_PAYMENT

DECIDE_DESCRIPTION = """\
With an `Idempotency-Key`, the same four values (defaults counted) answer the first decision again, byte for byte,
whatever table is current by then, and write nothing. A refused request doesn't use its key up. Keys belong to a client
and don't expire. Without the header each call is a new decision.
"""

HISTORY_DESCRIPTION = """\
The id is everything after `/decisions/`, so that `GET /decisions/a/outcome` asks for the invoice `a/outcome`;
`/decisions/outcomes/summary` is always the summary. An id outside the pattern is 404, as is an invoice that only other
clients know: the same body.
"""

OUTCOME_DESCRIPTION = """\
A bank's late truth is a new report under a new `report_key`: the newest report is the invoice's outcome, and earlier
ones stay on record. A `report_key` that this client used for another report is 409 even where the path's invoice is not
known.
"""

SUMMARY_DESCRIPTION = "Counts are exact as of the last commit. A rate over fewer than 30 reported invoices is withheld."

REFUSALS_DESCRIPTION = "Fall-throughs are decisions that the table's default answered: listed, not refused."

CODE_DESCRIPTION = """\
A code that the rail doesn't list falls through: `matched` is false, and it never goes again. What is no code of the
rail is 422 `not_a_rail_code`; a rail that is registered and answers nothing is 422 `rail_refused` and says why.
"""


def _decision() -> dict[str, Any]:
    """What the function answers to FAILED_PAYMENT."""
    payment = decisions.read_failed_payment(FAILED_PAYMENT)
    decision = decide(payment, TABLES)
    assert isinstance(decision, Decision)
    decision_id = uuid.UUID("019ad3c0-8f0e-7cc2-b9a5-0c3f5d9e2a11")
    decided_at = datetime(2026, 12, 1, 9, 0, 0, 123456, UTC)
    return decisions.StoredDecision(decision_id, payment, decision, decided_at).fields()


def _problem() -> dict[str, Any]:
    """What the function answers to a request without its failure_code."""
    try:
        decisions.read_failed_payment({"invoice_id": FAILED_PAYMENT["invoice_id"]})
    except MissingField as problem:
        problem.members["refusal_id"] = REFUSAL["id"]
        body: dict[str, Any] = json.loads(problem_response(problem).body)
        return body
    raise AssertionError("failure_code is required")


DECISION = _decision()
OUTCOME_ID = uuid.UUID("019ad3c1-2b4f-7a31-8c55-7f0e6d1b9c20")
REPORT = outcomes.OutcomeReport("paid", "report-1")
OUTCOME = json.loads(
    outcomes.StoredOutcome(
        OUTCOME_ID, DECISION["invoice_id"], *REPORT, datetime(2026, 12, 4, 10, 15, 0, 654321, UTC)
    ).body()
)
COUNTS = {"invoices": 40, "paid": 24, "not_paid": 8, "unknown": 8}
SUMMARY = {
    **COUNTS,
    "recovery_rate": 0.75,
    "recovery_rate_withheld": None,
    "by_rule": [{"rule": DECISION["rule"], **COUNTS}],
}
REFUSAL = {
    "id": "019ad3c1-77aa-7d02-a1f0-3b9c2e5d8f44",
    "kind": "refusal",
    "route": "POST /decide",
    "gate": "body",
    "reason": "missing_field",
    "at": "2026-12-01T09:01:00.000001Z",
}
PROBLEM = _problem()
[ACH] = [rail for rail in TABLES.rails if rail.name == "ach"]
RAIL = {
    "rail": ACH.name,
    "name": ACH.document["name"],
    "scope": ACH.document["scope"],
    "published": ACH.published,
    "version": ACH.version,
    "codes": len(ACH.document["codes"]),
    "refuses": False,
}


class Answer(NamedTuple):
    """A success. Without a `shape` it is any JSON object. `headers` are names of HEADERS.

    `links` are the operations that can be asked next about the invoice in the body.
    """

    description: str
    shape: type | None = None
    example: Mapping[str, Any] | None = None
    headers: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


class Operation(NamedTuple):
    """`parameters` are those outside the path. `gates` are whose refusals it can answer with, beside the body's.

    `kept` says that a cache may keep its answer and ask again by `If-None-Match`.
    """

    name: str
    summary: str
    answers: Mapping[int, Answer]
    description: str = ""
    parameters: tuple[str, ...] = ()
    body: type | None = None
    body_example: Mapping[str, Any] | None = None
    gates: tuple[str, ...] = ()
    kept: bool = False


RECORDED = ("repr-digest",)
REPLAYABLE = ("repr-digest", "idempotent-replayed")

OPERATIONS: Mapping[Callable[[Call], Response], Operation] = {
    about.health: Operation(
        "health",
        "Whether the function runs, and which build",
        {200: Answer("It runs.", models.Health, {"status": "ok", "version": __version__, "commit": "unknown"})},
    ),
    about.openapi: Operation("document", "This document", {200: Answer("This document.")}),
    decisions.decide_payment: Operation(
        "decide",
        "Decide what happens next with the same payment instrument",
        {200: Answer("The decision, on record.", models.Decision, DECISION, REPLAYABLE, ("history", "report"))},
        DECIDE_DESCRIPTION,
        parameters=("Idempotency-Key",),
        body=FailedPayment,
        body_example=FAILED_PAYMENT,
        gates=("idempotency_key", "rules_table"),
    ),
    decisions.show_history: Operation(
        "history",
        "What was decided for an invoice",
        {
            200: Answer(
                "A page of its decisions.",
                models.History,
                {"invoice_id": "in_1001", "outcome": "paid", "decisions": [DECISION], "next": None},
            )
        },
        HISTORY_DESCRIPTION,
        parameters=("limit", "cursor"),
    ),
    outcomes.report_outcome: Operation(
        "report",
        "Report whether an invoice was paid",
        {
            201: Answer("Recorded.", outcomes.StoredOutcome, OUTCOME, RECORDED, ("history",)),
            200: Answer("Recorded before, under the same key.", outcomes.StoredOutcome, OUTCOME, REPLAYABLE),
        },
        OUTCOME_DESCRIPTION,
        body=outcomes.OutcomeReport,
        body_example=REPORT._asdict(),
        gates=("report_key",),
    ),
    outcomes.show_summary: Operation(
        "summary",
        "How many invoices were paid, by rule",
        {200: Answer("This client's counts.", models.Summary, SUMMARY)},
        SUMMARY_DESCRIPTION,
    ),
    refusals.show_refusals: Operation(
        "refusals",
        "What was refused, and what fell through the table",
        {200: Answer("A page of them.", models.Refusals, {"refusals": [REFUSAL], "next": None})},
        REFUSALS_DESCRIPTION,
        parameters=("limit", "cursor", "kind"),
    ),
    rails.list_rails: Operation(
        "rails",
        "The rails, each with its version",
        {200: Answer("All of them.", models.Rails, {"rails": [RAIL], "person_rule": PERSON_RULE})},
        kept=True,
    ),
    rails.show_rail: Operation(
        "rail",
        "A rail's published table",
        {200: Answer("Its canonical bytes, which the ETag is the digest of.", rail_types.RailDocument)},
        kept=True,
    ),
    rails.look_up_code: Operation(
        "return_code",
        "What may happen next to a debit that came back with this code",
        {200: Answer("The table's answer.", rail_types.Answer, ACH.answer("R11"))},
        CODE_DESCRIPTION,
        gates=("rules_table",),
        kept=True,
    ),
}
