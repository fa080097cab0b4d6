"""The record: every statement that the service runs, beside the function that runs it.

The service may SELECT, and INSERT into the columns that it must supply; nothing else. Each row that it writes carries
its own key, so that a statement sent twice over a lost connection writes once. The database gives times and order.

Row-level security shows and takes rows of one client only: the one set for the statement's own transaction. An INSERT
sets it in the value of its client_id column, so that it is one statement and one round trip.
"""

import os
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from paypilot.core.canonical import canonical_json
from paypilot.core.decide import Decision, FailedPayment
from paypilot.database import Connection

UNKNOWN = "unknown"
GATES_MATCHED, GATES_FELL_THROUGH = (
    [
        {"gate": "authentication", "result": "passed"},
        {"gate": "body", "result": "passed"},
        {"gate": "rules_table", "result": result},
        {"gate": "audit", "result": "recorded"},
    ]
    for result in ("matched", "fell_through")
)
SET_CLIENT = "SELECT set_config('paypilot.client_id', %s, true)"


class StoredDecision(NamedTuple):
    """A committed row of decision_audit, in the order of DECISION_COLUMNS."""

    decision_id: uuid.UUID
    invoice_id: str
    failure_code: str
    attempt: int
    prior_failures: int
    rule: str
    matched: bool
    action: str
    tone: str
    retry_in_days: int | None
    churn_risk: str
    escalated: bool
    rules_version: str
    rail: dict[str, Any] | None
    decided_at: datetime

    @property
    def payment(self) -> FailedPayment:
        """The four values that were asked about."""
        return FailedPayment(self.invoice_id, self.failure_code, self.attempt, self.prior_failures)

    def fields(self) -> dict[str, Any]:
        """The decision as it is answered, each time that it is shown."""
        days = self.retry_in_days
        retry_at = None if days is None else timestamp(self.decided_at + timedelta(days=days))
        fields = {
            "decision_id": str(self.decision_id),
            "invoice_id": self.invoice_id,
            "failure_code": self.failure_code,
            "attempt": self.attempt,
            "prior_failures": self.prior_failures,
            "rule": self.rule,
            "action": self.action,
            "tone": self.tone,
            "retry": days is not None,
            "retry_in_days": days,
            "next_retry_at": retry_at,
            "churn_risk": self.churn_risk,
            "escalated": self.escalated,
            "gates_checked": GATES_MATCHED if self.matched else GATES_FELL_THROUGH,
            "rules_version": self.rules_version,
            "decided_at": timestamp(self.decided_at),
        }
        return fields if self.rail is None else {**fields, "rail": self.rail}

    def body(self) -> bytes:
        """The canonical bytes of `fields`."""
        return canonical_json(self.fields())


class StoredOutcome(NamedTuple):
    """A committed row of decision_outcomes, in the order of OUTCOME_COLUMNS."""

    outcome_id: uuid.UUID
    invoice_id: str
    outcome: str
    report_key: str
    reported_at: datetime

    def body(self) -> bytes:
        """The canonical bytes of the report."""
        return canonical_json(
            {
                "outcome_id": str(self.outcome_id),
                "invoice_id": self.invoice_id,
                "outcome": self.outcome,
                "report_key": self.report_key,
                "reported_at": timestamp(self.reported_at),
            }
        )


# Only these names of our own are ever put into a statement's text (S608 below).
DECISION_COLUMNS = ", ".join(StoredDecision._fields)
OUTCOME_COLUMNS = ", ".join(StoredOutcome._fields)


def new_id() -> uuid.UUID:
    """A UUIDv7 (RFC 9562): 48 bits of Unix milliseconds, then random bits around version and variant."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    return uuid.UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with six decimals."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


INSERT_DECISION = f"""
INSERT INTO paypilot.decision_audit (
    client_id, decision_id, invoice_id, failure_code, attempt, prior_failures, idempotency_key,
    rule, matched, action, tone, retry_in_days, churn_risk, escalated, rules_version, rail)
VALUES (set_config('paypilot.client_id', %s, true), %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING
RETURNING {DECISION_COLUMNS}
"""  # noqa: S608

SELECT_DECISION = f"""
SELECT {DECISION_COLUMNS} FROM paypilot.decision_audit
WHERE client_id = %s AND (decision_id = %s OR idempotency_key = %s)
"""  # noqa: S608


def record_decision(
    connection: Connection,
    client_id: str,
    decision_id: uuid.UUID,
    payment: FailedPayment,
    decision: Decision,
    idempotency_key: str | None,
) -> StoredDecision:
    """Commit the decision and return its row; where `idempotency_key` has one already, that row as it is.

    The row returned is this call's own if its `decision_id` is.
    """
    row = connection.execute(
        INSERT_DECISION,
        (
            client_id,
            decision_id,
            payment.invoice_id,
            payment.failure_code,
            payment.attempt,
            payment.prior_failures,
            idempotency_key,
            decision.rule,
            decision.matched,
            decision.action,
            decision.tone,
            decision.retry_in_days,
            decision.churn_risk,
            decision.escalated,
            decision.rules_version,
            None if decision.rail is None else Jsonb(decision.rail),
        ),
    ).fetchone()
    if row is None:
        # A conflict: the key's first decision, or this very one, committed before its connection was lost. Under READ
        # COMMITTED the insert waited for that row's commit, and only a new statement sees it.
        row = _select(connection, client_id, SELECT_DECISION, (client_id, decision_id, idempotency_key))[0]
    return StoredDecision(*row)


INSERT_REFUSAL = """
INSERT INTO paypilot.decision_refusals (client_id, refusal_id, route, gate, reason)
VALUES (set_config('paypilot.client_id', %s, true), %s, %s, %s, %s)
ON CONFLICT DO NOTHING
"""


def record_refusal(
    connection: Connection, client_id: str, refusal_id: uuid.UUID, route: str, gate: str, reason: str
) -> None:
    """Commit one refusal: names of our own, never any part of what was refused."""
    connection.execute(INSERT_REFUSAL, (client_id, refusal_id, route, gate, reason))


INSERT_OUTCOME = f"""
INSERT INTO paypilot.decision_outcomes (client_id, outcome_id, invoice_id, outcome, report_key)
SELECT %s, %s, %s, %s, %s
WHERE EXISTS (SELECT FROM paypilot.decision_audit WHERE client_id = %s AND invoice_id = %s)
ON CONFLICT DO NOTHING
RETURNING {OUTCOME_COLUMNS}
"""  # noqa: S608

SELECT_OUTCOME = f"""
SELECT {OUTCOME_COLUMNS} FROM paypilot.decision_outcomes
WHERE client_id = %s AND report_key = %s
"""  # noqa: S608


def record_outcome(
    connection: Connection,
    client_id: str,
    outcome_id: uuid.UUID,
    invoice_id: str,
    outcome: str,
    report_key: str,
) -> StoredOutcome | None:
    """Commit the report and return its row; where `report_key` has one already, that row as it is.

    None if this client has no decision for the invoice and no report under the key.
    """
    values = (client_id, outcome_id, invoice_id, outcome, report_key, client_id, invoice_id)
    rows = _select(connection, client_id, INSERT_OUTCOME, values)
    if not rows:
        rows = _select(connection, client_id, SELECT_OUTCOME, (client_id, report_key))
    return StoredOutcome(*rows[0]) if rows else None


class History(NamedTuple):
    """A page of an invoice's decisions, newest first, and the invoice's outcome. `more` says that older ones follow."""

    outcome: str
    decisions: list[StoredDecision]
    more: bool


SELECT_INVOICE = """
SELECT (SELECT outcome FROM paypilot.decision_outcomes
        WHERE client_id = %(client)s AND invoice_id = %(invoice)s ORDER BY seq DESC LIMIT 1),
       EXISTS (SELECT FROM paypilot.decision_audit WHERE client_id = %(client)s AND invoice_id = %(invoice)s),
       (SELECT seq FROM paypilot.decision_audit
        WHERE client_id = %(client)s AND invoice_id = %(invoice)s AND decision_id = %(after)s)
"""

# Where a first page begins. A page's bound is one scalar subquery: row-level security lets an index begin at that, and
# not at an OR or a coalesce over it.
LAST_SEQ = 2**63 - 1

SELECT_HISTORY = f"""
SELECT {DECISION_COLUMNS} FROM paypilot.decision_audit
WHERE client_id = %(client)s AND invoice_id = %(invoice)s
  AND seq < (SELECT coalesce((SELECT seq FROM paypilot.decision_audit WHERE decision_id = %(after)s), {LAST_SEQ}))
ORDER BY seq DESC LIMIT %(limit)s
"""  # noqa: S608


class UnknownCursor(LookupError):
    """The cursor's entry is not one of this client's listing."""


def read_history(
    connection: Connection, client_id: str, invoice_id: str, limit: int, after: uuid.UUID | None
) -> History | None:
    """One page, or None if this client has no decision for the invoice. Raises `UnknownCursor`."""
    values = {"client": client_id, "invoice": invoice_id, "after": after, "limit": limit + 1}
    with connection.pipeline():
        connection.execute(SET_CLIENT, (client_id,))
        invoice = connection.execute(SELECT_INVOICE, values)
        history = connection.execute(SELECT_HISTORY, values)
    outcome, known, cursor_row = invoice.fetchall()[0]
    if not known:
        return None
    if after is not None and cursor_row is None:
        raise UnknownCursor
    rows = [StoredDecision(*row) for row in history.fetchall()]
    return History(outcome or UNKNOWN, rows[:limit], more=len(rows) > limit)


SELECT_SUMMARY = """
SELECT rule, sum(invoices)::bigint, sum(paid)::bigint, sum(not_paid)::bigint
FROM paypilot.rule_counts WHERE client_id = %s
GROUP BY rule HAVING sum(invoices) > 0 ORDER BY rule
"""


def read_summary(connection: Connection, client_id: str) -> list[tuple[str, int, int, int]]:
    """By rule of the invoice's newest decision: (rule, invoices, paid, not paid)."""
    return [
        (rule, n, paid, not_paid)
        for rule, n, paid, not_paid in _select(connection, client_id, SELECT_SUMMARY, (client_id,))
    ]


class RefusalEntry(NamedTuple):
    """A refusal, or a decision whose code fell through the table."""

    id: uuid.UUID
    kind: str
    route: str
    gate: str
    reason: str
    at: datetime


SELECT_REFUSAL_CURSOR = """
SELECT refused_at FROM paypilot.decision_refusals
WHERE client_id = %(client)s AND refusal_id = %(after)s AND %(kind)s::text IS DISTINCT FROM 'fell_through'
UNION ALL
SELECT decided_at FROM paypilot.decision_audit
WHERE client_id = %(client)s AND decision_id = %(after)s AND NOT matched
  AND %(kind)s::text IS DISTINCT FROM 'refusal'
"""

SELECT_REFUSALS = f"""
WITH bound AS MATERIALIZED (
    SELECT coalesce(({SELECT_REFUSAL_CURSOR}), 'infinity') AS at,
           coalesce(%(after)s, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) AS id)
(SELECT refusal_id AS id, 'refusal' AS kind, route, gate, reason, refused_at AS at
 FROM paypilot.decision_refusals
 WHERE client_id = %(client)s AND %(kind)s::text IS DISTINCT FROM 'fell_through'
   AND (refused_at, refusal_id) < ((SELECT at FROM bound), (SELECT id FROM bound))
 ORDER BY refused_at DESC, refusal_id DESC LIMIT %(limit)s)
UNION ALL
(SELECT decision_id, 'fell_through', 'POST /decide', 'rules_table', 'fell_through', decided_at
 FROM paypilot.decision_audit
 WHERE client_id = %(client)s AND NOT matched AND %(kind)s::text IS DISTINCT FROM 'refusal'
   AND (decided_at, decision_id) < ((SELECT at FROM bound), (SELECT id FROM bound))
 ORDER BY decided_at DESC, decision_id DESC LIMIT %(limit)s)
ORDER BY at DESC, id DESC LIMIT %(limit)s
"""  # noqa: S608


def read_refusals(
    connection: Connection, client_id: str, limit: int, after: uuid.UUID | None, kind: str | None
) -> tuple[list[RefusalEntry], bool]:
    """One page, newest first, and whether older ones follow. Raises `UnknownCursor`."""
    values = {"client": client_id, "after": after, "kind": kind, "limit": limit + 1}
    with connection.pipeline():
        connection.execute(SET_CLIENT, (client_id,))
        cursor_row = connection.execute(SELECT_REFUSAL_CURSOR, values)
        refusals = connection.execute(SELECT_REFUSALS, values)
    if after is not None and not cursor_row.fetchall():
        raise UnknownCursor
    rows = [RefusalEntry(*row) for row in refusals.fetchall()]
    return rows[:limit], len(rows) > limit


def _select(connection: Connection, client_id: str, statement: str, values: Sequence[Any]) -> list[TupleRow]:
    # One round trip, and one transaction: what runs in a pipeline commits together at its end.
    with connection.pipeline():
        connection.execute(SET_CLIENT, (client_id,))
        result = connection.execute(statement, values)
    return result.fetchall()
