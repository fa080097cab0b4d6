"""The reference: `POST /decide` as most people would build it, with Powertools' HTTP resolver, pydantic and one insert.

It decides by the same table and writes the same row, and does nothing else that PayPilot does: no idempotency, no
refusals on record, no reconnect, no canonical body and no digest.
"""

import hashlib
import os
import uuid
from datetime import datetime, timedelta
from typing import Annotated, Any

import psycopg
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel, ConfigDict, Field

from paypilot.core.decide import Decision, FailedPayment, decide
from paypilot.tables import published_tables

logger = Logger()
metrics = Metrics()
app = APIGatewayHttpResolver(enable_validation=True)
tables = published_tables()
token_digest = hashlib.sha256(os.environ["BENCH_TOKEN"].encode()).hexdigest()
connection = None


class DecideRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    invoice_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}$")]
    failure_code: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$")]
    attempt: Annotated[int, Field(ge=1, le=1000)] = 1
    prior_failures: Annotated[int, Field(ge=0, le=1000)] = 0


class Gate(BaseModel):
    gate: str
    result: str


class DecideResponse(BaseModel):
    decision_id: uuid.UUID
    invoice_id: str
    failure_code: str
    attempt: int
    prior_failures: int
    rule: str
    action: str
    tone: str
    retry: bool
    retry_in_days: int | None
    next_retry_at: datetime | None
    churn_risk: str
    escalated: bool
    gates_checked: list[Gate]
    rules_version: str
    decided_at: datetime


INSERT = """
INSERT INTO paypilot.decision_audit (client_id, decision_id, invoice_id, failure_code, attempt, prior_failures, rule,
    matched, action, tone, retry_in_days, churn_risk, escalated, rules_version)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING decided_at
"""


@app.post("/decide")
def decide_payment(request: DecideRequest) -> DecideResponse:
    payment = FailedPayment(request.invoice_id, request.failure_code, request.attempt, request.prior_failures)
    decision = decide(payment, tables)
    assert isinstance(decision, Decision)
    decision_id = uuid.uuid4()
    *decided, _ = decision  # a row of the card table's, so no rail
    row = database().execute(INSERT, ("client-a", decision_id, *payment, *decided)).fetchone()
    assert row is not None
    days = decision.retry_in_days
    metrics.add_metric("Decisions", MetricUnit.Count, 1)
    logger.info("decided", extra={"decision_id": str(decision_id), "rule": decision.rule})
    return DecideResponse(
        decision_id=decision_id,
        **request.model_dump(),
        rule=decision.rule,
        action=decision.action,
        tone=decision.tone,
        retry=days is not None,
        retry_in_days=days,
        next_retry_at=None if days is None else row[0] + timedelta(days=days),
        churn_risk=decision.churn_risk,
        escalated=decision.escalated,
        gates_checked=[
            Gate(gate="authentication", result="passed"),
            Gate(gate="body", result="passed"),
            Gate(gate="rules_table", result="matched" if decision.matched else "fell_through"),
            Gate(gate="audit", result="recorded"),
        ],
        rules_version=decision.rules_version,
        decided_at=row[0],
    )


def database() -> "psycopg.Connection[Any]":
    """The one connection, with this build's one client set on it."""
    global connection
    if connection is None:
        connection = psycopg.connect(autocommit=True)
        connection.execute("SELECT set_config('paypilot.client_id', 'client-a', false)")
    return connection


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    presented = event["headers"].get("authorization", "").removeprefix("Bearer ")
    if hashlib.sha256(presented.encode()).hexdigest() != token_digest:
        return Response(401, "application/json", "{}").__dict__
    return app.resolve(event, context)
