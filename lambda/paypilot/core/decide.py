"""The decision: a pure function of the request and the table. No clock, no environment, no I/O."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from paypilot.core.ruleset import Ruleset

if TYPE_CHECKING:
    from paypilot.core.rails import Answer

LOW, MEDIUM, HIGH = "low", "medium", "high"


class FailedPayment(NamedTuple):
    """What a billing system asks about. `attempt` counts from 1, the first failed charge."""

    invoice_id: str
    failure_code: str
    attempt: int = 1
    prior_failures: int = 0


class Rails(Protocol):
    """The rails as a decision needs them: the answer for a failure code, or None for one that names no rail."""

    def answer_for(self, failure_code: str) -> "Answer | None": ...


class Decision(NamedTuple):
    """What happens next, and which rule said so.

    `retry_in_days` is whole days of 24 hours, or None for never. `matched` is false where the table doesn't list the
    failure code and its default answered. `rules_version` is the table's digest. `rail` is what a bank debit's table
    says of the return code, and None for every other failure code.
    """

    rule: str
    matched: bool
    action: str
    tone: str
    retry_in_days: int | None
    churn_risk: str
    escalated: bool
    rules_version: str
    rail: Mapping[str, Any] | None = None


def decide(payment: FailedPayment, ruleset: Ruleset, rails: Rails) -> Decision:
    """The table's answer for `payment`; the default's where its failure code is not listed.

    A failure code that names a rail is that rail's to answer. Raises its `RailRefused` or `NotARailCode`.
    """
    answer = rails.answer_for(payment.failure_code)
    if answer is not None:
        return _decide_on_rail(payment, answer)
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


def _decide_on_rail(payment: FailedPayment, answer: "Answer") -> Decision:
    # Imported by now: whoever made the answer did. A card's failure needs none of it.
    from paypilot.core.rails import policy_at

    policy = policy_at(answer, payment.attempt)
    risk = churn_risk(payment.attempt, payment.prior_failures)
    return Decision(
        rule=payment.failure_code if answer.matched else f"{answer.rail}:default",
        matched=answer.matched,
        action=policy.action,
        tone=policy.tone,
        retry_in_days=escalate(policy.retry_in_days) if risk == HIGH else policy.retry_in_days,
        churn_risk=risk,
        escalated=risk == HIGH,
        rules_version=answer.version,
        rail=_rail_fields(answer, used_up=policy != answer.policy),
    )


def _rail_fields(answer: "Answer", *, used_up: bool) -> dict[str, Any]:
    """What the table says of the code, whatever the attempt; `limit_used_up` is what the attempt makes of it."""
    limit = answer.limit
    return {
        "rail": answer.rail,
        "code": answer.code,
        "row": answer.row,
        "goes_again": answer.goes_again,
        "changes_first": answer.changes_first,
        "a_person_acts_first": answer.a_person_acts_first,
        "family": answer.family,
        "limit": limit
        and {
            "reinitiations": limit.reinitiations,
            "within_days": limit.within_days,
            "counted_from": limit.counted_from,
        },
        "limit_used_up": used_up,
        "reason": answer.reason,
    }


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
