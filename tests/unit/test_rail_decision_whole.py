"""A rail's decision, field by field: mutating `decide` showed that only the tests over HTTP held these."""

from paypilot.core.decide import FailedPayment, decide
from paypilot.core.errors import MethodNotAllowed, RailRefused
from paypilot.rails import PublishedRails
from paypilot.rules import current_ruleset

RULESET, RAILS = current_ruleset(), PublishedRails()


def test_a_rail_decision_holds_the_policy_the_risk_and_what_the_table_says() -> None:
    answer = RAILS.registry.lookup("ach", "R01")
    assert answer.limit is not None
    for attempt, policy, risk in ((1, answer.policy, "low"), (3, answer.limit.when_used_up, "high")):
        decision = decide(FailedPayment("in_1", "ach:R01", attempt, 0), RULESET, RAILS)
        assert (decision.rule, decision.matched, decision.rules_version) == ("ach:R01", True, answer.version)
        assert (decision.action, decision.tone) == (policy.action, policy.tone)
        assert (decision.churn_risk, decision.escalated) == (risk, risk == "high")
        assert decision.rail == {
            "rail": "ach",
            "code": "R01",
            "row": answer.row,
            "goes_again": answer.goes_again,
            "changes_first": answer.changes_first,
            "a_person_acts_first": answer.a_person_acts_first,
            "family": answer.family,
            "limit": {
                "reinitiations": answer.limit.reinitiations,
                "within_days": answer.limit.within_days,
                "counted_from": answer.limit.counted_from,
            },
            "limit_used_up": attempt == 3,
            "reason": answer.reason,
        }


def test_a_rail_without_a_limit_has_none() -> None:
    decision = decide(FailedPayment("in_1", "ach:R02"), RULESET, RAILS)
    assert decision.rail is not None
    assert (decision.rail["limit"], decision.rail["limit_used_up"]) == (None, False)


def test_an_error_keeps_what_it_was_told() -> None:
    why = RAILS.registry.rail("bacs").refusal
    assert why is not None
    refused = RailRefused("detail", field="failure_code", why=why)
    assert (refused.detail, refused.field, refused.why, str(refused)) == ("detail", "failure_code", why, "detail")
    assert MethodNotAllowed("GET").allowed == "GET"
    assert "GET" in MethodNotAllowed("GET").detail
