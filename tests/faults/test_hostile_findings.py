"""What `make hostile` looks for, it finds: planted in an answer, a row and a log."""

import json
from uuid import uuid4

import pytest

from scripts.labs.hostility import findings
from scripts.labs.hostility.generate import CANARY, TOKENS, Hostile
from support.slice import TestDatabase


@pytest.mark.parametrize(
    ("status", "problem", "found"),
    [
        (422, {"detail": "what is allowed", "field": CANARY}, []),
        (422, {"detail": f"not {CANARY}"}, ["a problem that repeats input"]),
        (401, {"detail": "token-of-client-a"}, ["a problem that repeats input"]),
        (500, {"detail": "internal"}, ["an answer of 5xx"]),
        (200, {"invoice_id": CANARY}, []),
    ],
)
def test_an_answer_of_5xx_and_a_problem_that_repeats_input_are_found(
    status: int, problem: dict[str, str], found: list[str]
) -> None:
    assert [finding.what for finding in findings.of_answer(status, json.dumps(problem), "asked")] == found


@pytest.mark.parametrize("secret", [CANARY, *TOKENS])
def test_a_log_line_with_input_or_a_token_in_it_is_found(secret: str) -> None:
    assert not list(findings.of_log("log", '{"message": "answered"}\n'))
    assert len(list(findings.of_log("log", f'{{"message": "answered"}}\n{{"message": "{secret}"}}\n'))) == 1


def test_a_row_with_input_in_it_is_found_and_a_decisions_own_columns_are_not(database: TestDatabase) -> None:
    refusal = (
        "INSERT INTO paypilot.decision_refusals (refusal_id, client_id, route, gate, reason) "
        "VALUES (%s, 'a', %s, 'body', 'x')"
    )
    with database.superuser() as superuser:
        superuser.execute(refusal, (uuid4(), "POST /decide"))
        assert not list(findings.of_rows(superuser))
        superuser.execute(refusal, (uuid4(), f"POST /{CANARY}"))
        assert [finding.case for finding in findings.of_rows(superuser)] == ["1 rows of decision_refusals.route"]


def test_every_drawn_event_and_request_holds_what_is_looked_for() -> None:
    hostile = Hostile("1")
    drawn = [json.dumps(hostile.event()) for _ in range(300)]
    assert sum(CANARY in event for event in drawn) > 200
    assert sum(any(token in event for token in TOKENS) for event in drawn) > 200
    assert sum(CANARY.encode() in hostile.request() for _ in range(300)) > 200
