"""The published table, the churn risk and the escalation, each line of each."""

import hashlib
import itertools
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contract.caller import Caller, canonical, moment, new_invoice, read

# rule                       days   action                        tone
TABLE = """
card_expired                 1      request_card_update           friendly_routine
insufficient_funds           3      wait_and_retry                soft_no_pressure
generic_decline              2      retry_and_verify              calm_helpful
issuer_do_not_retry          never  request_new_payment_method    plain_no_blame
card_details_invalid         never  request_card_update           plain_no_blame
direct_debit_not_retried     never  request_manual_payment        plain_no_blame
retries_exhausted            never  request_new_payment_method    plain_no_blame
default                      2      retry_and_verify              calm_helpful
"""
ROWS = [row.split() for row in TABLE.strip().splitlines()]

# Rows are attempts from 1, columns prior failures from 0.
RISKS = """
low    medium medium high   high
medium medium high   high   high
high   high   high   high   high
high   high   high   high   high
"""
GRID = {
    (attempt, prior): risk
    for attempt, line in enumerate(RISKS.strip().splitlines(), 1)
    for prior, risk in enumerate(line.split())
}
AT_THE_LIMITS = {(1, 1000): "high", (2, 1000): "high", (1000, 0): "high", (1000, 1000): "high"}

UNLISTED = [
    *("default", "do_not_honor", "Card_expired", "CARD_EXPIRED", "card_expired.", "card_expire", "card-expired", "0"),
    *("card_expired/", "card_expired_", "stripe:card_expired", "fell_through", "R01", "a" * 100),
]


@pytest.mark.parametrize(("rule", "days", "action", "tone"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row_decides_at_every_risk(client: Caller, rule: str, days: str, action: str, tone: str) -> None:
    invoice = new_invoice()
    for (attempt, prior), risk in (GRID | AT_THE_LIMITS).items():
        decision = client.decide(invoice, failure_code=rule, attempt=attempt, prior_failures=prior)
        sooner = {"high": {"1": 1, "2": 1, "3": 2}, "medium": {}, "low": {}}[risk]
        expected_days = None if days == "never" else sooner.get(days, int(days))
        assert (decision.rule, decision.action, decision.tone) == (rule, action, tone)
        assert (decision.churn_risk, decision.escalated) == (risk, risk == "high"), (attempt, prior)
        assert (decision.retry, decision.retry_in_days) == (days != "never", expected_days), (attempt, prior)
        assert decision.gates_checked[2].result == ("fell_through" if rule == "default" else "matched")


@pytest.mark.parametrize("code", UNLISTED)
def test_a_code_that_the_table_does_not_list_falls_through_and_says_so(client: Caller, code: str) -> None:
    decision = client.decide(new_invoice(), failure_code=code)
    assert (decision.failure_code, decision.rule, decision.retry_in_days) == (code, "default", 2)
    assert [vars(gate) for gate in decision.gates_checked] == [
        {"gate": "authentication", "result": "passed"},
        {"gate": "body", "result": "passed"},
        {"gate": "rules_table", "result": "fell_through"},
        {"gate": "audit", "result": "recorded"},
    ]
    (newest,) = client.refusals("?limit=1").refusals
    assert vars(newest) == {
        "id": decision.decision_id,
        "kind": "fell_through",
        "route": "POST /decide",
        "gate": "rules_table",
        "reason": "fell_through",
        "at": decision.decided_at,
    }


def test_a_matched_code_is_no_refusal(client: Caller) -> None:
    last = client.newest_refusal()
    client.decide(new_invoice(), failure_code="card_expired")
    assert client.refusals_since(last) == []


def test_attempt_and_prior_failures_have_their_defaults(client: Caller) -> None:
    decision = client.decide(new_invoice())
    assert (decision.attempt, decision.prior_failures, decision.churn_risk) == (1, 0, "low")


def test_the_four_values_are_echoed_as_they_were_sent(client: Caller) -> None:
    invoice = f"Mixed.Case_:-/{uuid.uuid4()}"
    decision = client.decide(invoice, failure_code="A.b_c:/-", attempt=2, prior_failures=7)
    assert (decision.invoice_id, decision.failure_code) == (invoice, "A.b_c:/-")
    assert (decision.attempt, decision.prior_failures) == (2, 7)


@pytest.mark.parametrize("length", [1, 255])
def test_an_invoice_id_may_have_1_to_255_characters(client: Caller, length: int) -> None:
    # One character can't be fresh: what matters is that it is taken.
    invoice = "z" if length == 1 else new_invoice().ljust(length, "x")
    assert client.decide(invoice, failure_code="x").invoice_id == invoice


@pytest.mark.parametrize(
    "body",
    [
        ' \t\r\n{{"invoice_id" : "{0}" , "failure_code":"card_expired"}}\n ',
        '{{"failure_code": "card_expired", "prior_failures": 0, "attempt": 1, "invoice_id": "{0}"}}',
        '{{"invoice\\u005fid": "{0}", "failure_code": "card\\u005fexpired"}}',
        '{{"invoice_id": "{0}", "failure_code": "card_expired", "prior_failures": -0}}',
    ],
    ids=["white space", "another order", "escaped characters", "minus zero"],
)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain; charset=utf-16", "image/png", ""])
def test_a_body_is_read_for_what_it_says_not_for_how(client: Caller, body: str, content_type: str) -> None:
    invoice = new_invoice()
    response = client.send(
        "POST", "/decide", headers={"content-type": content_type}, content=body.format(invoice).encode()
    )
    decision = read(response, "Decision")
    assert (decision.invoice_id, decision.rule, decision.attempt) == (invoice, "card_expired", 1)


@pytest.mark.parametrize("content_type", ["application/json", "application/octet-stream"])
def test_a_body_of_exactly_16_kib_is_taken(client: Caller, content_type: str) -> None:
    body = json.dumps({"invoice_id": new_invoice(), "failure_code": "card_expired"}).encode().ljust(16 * 1024)
    response = client.send("POST", "/decide", headers={"content-type": content_type}, content=body)
    assert read(response, "Decision").rule == "card_expired"


def test_a_body_may_come_in_chunks_with_no_length(client: Caller) -> None:
    invoice = new_invoice()
    body = json.dumps({"invoice_id": invoice, "failure_code": "card_expired"}).encode()
    chunks = iter([body[:10], body[10:]])
    assert read(client.send("POST", "/decide", content=chunks), "Decision").invoice_id == invoice


def test_a_decision_has_the_databases_time_and_an_id_of_the_same_moment(client: Caller) -> None:
    before = datetime.now(UTC)
    decision = client.decide(new_invoice())
    decided = moment(decision.decided_at)
    assert abs(decided - before) < timedelta(minutes=2)
    made = datetime.fromtimestamp((uuid.UUID(decision.decision_id).int >> 80) / 1000, UTC)
    assert abs(decided - made) < timedelta(seconds=30)


def test_each_call_without_a_key_is_a_new_decision(client: Caller) -> None:
    invoice = new_invoice()
    made = [client.decide(invoice) for _ in range(3)]
    assert len({decision.decision_id for decision in made}) == 3
    assert client.history(invoice).decisions == made[::-1]


def test_a_decision_is_canonical_json_with_its_digest(client: Caller) -> None:
    for fields in ({}, {"failure_code": "nothing_of_ours"}, {"failure_code": "retries_exhausted", "attempt": 9}):
        response = client.try_decide(new_invoice(), **fields)
        assert response.content == canonical(response.json())
        assert response.headers["repr-digest"]


def test_the_table_that_decided_is_published_here_under_its_digest(client: Caller) -> None:
    tables = Path(__file__).parents[2] / "lambda" / "paypilot" / "tables"
    if not tables.is_dir():
        pytest.skip("only a checkout has the published tables beside this folder")
    published = {
        "sha256:" + hashlib.sha256(canonical(json.loads(path.read_bytes()))).hexdigest()
        for path in tables.glob("card-*.json")
    }
    versions = {client.decide(new_invoice(), failure_code=rule).rules_version for rule, *_ in ROWS}
    assert len(versions) == 1
    assert versions <= published


def test_every_decision_is_on_record_as_it_was_answered(client: Caller) -> None:
    invoice = new_invoice()
    answers = [
        client.try_decide(invoice, failure_code=rule, attempt=attempt)
        for (rule, *_), attempt in itertools.product(ROWS, (1, 3))
    ]
    history = client.get(f"/decisions/{invoice}").content
    assert all(answer.content in history for answer in answers)
    assert history == canonical(json.loads(history))
