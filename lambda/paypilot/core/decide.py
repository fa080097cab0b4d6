"""The decision: a pure function of the request and the tables. No clock, no environment, no I/O."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from paypilot.core.rule import NotACode, Rule, TableRefuses
from paypilot.core.tables import Tables

LOW, MEDIUM, HIGH = "low", "medium", "high"


class FailedPayment(NamedTuple):
    """What a billing system asks about. `attempt` counts from 1, the first failed charge."""

    invoice_id: str
    failure_code: str
    attempt: int = 1
    prior_failures: int = 0


class Decision(NamedTuple):
    """What happens next, and which rule said so: the rule's fields (`Rule`), with the risk and what it changes."""

    rule: str
    matched: bool
    action: str
    tone: str
    retry_in_days: int | None
    churn_risk: str
    escalated: bool
    rules_version: str
    rail: Mapping[str, Any] | None = None


def decide(payment: FailedPayment, tables: Tables) -> Decision | NotACode | TableRefuses:
    """The tables' answer for `payment`: a rail's where its failure code names one, else the card table's.

    No decision where a rail is named and the code is not one of its form, or the rail refuses.
    """
    rule = tables.rule(payment.failure_code, payment.attempt)
    return apply_rule(rule, payment) if isinstance(rule, Rule) else rule


def apply_rule(rule: Rule, payment: FailedPayment) -> Decision:
    """The decision of `rule` at this payment's churn risk: high risk escalates."""
    risk = churn_risk(payment.attempt, payment.prior_failures)
    return Decision(
        rule=rule.rule,
        matched=rule.matched,
        action=rule.action,
        tone=rule.tone,
        retry_in_days=escalate(rule.retry_in_days) if risk == HIGH else rule.retry_in_days,
        churn_risk=risk,
        escalated=risk == HIGH,
        rules_version=rule.rules_version,
        rail=rule.rail,
    )


def churn_risk(attempt: int, prior_failures: int) -> str:
    """`high`, `medium` or `low`, by this invoice's attempts and the customer's earlier failures."""
    failures = attempt + prior_failures
    if attempt >= 3 or failures >= 4:
        return HIGH
    if attempt >= 2 or failures >= 2:
        return MEDIUM
    return LOW


def escalate(retry_in_days: int | None) -> int | None:
    """One day sooner, never sooner than one day; never stays never."""
    return None if retry_in_days is None else max(1, retry_in_days - 1)
