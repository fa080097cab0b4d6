"""The answer that is built from a committed row, and the ids."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paypilot.core.canonical import canonical_json
from paypilot.decisions import COLUMNS, StoredDecision
from paypilot.record.rows import new_id, timestamp


def stored(**changes: Any) -> StoredDecision:
    row: dict[str, Any] = {
        "decision_id": UUID("019ad3c0-8f0e-7cc2-b9a5-0c3f5d9e2a11"),
        "invoice_id": "in_1001",
        "failure_code": "card_expired",
        "attempt": 1,
        "prior_failures": 0,
        "rule": "card_expired",
        "matched": True,
        "action": "request_card_update",
        "tone": "friendly_routine",
        "retry_in_days": 1,
        "churn_risk": "low",
        "escalated": False,
        "rules_version": "sha256:" + "0" * 64,
        "rail": None,
        "decided_at": datetime(2026, 11, 30, 9, 0, 0, 123456, UTC),
    }
    return StoredDecision.from_row(tuple((row | changes)[column] for column in COLUMNS))


def test_the_contracts_example_is_answered_byte_for_byte() -> None:
    example = """{
      "decision_id": "019ad3c0-8f0e-7cc2-b9a5-0c3f5d9e2a11",
      "invoice_id": "in_1001", "failure_code": "card_expired", "attempt": 1, "prior_failures": 0,
      "rule": "card_expired", "action": "request_card_update", "tone": "friendly_routine",
      "retry": true, "retry_in_days": 1, "next_retry_at": "2026-12-01T09:00:00.123456Z",
      "churn_risk": "low", "escalated": false,
      "gates_checked": [
        {"gate": "authentication", "result": "passed"},
        {"gate": "body", "result": "passed"},
        {"gate": "rules_table", "result": "matched"},
        {"gate": "audit", "result": "recorded"}],
      "rules_version": "sha256:0000000000000000000000000000000000000000000000000000000000000000",
      "decided_at": "2026-11-30T09:00:00.123456Z"
    }"""
    assert stored().body() == canonical_json(json.loads(example))


def test_never_has_no_days_and_no_moment() -> None:
    fields = stored(retry_in_days=None).fields()
    assert (fields["retry"], fields["retry_in_days"], fields["next_retry_at"]) == (False, None, None)


def test_what_fell_through_never_says_matched() -> None:
    gates = {gate["gate"]: gate["result"] for gate in stored(matched=False).fields()["gates_checked"]}
    assert gates["rules_table"] == "fell_through"


def test_a_retry_is_whole_days_of_24_hours_later_also_over_a_change_of_clocks() -> None:
    before_the_change = datetime(2026, 10, 25, 0, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    fields = stored(decided_at=before_the_change, retry_in_days=3).fields()
    assert fields["decided_at"] == "2026-10-24T22:30:00.000000Z"
    assert fields["next_retry_at"] == "2026-10-27T22:30:00.000000Z"


@given(st.datetimes(min_value=datetime(2000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_timestamp_has_six_decimals_and_reads_back(moment: datetime) -> None:
    text = timestamp(moment)
    assert len(text) == 27
    assert datetime.fromisoformat(text) == moment


def test_an_id_is_a_uuid_of_version_7_that_carries_this_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_796_062_154_238_999_999)
    made = {new_id() for _ in range(1000)}
    assert len(made) == 1000
    assert {(one.version, one.variant) for one in made} == {(7, "specified in RFC 4122")}
    assert {one.int >> 80 for one in made} == {1_796_062_154_238}
