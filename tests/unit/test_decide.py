"""The decision, by whichever rule of the published table. tests/contract has the table's rows once more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paypilot.core.decide import Decision, FailedPayment, churn_risk, decide
from paypilot.tables import published_tables

TABLES = published_tables()
CARD = TABLES.card

COUNTS = st.integers(0, 1000)
ATTEMPTS = st.integers(1, 1000)
CODES = st.sampled_from(sorted(CARD.rules)) | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,20}", fullmatch=True)


def decided(code: str, attempt: int = 1, prior_failures: int = 0) -> Decision:
    decision = decide(FailedPayment("in_1", code, attempt, prior_failures), TABLES)
    assert isinstance(decision, Decision)
    return decision


@pytest.mark.parametrize(
    "code", [*CARD.rules, "default", "Card_Expired", "CARD_EXPIRED", "card_expired.", "card", "unheard_of", "foo:R01"]
)
def test_a_listed_code_fires_its_own_rule_and_any_other_the_default(code: str) -> None:
    decision, listed = decided(code), code in CARD.rules
    row = CARD.rows[code if listed else "default"]
    assert (decision.rule, decision.matched) == (row["rule"], listed)
    assert (decision.retry_in_days, decision.action, decision.tone) == (
        row["retry_in_days"],
        row["action"],
        row["tone"],
    )


@pytest.mark.parametrize(
    ("attempt", "prior_failures", "risk"),
    [
        (1, 0, "low"),
        (1, 1, "medium"),
        (1, 2, "medium"),
        (1, 3, "high"),
        (2, 0, "medium"),
        (2, 1, "medium"),
        (2, 2, "high"),
        (3, 0, "high"),
        (1000, 1000, "high"),
        (1, 1000, "high"),
    ],
)
def test_churn_risk_at_every_edge(attempt: int, prior_failures: int, risk: str) -> None:
    assert churn_risk(attempt, prior_failures) == risk


@pytest.mark.parametrize(("code", "days"), [("insufficient_funds", 2), ("generic_decline", 1), ("card_expired", 1)])
def test_high_risk_retries_one_day_sooner_and_never_sooner_than_one_day(code: str, days: int) -> None:
    decision = decided(code, attempt=3)
    assert (decision.retry_in_days, decision.churn_risk, decision.escalated) == (days, "high", True)


@given(CODES, ATTEMPTS, COUNTS)
def test_never_stays_never_and_nothing_is_sooner_than_a_day(code: str, attempt: int, prior_failures: int) -> None:
    decision = decided(code, attempt, prior_failures)
    listed = CARD.rules.get(code, CARD.default).retry_in_days
    if listed is None:
        assert decision.retry_in_days is None
    else:
        assert decision.retry_in_days == (max(1, listed - 1) if decision.escalated else listed)
    assert decision.matched == (code in CARD.rules)
    assert decision.escalated == (decision.churn_risk == "high")


@given(ATTEMPTS, COUNTS)
def test_risk_never_falls_as_failures_add_up(attempt: int, prior_failures: int) -> None:
    order = ["low", "medium", "high"]
    risk = order.index(churn_risk(attempt, prior_failures))
    assert order.index(churn_risk(attempt, prior_failures + 1)) >= risk
    assert order.index(churn_risk(attempt + 1, prior_failures)) >= risk
