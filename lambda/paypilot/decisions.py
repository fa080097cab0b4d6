"""Decisions: taken, recorded and listed."""

import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from paypilot.call import Call
from paypilot.core.canonical import canonical_json
from paypilot.core.decide import Decision, FailedPayment, decide
from paypilot.core.rule import NotACode, TableRefuses
from paypilot.http.body import read_idempotency_key, read_integer, read_object, read_text, refuse_other_fields
from paypilot.http.page import Page, cut_page, read_page, refuse_cursor
from paypilot.http.problems import IdempotencyKeyReused, NotARailCode, RailRefused
from paypilot.http.response import Response, recorded_response
from paypilot.invoices import check_path_id, no_such_invoice, read_invoice_id
from paypilot.record.rows import Record, Row, insert_statement, new_id, timestamp

FAILURE_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")
COUNT_MAX = 1000
LISTING: Mapping[str | None, bytes] = {None: b"h"}
UNKNOWN = "unknown"
MATCHED, FELL_THROUGH = "matched", "fell_through"
# By what the rules table said of the failure code.
GATES_CHECKED = {
    match: [
        {"gate": "authentication", "result": "passed"},
        {"gate": "body", "result": "passed"},
        {"gate": "rules_table", "result": match},
        {"gate": "audit", "result": "recorded"},
    ]
    for match in (MATCHED, FELL_THROUGH)
}


class StoredDecision(NamedTuple):
    """A committed row of decision_audit."""

    decision_id: uuid.UUID
    payment: FailedPayment
    decision: Decision
    decided_at: datetime

    @classmethod
    def from_row(cls, row: Row) -> "StoredDecision":
        """The decision of a row that has COLUMNS."""
        asked = 1 + len(FailedPayment._fields)
        # In the connection's time zone a day that is added may have 23 hours.
        decided_at = row[-1].astimezone(UTC)
        return cls(row[0], FailedPayment(*row[1:asked]), Decision(*row[asked:-1]), decided_at)

    def fields(self) -> dict[str, Any]:
        """The decision as it is answered, each time that it is shown."""
        decision, days = self.decision, self.decision.retry_in_days
        fields = {
            "decision_id": str(self.decision_id),
            **self.payment._asdict(),
            "rule": decision.rule,
            "action": decision.action,
            "tone": decision.tone,
            "retry": days is not None,
            "retry_in_days": days,
            "next_retry_at": None if days is None else timestamp(self.decided_at + timedelta(days=days)),
            "churn_risk": decision.churn_risk,
            "escalated": decision.escalated,
            "gates_checked": GATES_CHECKED[self.match],
            "rules_version": decision.rules_version,
            "decided_at": timestamp(self.decided_at),
        }
        return fields if decision.rail is None else {**fields, "rail": decision.rail}

    def body(self) -> bytes:
        """The canonical bytes of `fields`."""
        return canonical_json(self.fields())

    @property
    def match(self) -> str:
        """Whether the table lists the failure code, in the rules_table gate's words."""
        return MATCHED if self.decision.matched else FELL_THROUGH


# One list, in the order of a StoredDecision, for what is written and what is read back.
ASKED_AND_DECIDED = (*FailedPayment._fields, *Decision._fields)
COLUMNS = ("decision_id", *ASKED_AND_DECIDED, "decided_at")

INSERT_DECISION = insert_statement(
    "decision_audit", ("decision_id", "idempotency_key", *ASKED_AND_DECIDED), returning=COLUMNS
)

SELECT_DECISION = f"""
SELECT {", ".join(COLUMNS)} FROM paypilot.decision_audit
WHERE client_id = %(client)s AND (decision_id = %(id)s OR idempotency_key = %(key)s)
"""  # noqa: S608

SELECT_INVOICE = """
SELECT (SELECT outcome FROM paypilot.decision_outcomes
        WHERE client_id = %(client)s AND invoice_id = %(invoice)s ORDER BY seq DESC LIMIT 1),
       EXISTS (SELECT FROM paypilot.decision_audit WHERE client_id = %(client)s AND invoice_id = %(invoice)s),
       (SELECT seq FROM paypilot.decision_audit
        WHERE client_id = %(client)s AND invoice_id = %(invoice)s AND decision_id = %(after)s)
"""

# Where a first page begins. A page's bound is one scalar subquery: row-level security lets an index begin at that, and
# not at an OR or a coalesce over it.
SEQ_MAX = 2**63 - 1

SELECT_HISTORY = f"""
SELECT {", ".join(COLUMNS)} FROM paypilot.decision_audit
WHERE client_id = %(client)s AND invoice_id = %(invoice)s
  AND seq < (SELECT coalesce((SELECT seq FROM paypilot.decision_audit WHERE decision_id = %(after)s), {SEQ_MAX}))
ORDER BY seq DESC LIMIT %(limit)s
"""  # noqa: S608


def decide_payment(call: Call) -> Response:
    """`POST /decide`. Raises a `Refusal`."""
    idempotency_key = read_idempotency_key(call.request)
    payment = read_failed_payment(read_object(call.request, call.route.body_bytes_max))
    decision = decide(payment, call.published.tables)
    if isinstance(decision, NotACode):
        raise NotARailCode(decision.detail, field="failure_code")
    if isinstance(decision, TableRefuses):
        raise RailRefused(decision.detail, field="failure_code", refusal=decision.why)
    decision_id = new_id()
    stored = record_decision(call.record, decision_id, payment, decision, idempotency_key)
    if stored.payment != payment:
        raise IdempotencyKeyReused("This Idempotency-Key was sent with another request: use a new key for a new one.")
    replayed = stored.decision_id != decision_id
    facts = {
        "decision_id": str(stored.decision_id),
        "rule": stored.decision.rule,
        "rules_table": stored.match,
        "written": "replayed" if replayed else "recorded",
    }
    return recorded_response(stored.body(), replayed=replayed, facts=facts)


def read_failed_payment(fields: Mapping[str, Any]) -> FailedPayment:
    """The fields of `POST /decide`. Raises a `Refusal`."""
    payment = FailedPayment(
        invoice_id=read_invoice_id(fields),
        failure_code=read_text(
            fields, "failure_code", FAILURE_CODE, "1-100 of A-Z a-z 0-9 . _ : / -, the first a letter or digit"
        ),
        attempt=read_integer(fields, "attempt", default=1, least=1, most=COUNT_MAX),
        prior_failures=read_integer(fields, "prior_failures", default=0, least=0, most=COUNT_MAX),
    )
    refuse_other_fields(fields, FailedPayment._fields)
    return payment


def record_decision(
    record: Record, decision_id: uuid.UUID, payment: FailedPayment, decision: Decision, idempotency_key: str | None
) -> StoredDecision:
    """Commit the decision and return its row; where `idempotency_key` has one already, that row as it is.

    The row returned is this call's own if its `decision_id` is.
    """
    rail = None if decision.rail is None else canonical_json(decision.rail).decode()
    row = record.insert(INSERT_DECISION, (decision_id, idempotency_key, *payment, *decision[:-1], rail))
    if row is None:
        # A conflict: the key's first decision, or this very one, committed before its connection was lost. Under READ
        # COMMITTED the insert waited for that row's commit, and only a new statement sees it.
        row = record.query(SELECT_DECISION, id=decision_id, key=idempotency_key)[0][0]
    return StoredDecision.from_row(row)


def show_history(call: Call) -> Response:
    """`GET /decisions/{invoice_id}`. Raises `NotFound` and `InvalidQuery`."""
    page = read_page(call.request, LISTING)
    invoice_id = check_path_id(call.parameters["invoice_id"])
    outcome, decisions = read_history(call.record, invoice_id, page)
    shown, following = cut_page(page, decisions, lambda decision: decision.decision_id)
    body = {
        "invoice_id": invoice_id,
        "outcome": outcome,
        "decisions": [decision.fields() for decision in shown],
        "next": following,
    }
    return Response(200, canonical_json(body))


def read_history(record: Record, invoice_id: str, page: Page) -> tuple[str, list[StoredDecision]]:
    """The invoice's outcome, and its decisions for `page`, newest first, with one more if there is.

    Raises `NotFound` where this client has no decision for the invoice, and `InvalidQuery` for another one's cursor.
    """
    ((invoice,), history) = record.query(
        SELECT_INVOICE, SELECT_HISTORY, invoice=invoice_id, after=page.after, limit=page.limit + 1
    )
    outcome, known, cursor_row = invoice
    if not known:
        raise no_such_invoice()
    if page.after is not None and cursor_row is None:
        refuse_cursor()
    return outcome or UNKNOWN, [StoredDecision.from_row(row) for row in history]
