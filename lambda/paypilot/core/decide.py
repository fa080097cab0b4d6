"""The decision: a pure function of the request and the table. No clock, no environment, no I/O."""

from dataclasses import dataclass

from paypilot.core.ruleset import Ruleset

LOW, MEDIUM, HIGH = "low", "medium", "high"


@dataclass(frozen=True, slots=True)
class FailedPayment:
    """What a billing system asks about. `attempt` counts from 1, the first failed charge."""

    invoice_id: str
    failure_code: str
    attempt: int = 1
    prior_failures: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens next, and which rule said so.

    `retry_in_days` is whole days of 24 hours, or None for never. `matched` is false where the table doesn't list the
    failure code and its default answered. `rules_version` is the table's digest.
    """

    rule: str
    matched: bool
    action: str
    tone: str
    retry_in_days: int | None
    churn_risk: str
    escalated: bool
    rules_version: str


def decide(payment: FailedPayment, ruleset: Ruleset) -> Decision:
    """The table's answer for `payment`; the default's where its failure code is not listed."""
    listed = ruleset.rules.get(payment.failure_code)
    rule = listed or ruleset.default
    risk = churn_risk(payment.attempt, payment.prior_failures)
    return Decision(
        rule=rule.name,
        matched=listed is not None,
        action=rule.action,
        tone=rule.tone,
        retry_in_days=escalate(rule.retry_in_days) if risk == HIGH else rule.retry_in_days,
        churn_risk=risk,
        escalated=risk == HIGH,
        rules_version=ruleset.version,
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
