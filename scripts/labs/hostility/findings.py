"""What hostile input must never do, and whether an answer, a row or a log did it."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import psycopg

from paypilot_bootstrap.append_only import APPEND_ONLY
from scripts.labs.hostility.generate import CANARY, TOKENS

SECRETS = (CANARY, *TOKENS)
# The columns that are input, and checked to be what the contract allows. No other column may hold any.
INPUT_COLUMNS = {
    "decision_audit": {"invoice_id", "failure_code", "idempotency_key"},
    "decision_outcomes": {"invoice_id", "report_key"},
}


class Finding(NamedTuple):
    what: str
    case: str


def of_answer(status: int, body: str, asked: object) -> Iterable[Finding]:
    """An answer is below 500, and a problem repeats nothing but the name of a field."""
    if status >= 500:
        yield Finding("an answer of 5xx", f"{status} {body[:200]} to {asked!r:.400}")
    if status >= 400 and body:
        problem = json.loads(body)
        problem.pop("field", None)
        if any(secret in json.dumps(problem) for secret in SECRETS):
            yield Finding("a problem that repeats input", f"{body[:200]} to {asked!r:.400}")


def of_rows(superuser: "psycopg.Connection[Any]") -> Iterable[Finding]:
    """No row holds input in a column that isn't for it, and no refusal any at all."""
    for table in (*APPEND_ONLY, "erasures"):
        columns = superuser.execute(f"SELECT * FROM paypilot.{table} LIMIT 0".encode()).description  # noqa: S608
        for column in columns or ():
            if column.name not in INPUT_COLUMNS.get(table, ()):
                statement = f'SELECT count(*) FROM paypilot.{table} WHERE strpos("{column.name}"::text, %s) > 0'  # noqa: S608
                for secret in SECRETS:
                    count = superuser.execute(statement.encode(), (secret,)).fetchone()
                    if count and count[0]:
                        yield Finding("a row with input in it", f"{count[0]} rows of {table}.{column.name}")


def of_log(name: str, text: str) -> Iterable[Finding]:
    for line in text.splitlines():
        if any(secret in line for secret in SECRETS):
            yield Finding("a log line with input in it", f"{name}: {line[:300]}")


def counted(statuses: Mapping[int, int]) -> str:
    return ", ".join(f"{count:,} x {status}" for status, count in sorted(Counter(statuses).items()))
