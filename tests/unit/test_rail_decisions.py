"""Rail codes through the decision: what they answer, and that every other failure code answers as it always has."""

import hashlib
import itertools
import uuid
from datetime import UTC, datetime

import pytest

from paypilot.core.decide import Decision, FailedPayment, decide
from paypilot.core.rule import NotACode, TableRefuses
from paypilot.decisions import StoredDecision
from paypilot.tables import published_tables

TABLES = published_tables()
RAILS = {rail.name: rail for rail in TABLES.rails}
ACH, SEPA = RAILS["ach"], RAILS["sepa"]


def decided(code: str, attempt: int = 1, prior_failures: int = 0) -> Decision:
    decision = decide(FailedPayment("in_1001", code, attempt, prior_failures), TABLES)
    assert isinstance(decision, Decision)
    return decision


def test_the_bodies_of_other_failure_codes_are_what_they_were_before_the_rails() -> None:
    codes = [*TABLES.card.rules, "default", "do_not_honor", "foo:R01", "R01", "ach", "AM04", "sepa_debit:AM04"]
    bodies = hashlib.sha256()
    for code, attempt, prior in itertools.product(codes, range(1, 6), range(5)):
        decision = decided(code, attempt, prior)
        row = StoredDecision(
            uuid.UUID("019ad3c0-8f0e-7cc2-b9a5-0c3f5d9e2a11"),
            FailedPayment("in_1001", code, attempt, prior),
            decision,
            datetime(2026, 11, 30, 9, 0, 0, 123456, UTC),
        )
        bodies.update(row.body() + b"\n")
    # Taken from the code before `decide` knew a rail: 350 bodies.
    assert bodies.hexdigest() == "0c7083211aa0d3d70ae35d6d71a7e4e21c3c2441d0548b39b419a3bb8544f387"


def test_a_high_risk_brings_a_reinitiation_one_day_sooner_as_any_other_retry() -> None:
    assert decided("ach:R01", 2, 2).retry_in_days == 2
    assert decided("sepa:AM04", 3).retry_in_days == 2


@pytest.mark.parametrize(
    "code", ["ach:xyz", "ach:r01", "ach:R1", "ach:", "ach:R01:R02", "sepa:am04", "ACH:R01", "Sepa:AM04"]
)
def test_an_invalid_code_of_a_rail_never_falls_through_to_the_card_table(code: str) -> None:
    assert isinstance(decide(FailedPayment("in_1001", code), TABLES), NotACode)


@pytest.mark.parametrize("code", ["bacs:0", "bacs:2", "bacs:anything"])
def test_bacs_is_refused_whatever_the_code(code: str) -> None:
    assert isinstance(decide(FailedPayment("in_1001", code), TABLES), TableRefuses)


def test_a_rail_decision_holds_the_policy_the_risk_and_what_the_table_says() -> None:
    answer = ACH.answer("R01")
    limit = answer["limit"]
    assert limit is not None
    for attempt, policy, risk in ((1, answer["policy"], "low"), (3, limit["when_used_up"], "high")):
        decision = decided("ach:R01", attempt)
        assert (decision.rule, decision.matched, decision.rules_version) == ("ach:R01", True, answer["version"])
        assert (decision.action, decision.tone) == (policy["action"], policy["tone"])
        assert (decision.churn_risk, decision.escalated) == (risk, risk == "high")
        assert decision.rail == {
            "rail": "ach",
            "code": "R01",
            "row": answer["row"],
            "goes_again": answer["goes_again"],
            "changes_first": answer["changes_first"],
            "a_person_acts_first": answer["a_person_acts_first"],
            "family": answer["family"],
            "limit": {
                "reinitiations": limit["reinitiations"],
                "within_days": limit["within_days"],
                "counted_from": limit["counted_from"],
            },
            "limit_used_up": attempt == 3,
            "reason": answer["reason"],
        }


def test_a_rail_without_a_limit_has_none() -> None:
    decision = decided("ach:R02")
    assert decision.rail is not None
    assert (decision.rail["limit"], decision.rail["limit_used_up"]) == (None, False)
