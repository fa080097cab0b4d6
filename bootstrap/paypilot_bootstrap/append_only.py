"""The record's append-only tables, in the order in which they were made, and the columns that the service supplies.

A table's own id comes first. `seq` and the times are the database's own.
"""

from collections.abc import Mapping
from typing import LiteralString

APPEND_ONLY: Mapping[LiteralString, tuple[LiteralString, ...]] = {
    "decision_audit": (
        "decision_id",
        "client_id",
        "invoice_id",
        "failure_code",
        "attempt",
        "prior_failures",
        "idempotency_key",
        "rule",
        "matched",
        "action",
        "tone",
        "retry_in_days",
        "churn_risk",
        "escalated",
        "rules_version",
        "rail",
    ),
    "decision_outcomes": ("outcome_id", "client_id", "invoice_id", "outcome", "report_key"),
    "decision_refusals": ("refusal_id", "client_id", "route", "gate", "reason"),
}
