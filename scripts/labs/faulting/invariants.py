"""What must hold after every fault, checked from the callers' notes and the database's own rows."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import psycopg

from paypilot import decisions, outcomes
from paypilot.decisions import StoredDecision
from paypilot.outcomes import StoredOutcome
from paypilot.record.database import WAIT_SECONDS_MAX

# What a call may take beyond the wait for the database: two processors and a dozen processes share this machine.
SLACK_SECONDS = 1.5
ALLOWED = {"decision": {200, 503}, "outcome": {200, 201, 503}, "refusal": {422, 503}}

STORED = "every answered decision is stored, byte for byte"
ONE_ROW = "no key and no call has two rows"
NO_ROW = "nothing is answered without a row"
NO_HANG = "no call outlasts the deadline"
RECOVERY = "every caller is answered again with no restart"
STATUS = "a fault is answered 503, and nothing else"

ALL_DECISIONS = f"SELECT {', '.join(decisions.COLUMNS)} FROM paypilot.decision_audit"  # noqa: S608
ALL_OUTCOMES = f"SELECT client_id, report_key, {outcomes.COLUMNS} FROM paypilot.decision_outcomes"  # noqa: S608


class Violation(NamedTuple):
    """An invariant that didn't hold, and one case of it."""

    invariant: str
    case: str


def check(
    notes: list[Mapping[str, Any]], superuser: "psycopg.Connection[Any]", healed_at: float | None
) -> list[Violation]:
    """`notes` are the workers' lines; `healed_at` is when the fault was over, by the monotonic clock."""
    answers = [note for note in notes if "status" in note]
    rows = superuser.execute(ALL_DECISIONS.encode()).fetchall()
    decided = {str(row[0]): StoredDecision.from_row(row) for row in rows}
    rows = superuser.execute(ALL_OUTCOMES.encode()).fetchall()
    reported = {(row[0], row[1]): StoredOutcome(*row[2:]) for row in rows}
    refusals = {str(row[0]) for row in superuser.execute("SELECT refusal_id FROM paypilot.decision_refusals")}
    return [
        *_answered(answers, decided, reported, refusals),
        *_one_body_a_key(answers),
        *_one_row(superuser, {note["invoice_id"] for note in notes}),
        *_in_time(answers),
        *_recovered(answers, healed_at),
    ]


def _answered(
    answers: list[Mapping[str, Any]],
    decided: Mapping[str, StoredDecision],
    reported: Mapping[tuple[str, str], StoredOutcome],
    refusals: set[str],
) -> Iterable[Violation]:
    for answer in answers:
        status, body, kind = answer["status"], json.loads(answer["body"]), answer["kind"]
        case = f"{kind} of {answer['worker']}: {status} {answer['body'][:120]}"
        if status not in ALLOWED[kind]:
            yield Violation(STATUS, case)
        elif status == 503:
            if "decision_id" in body:
                yield Violation(NO_ROW, case)
        elif kind == "decision":
            row = decided.get(body["decision_id"])
            if row is None:
                yield Violation(NO_ROW, case)
            elif row.body().decode() != answer["body"]:
                yield Violation(STORED, case)
        elif kind == "outcome":
            stored = reported.get((answer["client"], answer["key"]))
            if stored is None:
                yield Violation(NO_ROW, case)
            elif stored.body().decode() != answer["body"]:
                yield Violation(STORED, case)
        elif body["refusal_id"] not in refusals:
            yield Violation(NO_ROW, case)


def _one_body_a_key(answers: list[Mapping[str, Any]]) -> Iterable[Violation]:
    bodies = defaultdict(set)
    for answer in answers:
        if answer["key"] and answer["status"] in {200, 201}:
            bodies[answer["kind"], answer["client"], answer["key"]].add(answer["body"])
    for key, different in bodies.items():
        if len(different) > 1:
            yield Violation(ONE_ROW, f"{key} was answered in {len(different)} ways")


def _one_row(superuser: "psycopg.Connection[Any]", invoices: set[str | None]) -> Iterable[Violation]:
    """Keys are unique to the database; and every key, and every call without one, has an invoice of its own here."""
    twice = superuser.execute(
        "SELECT client_id, invoice_id, count(*) FROM paypilot.decision_audit WHERE invoice_id = ANY(%s) "
        "GROUP BY 1, 2 HAVING count(*) > 1",
        (list(invoices - {None}),),
    )
    for client_id, invoice_id, count in twice:
        yield Violation(ONE_ROW, f"{client_id} has {count} rows of {invoice_id}")


def _in_time(answers: list[Mapping[str, Any]]) -> Iterable[Violation]:
    for answer in answers:
        if answer["seconds"] > WAIT_SECONDS_MAX + SLACK_SECONDS:
            yield Violation(NO_HANG, f"{answer['kind']} of {answer['worker']} took {answer['seconds']:.1f} s")


def _recovered(answers: list[Mapping[str, Any]], healed_at: float | None) -> Iterable[Violation]:
    if healed_at is None:
        return
    recovered = {a["worker"] for a in answers if a["status"] in {200, 201} and a["answered_at"] > healed_at}
    for worker in {answer["worker"] for answer in answers} - recovered:
        yield Violation(RECOVERY, f"{worker} was never answered again")
