"""Walk every gate of a slice of its own with invented requests, and read back from the database what each one left.

Exits non-zero, naming it, if an answer is not the expected one, or a row is missing or was not expected.
"""

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from paypilot.http import problems
from paypilot_bootstrap.append_only import APPEND_ONLY
from scripts.local import command
from scripts.local.host import HostError, running_host
from scripts.local.postgres import LocalPostgres, PostgresError, ignore_libpq_environment
from scripts.local.slice import DATABASE, SliceError, running_database

ACME, ZENITH = "token-of-acme", "token-of-zenith"
TOKENS = {ACME: "acme", ZENITH: "zenith"}
EXPIRED = {"invoice_id": "in_1001", "failure_code": "card_expired"}
INVALID_TOKENS = '{"sha256:not-a-digest": "acme"}'

# Each table's row in words: when it was taken, and what it records. One of another table is shown by the table's name.
WORDS = {
    "decision_audit": (
        "decided_at",
        "'decision by ' || rule || ', ' || coalesce('retry in ' || retry_in_days || ' d', 'never') "
        "|| CASE WHEN escalated THEN ', escalated' ELSE '' END",
    ),
    "decision_outcomes": ("reported_at", "'outcome ' || outcome"),
    "decision_refusals": ("refused_at", "'refusal at gate ' || gate || ', ' || reason"),
}


def select_rows(table: str, id_column: str) -> str:
    """The table's rows: their id, when they were taken, and whose they are, with what they record."""
    at, words = WORDS.get(table, ("now()", f"'row of {table}'"))
    return f"SELECT {id_column} AS id, {at} AS at, client_id || ': ' || {words} FROM paypilot.{table}"  # noqa: S608


ROWS = "\nUNION ALL\n".join(select_rows(table, columns[0]) for table, columns in APPEND_ONLY.items()) + "\nORDER BY at"

# The rows that acme may see at GET /refusals.
LISTED = """
SELECT refusal_id FROM paypilot.decision_refusals WHERE client_id = 'acme'
UNION ALL
SELECT decision_id FROM paypilot.decision_audit WHERE client_id = 'acme' AND NOT matched
"""


@dataclass
class Walk:
    """The walk so far: `seen` are the ids of the rows already reported, `faults` what was not as expected."""

    postgres: LocalPostgres
    client: httpx.Client
    url: str = ""
    seen: set[Any] = field(default_factory=set)
    codes: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    steps: int = 0

    def database(self) -> "psycopg.Connection[Any]":
        """A superuser's connection, which sees every client's rows."""
        return psycopg.connect(self.postgres.conninfo(DATABASE), autocommit=True)

    def step(
        self,
        what: str,
        request: str,
        body: object = None,
        *,
        answers: str,
        leaves: str = "",
        gate: str = "",
        token: str | None = ACME,
        key: str | None = None,
        database_is_down: bool = False,
    ) -> httpx.Response:
        """Send `request` ("METHOD /path") and compare its answer with `answers` and the new rows with what it leaves.

        That is acme's row `leaves`, or the refusal at `gate`, or none. `body` is sent as JSON, or as it is where it is
        text already.
        """
        method, path = request.split(" ", 1)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        headers |= {"idempotency-key": key} if key is not None else {}
        content = body if isinstance(body, str) else json.dumps(body) if body is not None else None
        response = self.client.request(method, self.url + path, headers=headers, content=content)
        if response.headers["content-type"] == "application/problem+json":
            self.codes.add(response.json()["code"])
        if gate:
            leaves = f"refusal at gate {gate}, {answers.split()[1]}"
        rows = [] if database_is_down else self.new_rows()
        self.report(what, describe(response), answers, rows, [f"acme: {leaves}"] if leaves else [])
        return response

    def decide(self, what: str, body: object, answers: str, leaves: str = "", **named: Any) -> httpx.Response:
        """The step `POST /decide`."""
        return self.step(what, "POST /decide", body, answers=answers, leaves=leaves, **named)

    def report(self, what: str, got: str, expected: str, rows: Sequence[str], leaves: Sequence[str]) -> None:
        """Print a line for what was tried, and keep what is not as expected."""
        faults = [f"{what}: expected {expected}, got {got}"] if got != expected else []
        faults += [f"{what}: missing row: {row}" for row in (Counter(leaves) - Counter(rows)).elements()]
        faults += [f"{what}: unexpected row: {row}" for row in (Counter(rows) - Counter(leaves)).elements()]
        self.faults += faults
        self.steps += 1
        print(f"{'FAIL' if faults else 'ok':<5}{what:<46} {got}")
        for row in rows:
            print(f"       + {row}")
        for fault in faults:
            print(f"     ! {fault}")

    def new_rows(self) -> list[str]:
        """The rows that came since the last call, oldest first."""
        with self.database() as connection:
            rows = [row for row in connection.execute(ROWS).fetchall() if row[0] not in self.seen]
        self.seen |= {row[0] for row in rows}
        return [row[2] for row in rows]


def describe(response: httpx.Response) -> str:
    """The answer in a few words: its status, and what it says."""
    body: dict[str, Any] = response.json()
    replayed = ", replayed" if response.headers.get("idempotent-replayed") == "true" else ""
    if response.headers["content-type"] == "application/problem+json":
        text = body["code"]
    elif "decision_id" in body:
        text = f"{body['action']}{replayed}"
    elif "outcome_id" in body:
        text = f"{body['outcome']}{replayed}"
    elif "decisions" in body:
        text = f"{body['outcome']}, decisions: {len(body['decisions'])}"
    elif "recovery_rate" in body:
        text = f"paid: {body['paid']}, unknown: {body['unknown']}"
    elif "refusals" in body:
        text = f"entries: {len(body['refusals'])}"
    elif "goes_again" in body:
        text = f"row {body['row']}"
    else:
        text = body["status"]
    return f"{response.status_code} {text}"


def walk_every_gate(walk: Walk) -> None:
    """Every gate, in the order in which they are checked, on a host that knows acme's token and zenith's."""
    gates_before_the_body(walk)
    bodies(walk)
    decision = decisions(walk)
    bank_debits(walk)
    outcome = outcomes(walk)
    database_down(walk)
    role_tampered_with(walk)
    listings(walk, [decision, outcome])
    unwalked = {problem.code for problem in problems.ALL} - walk.codes
    walk.faults += [f"no step was answered with the code {code}" for code in sorted(unwalked)]


def gates_before_the_body(walk: Walk) -> None:
    print("\nRoute, method, token, query, Idempotency-Key")
    walk.step("health needs no token", "GET /health", token=None, answers="200 ok")
    walk.step("no such route", "GET /decide/now", answers="404 not_found")
    walk.step("a route by another method", "GET /decide", answers="405 method_not_allowed")
    walk.step("no token", "GET /refusals", token=None, answers="401 unauthorized")
    walk.step("a token that nobody was given", "GET /refusals", token="guess", answers="401 unauthorized")  # noqa: S106
    walk.step("a limit of 0", "GET /refusals?limit=0", answers="422 invalid_query")
    too_long = {"key": "k" * 256, "gate": "idempotency_key"}
    walk.decide("an Idempotency-Key of 256 characters", EXPIRED, "422 idempotency_key_invalid", **too_long)


# what was tried -> the body, and the code that refuses it
BAD_BODIES: dict[str, tuple[object, str]] = {
    "a body of 16 KiB and a byte": (" " * (16 * 1024 + 1), "413 body_too_large"),
    "half a body": ('{"invoice_id": "in_1001"', "422 invalid_json"),
    "NaN": ('{"attempt": NaN}', "422 invalid_json"),
    "a list": ([], "422 not_an_object"),
    "a field given twice": ('{"invoice_id": "in_1001", "invoice_id": "in_1002"}', "422 duplicate_field"),
    "no failure code": ({"invoice_id": "in_1001"}, "422 missing_field"),
    "an attempt that is true": (EXPIRED | {"attempt": True}, "422 invalid_type"),
    "attempt 0": (EXPIRED | {"attempt": 0}, "422 invalid_value"),
    "a field that nobody asked for": (EXPIRED | {"amount": 4900}, "422 unknown_field"),
    "a body that names its client": (EXPIRED | {"client_id": "zenith"}, "422 client_id_in_body"),
}


def bodies(walk: Walk) -> None:
    print("\nBodies of POST /decide")
    for what, (body, answers) in BAD_BODIES.items():
        walk.decide(what, body, answers, gate="body")


def decisions(walk: Walk) -> str:
    """Decide, and return the id of the control: a decision that must not be listed as a refusal."""
    print("\nDecisions")
    answers, row = "200 request_card_update", "decision by card_expired, retry in 1 d"
    control = walk.decide("control: a listed code", EXPIRED, answers, row, key="try-1")
    replay = walk.decide("the same key, the same request", EXPIRED, f"{answers}, replayed", key="try-1")
    if replay.content != control.content:
        walk.faults.append("the replay is not the first answer, byte for byte")
    reused = {"key": "try-1", "gate": "idempotency_key"}
    walk.decide("the same key, another request", EXPIRED | {"attempt": 2}, "422 idempotency_key_reused", **reused)
    unlisted = {"invoice_id": "in_1002", "failure_code": "do_not_honor"}
    row = "decision by default, retry in 2 d"
    walk.decide("fall-through: a code that isn't listed", unlisted, "200 retry_and_verify", row)
    third = {"invoice_id": "in_1003", "failure_code": "insufficient_funds", "attempt": 3}
    row = "decision by insufficient_funds, retry in 2 d, escalated"
    walk.decide("escalation: the third attempt, a day sooner", third, "200 wait_and_retry", row)
    never = {"invoice_id": "in_1004", "failure_code": "issuer_do_not_retry", "attempt": 9}
    row = "decision by issuer_do_not_retry, never, escalated"
    walk.decide("never: escalated, and still never", never, "200 request_new_payment_method", row)
    hers = walk.step("another client's invoice", "GET /decisions/in_1001", token=ZENITH, answers="404 not_found")
    nobodys = walk.step("nobody's invoice", "GET /decisions/in_9999", token=ZENITH, answers="404 not_found")
    if hers.content != nobodys.content:
        walk.faults.append("another client's invoice is not answered as nobody's")
    return str(control.json().get("decision_id"))


def bank_debits(walk: Walk) -> None:
    print("\nReturn codes of bank debits")
    for what, code, answers, row in (
        ("a code that goes again", "ach:R01", "200 wait_and_retry", "decision by ach:R01, retry in 3 d"),
        ("a code that the rail doesn't list", "ach:R99", "200 refer_to_person", "decision by ach:default, never"),
        ("no code at all", "ach:r01", "422 not_a_rail_code", "refusal at gate rules_table, not_a_rail_code"),
        ("a rail with no table to cite", "bacs:0", "422 rail_refused", "refusal at gate rules_table, rail_refused"),
    ):
        walk.decide(what, {"invoice_id": "in_1005", "failure_code": code}, answers, row)
    walk.step("a look-up needs no token", "GET /rails/ach/codes/R01", token=None, answers="200 row 1")


def outcomes(walk: Walk) -> str:
    """Report outcomes, and return the id of the control."""
    print("\nOutcomes")

    def report(what: str, outcome: str, number: int, answers: str, **named: Any) -> httpx.Response:
        body = {"outcome": outcome, "report_key": f"report-{number}"}
        return walk.step(what, "POST /decisions/in_1001/outcome", body, answers=answers, **named)

    control = report("control: an outcome", "paid", 1, "201 paid", leaves="outcome paid")
    report("reported twice", "paid", 1, "200 paid, replayed")
    report("the same report key, another outcome", "not_paid", 1, "409 report_key_reused", gate="report_key")
    report("unknown can't be reported", "unknown", 2, "422 invalid_value", gate="body")
    report("another client's invoice", "paid", 1, "404 not_found", token=ZENITH)
    report("a late truth: the bank took it back", "not_paid", 3, "201 not_paid", leaves="outcome not_paid")
    walk.step("the newest report is the outcome", "GET /decisions/in_1001", answers="200 not_paid, decisions: 1")
    return str(control.json().get("outcome_id"))


def database_down(walk: Walk) -> None:
    print("\nThe database is killed")
    request = {"invoice_id": "in_2001", "failure_code": "generic_decline"}
    lost: dict[str, Any] = {"answers": "503 audit_unavailable", "database_is_down": True}
    walk.postgres.kill()
    down = walk.decide("no decision without its row", request, key="try-2", **lost)
    if "retry-after" not in down.headers:
        walk.faults.append("the 503 of a lost database has no Retry-After")
    walk.decide("no refusal without its row", [], **lost)
    walk.step("health doesn't ask the database", "GET /health", answers="200 ok", database_is_down=True)
    walk.postgres.start()
    walk.report("the database is back, nothing in between", "-", "-", walk.new_rows(), [])
    row = "decision by generic_decline, retry in 2 d"
    walk.decide("the same key again", request, "200 retry_and_verify", row, key="try-2")


def role_tampered_with(walk: Walk) -> None:
    print("\nSomebody takes a right from the service's role")
    request = {"invoice_id": "in_2002", "failure_code": "card_details_invalid"}
    with walk.database() as connection:
        connection.execute("REVOKE INSERT (rule) ON paypilot.decision_audit FROM paypilot_service")
    walk.decide("no decision, and an alarm of its own", request, "500 internal")
    with walk.database() as connection:
        connection.execute("GRANT INSERT (rule) ON paypilot.decision_audit TO paypilot_service")
    row = "decision by card_details_invalid, never"
    walk.decide("the right is given back", request, "200 request_card_update", row)


def listings(walk: Walk, controls: Sequence[str]) -> None:
    print("\nWhat the clients may read of it")
    with walk.database() as connection:
        expected = {str(row[0]) for row in connection.execute(LISTED).fetchall()}
    refusals = walk.step("acme's refusals", "GET /refusals?limit=200", answers=f"200 entries: {len(expected)}")
    listed = {entry["id"] for entry in refusals.json().get("refusals", [])}
    walk.faults += [f"GET /refusals: missing entry: {entry}" for entry in sorted(expected - listed)]
    walk.faults += [f"GET /refusals: unexpected entry: {entry}" for entry in sorted(listed - expected)]
    walk.faults += [f"a control is listed as a refusal: {control}" for control in controls if control in listed]
    walk.step("zenith's refusals", "GET /refusals", token=ZENITH, answers="200 entries: 0")
    walk.step("acme's summary", "GET /decisions/outcomes/summary", answers="200 paid: 0, unknown: 6")


def walk_in_a_slice() -> Walk:
    """The whole walk, on a database of its own that is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="paypilot-demo-") as name, httpx.Client(timeout=30) as client:
        folder = Path(name)
        with running_database(folder / "database") as postgres:
            walk = Walk(postgres, client)
            log, database = folder / "host.log", postgres.conninfo(DATABASE)
            print("Each line: what was tried, and the answer. Each line with a +: a row that it left in the database.")
            with running_host(log, DATABASE_URL=database, DECISION_API_TOKEN=INVALID_TOKENS) as (walk.url, _):
                print("\nA host whose tokens are not valid")
                walk.step("nobody is let in", "GET /refusals", answers="503 auth_not_configured")
            with running_host(log, DATABASE_URL=database, DECISION_API_TOKEN=json.dumps(TOKENS)) as (walk.url, _):
                walk_every_gate(walk)
    return walk


def main(arguments: Sequence[str] | None = None) -> None:
    command.parser(__doc__).parse_args(arguments)
    ignore_libpq_environment()
    try:
        walk = walk_in_a_slice()
    except (PostgresError, SliceError, HostError) as error:
        sys.exit(f"demo: {error}")
    if walk.faults:
        sys.exit("\nNot as expected:\n" + "\n".join(f"  {fault}" for fault in walk.faults))
    print(f"\n{walk.steps} steps, {len(walk.seen)} rows, as expected; neither control is listed as a refusal.")


if __name__ == "__main__":
    with command.reader_may_leave():
        main()
