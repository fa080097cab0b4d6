"""Outcomes: what callers report about invoices, and the summary of it."""

import re
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from paypilot.call import Call
from paypilot.core.canonical import canonical_json
from paypilot.http.body import PRINTABLE_KEY, PRINTABLE_KEY_FORM, read_object, read_text, refuse_other_fields
from paypilot.http.problems import ReportKeyReused
from paypilot.http.response import Response, json_response, recorded_response
from paypilot.invoices import check_path_id, no_such_invoice
from paypilot.record.rows import Record, new_id, timestamp

OUTCOMES = ("paid", "not_paid")
OUTCOME = re.compile("|".join(OUTCOMES))
REPORTED_FOR_A_RATE_MIN = 30


class OutcomeReport(NamedTuple):
    """What a caller reports. `report_key` is its own key of the report."""

    outcome: str
    report_key: str


class StoredOutcome(NamedTuple):
    """A committed row of decision_outcomes."""

    outcome_id: uuid.UUID
    invoice_id: str
    outcome: str
    report_key: str
    reported_at: datetime

    def body(self) -> bytes:
        """The report as it is answered, each time that it is shown: canonical bytes."""
        values = {"outcome_id": str(self.outcome_id), "reported_at": timestamp(self.reported_at)}
        return canonical_json({**self._asdict(), **values})


COLUMNS = ", ".join(StoredOutcome._fields)

INSERT_OUTCOME = f"""
INSERT INTO paypilot.decision_outcomes (client_id, outcome_id, invoice_id, outcome, report_key)
SELECT %(client)s, %(id)s, %(invoice)s, %(outcome)s, %(key)s
WHERE EXISTS (SELECT FROM paypilot.decision_audit WHERE client_id = %(client)s AND invoice_id = %(invoice)s)
ON CONFLICT DO NOTHING
RETURNING {COLUMNS}
"""  # noqa: S608

SELECT_OUTCOME = f"""
SELECT {COLUMNS} FROM paypilot.decision_outcomes
WHERE client_id = %(client)s AND report_key = %(key)s
"""  # noqa: S608

SELECT_SUMMARY = """
SELECT rule, sum(invoices)::bigint, sum(paid)::bigint, sum(not_paid)::bigint
FROM paypilot.rule_counts WHERE client_id = %(client)s
GROUP BY rule HAVING sum(invoices) > 0 ORDER BY rule
"""


def report_outcome(call: Call) -> Response:
    """`POST /decisions/{invoice_id}/outcome`. Raises `NotFound` and a `Refusal`."""
    report = read_outcome_report(read_object(call.request, call.route.body_bytes_max))
    invoice_id = check_path_id(call.parameters["invoice_id"])
    outcome_id = new_id()
    stored = record_outcome(call.record, outcome_id, invoice_id, report)
    if stored is None:
        raise no_such_invoice()
    if (stored.invoice_id, stored.outcome) != (invoice_id, report.outcome):
        raise ReportKeyReused("This report_key was sent with another report: use a new key for a new one.")
    replayed = stored.outcome_id != outcome_id
    facts = {"written": "replayed" if replayed else "recorded"}
    return recorded_response(stored.body(), replayed=replayed, new_status=201, facts=facts)


def read_outcome_report(fields: Mapping[str, Any]) -> OutcomeReport:
    """The fields of `POST /decisions/{invoice_id}/outcome`. Raises a `Refusal`."""
    report = OutcomeReport(
        outcome=read_text(fields, "outcome", OUTCOME, " or ".join(OUTCOMES)),
        report_key=read_text(fields, "report_key", PRINTABLE_KEY, PRINTABLE_KEY_FORM),
    )
    refuse_other_fields(fields, OutcomeReport._fields)
    return report


def record_outcome(
    record: Record, outcome_id: uuid.UUID, invoice_id: str, report: OutcomeReport
) -> StoredOutcome | None:
    """Commit the report and return its row; where its key has one already, that row as it is.

    None if this client has no decision for the invoice and no report under the key.
    """
    outcome, key = report
    (rows,) = record.query(INSERT_OUTCOME, id=outcome_id, invoice=invoice_id, outcome=outcome, key=key)
    if not rows:
        (rows,) = record.query(SELECT_OUTCOME, key=key)
    return StoredOutcome(*rows[0]) if rows else None


def show_summary(call: Call) -> Response:
    """`GET /decisions/outcomes/summary`."""
    rows = read_summary(call.record)
    totals = _counts(sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows))
    reported = totals["paid"] + totals["not_paid"]
    enough = reported >= REPORTED_FOR_A_RATE_MIN
    return json_response(
        {
            **totals,
            "recovery_rate": totals["paid"] / reported if enough else None,
            "recovery_rate_withheld": None
            if enough
            else f"fewer than {REPORTED_FOR_A_RATE_MIN} invoices have a reported outcome",
            "by_rule": [{"rule": rule, **_counts(*counts)} for rule, *counts in rows],
        }
    )


def read_summary(record: Record) -> list[tuple[str, int, int, int]]:
    """By rule of the invoice's newest decision: (rule, invoices, paid, not paid)."""
    (rows,) = record.query(SELECT_SUMMARY)
    return [(rule, invoices, paid, not_paid) for rule, invoices, paid, not_paid in rows]


def _counts(invoices: int, paid: int, not_paid: int) -> dict[str, int]:
    return {"invoices": invoices, "paid": paid, "not_paid": not_paid, "unknown": invoices - paid - not_paid}
