"""Growth: what a request costs when the record holds millions of decisions, beside an empty record on the same server.

Rows are loaded by COPY as the tables' owner with the counting triggers off, and counted once at the end; then both
databases are vacuumed, analysed and flushed, and their requests run in turn.
"""

import hashlib
import itertools
import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from paypilot_bootstrap.append_only import APPEND_ONLY
from scripts.labs.benchmarks.harness import (
    CLIENT,
    RULES_VERSION,
    Row,
    add_database,
    ask,
    compare,
    decide_event,
    interleaved,
    quiet,
)
from scripts.local.events import Context
from scripts.local.postgres import LocalPostgres

EMPTY = "paypilot_empty"
BLOCKS = 7
DECISIONS_OF_AN_INVOICE = 3
KNOWN_INVOICES = 40
OTHER_CLIENTS = 9
CODES = ("card_expired", "insufficient_funds", "generic_decline", "issuer_do_not_retry")
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


class Load(NamedTuple):
    """How a size was reached: seconds of COPY and of counting, and the database's bytes."""

    decisions: int
    copy_seconds: float
    count_seconds: float
    bytes_on_disk: int


def load(server: LocalPostgres, sizes: list[int]) -> list[Load]:
    """A database for each of `sizes` (decisions in all), and what loading it took; and an empty one beside them."""
    add_database(server, EMPTY)
    loads = []
    for size in sizes:
        add_database(server, _name(size))
        loads.append(_load(server, size))
    return loads


def measure(server: LocalPostgres, sizes: list[int], rounds: int) -> list[Row]:
    """Rows for each of `sizes`, which `load` has loaded."""
    from paypilot import function
    from paypilot.record.database import Database

    context, services = Context(), {}
    rows: list[Row] = []
    with quiet():
        for name in [EMPTY, *map(_name, sizes)]:
            os.environ["PGDATABASE"] = name
            services[name] = function.database = Database(iam_login=False)
            for number in range(DECISIONS_OF_AN_INVOICE * KNOWN_INVOICES):
                # Half of them fall through, so that a page of refusals and fall-throughs is as full as anywhere.
                code = "card_expired" if number % 2 else "not-in-the-table"
                function.handler(decide_event(f"known-{number % KNOWN_INVOICES}", code), context)
                function.handler(ask("POST", "/decide", body={}), context)
        _settle(server, list(services))

        def call(name: str, request: Callable[[], dict[str, Any]]) -> Callable[[str], None]:
            def made(_: str) -> None:
                function.database = services[name]
                answer = function.handler(request(), context)
                assert answer["statusCode"] == 200, answer

            return made

        for size in sizes:
            rng = random.Random(size)  # noqa: S311
            requests = _requests(rng, [f"in_{number}" for number in range(1, size // 3, size // 600 * 2)])
            beside = _requests(rng, [f"known-{number}" for number in range(KNOWN_INVOICES)])
            for name, request in requests.items():
                pair = {"full": call(_name(size), request), "empty": call(EMPTY, beside[name])}
                interleaved(pair, rounds // 5, f"{size}-{name}-warm-up")
                blocks = [interleaved(pair, rounds, f"{size}-{name}-{number}") for number in range(BLOCKS)]
                value, reference, ratio = compare(blocks, "full", "empty", 50)
                target = "<= 1.1" if size == sizes[-1] and name in {"decide", "history"} else ""
                rows.append(Row(f"{name} at {size:,} decisions", "µs", value, "empty", reference, ratio, target))
    summaries = {row.name: row for row in rows}
    first, last = (summaries[f"summary at {size:,} decisions"] for size in (sizes[0], sizes[-1]))
    growth = last.ratio / first.ratio
    rows.append(
        Row(f"summary at {sizes[-1]:,}", "x empty", last.ratio, f"at {sizes[0]:,}", first.ratio, growth, "<= 3")
    )
    return rows


def _requests(rng: random.Random, invoices: list[str]) -> dict[str, Callable[[], dict[str, Any]]]:
    """A request of each kind: a new decision, and the history of a random one of `invoices`."""
    return {
        "decide": lambda: decide_event(f"new-{rng.getrandbits(64)}"),
        "history": lambda: ask("GET", f"/decisions/{rng.choice(invoices)}"),
        "summary": lambda: ask("GET", "/decisions/outcomes/summary"),
        "refusals": lambda: ask("GET", "/refusals"),
    }


def _name(size: int) -> str:
    return f"paypilot_{size}"


def _load(server: LocalPostgres, size: int) -> Load:
    with psycopg.connect(server.conninfo(_name(size))) as connection:
        connection.execute("SET LOCAL ROLE paypilot_owner")
        # COPY takes no rows into a table whose row-level security holds for its owner: lifted for this transaction.
        for table in APPEND_ONLY:
            connection.execute(f"ALTER TABLE paypilot.{table} NO FORCE ROW LEVEL SECURITY".encode())
        connection.execute("ALTER TABLE paypilot.decision_audit DISABLE TRIGGER count_decision")
        connection.execute("ALTER TABLE paypilot.decision_outcomes DISABLE TRIGGER count_outcome")
        started = time.perf_counter()
        _copy(connection, DECISIONS, _decisions(size))
        _copy(connection, OUTCOMES, _outcomes(size))
        _copy(connection, REFUSALS, _refusals(size))
        copied = time.perf_counter()
        connection.execute("SELECT paypilot.count_everything()")
        counted = time.perf_counter()
        connection.execute("ALTER TABLE paypilot.decision_audit ENABLE ALWAYS TRIGGER count_decision")
        connection.execute("ALTER TABLE paypilot.decision_outcomes ENABLE ALWAYS TRIGGER count_outcome")
        for table in APPEND_ONLY:
            connection.execute(f"ALTER TABLE paypilot.{table} FORCE ROW LEVEL SECURITY".encode())
        connection.commit()
        on_disk = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert on_disk
    return Load(size, copied - started, counted - copied, on_disk[0])


def _settle(server: LocalPostgres, names: list[str]) -> None:
    for name in names:
        with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")
            connection.execute("CHECKPOINT")


DECISIONS = """
COPY paypilot.decision_audit (decision_id, client_id, invoice_id, failure_code, attempt, prior_failures, rule, matched,
    action, tone, retry_in_days, churn_risk, escalated, rules_version, decided_at) FROM STDIN
"""
OUTCOMES = """
COPY paypilot.decision_outcomes (outcome_id, client_id, invoice_id, outcome, report_key, reported_at) FROM STDIN
"""
REFUSALS = "COPY paypilot.decision_refusals (refusal_id, client_id, route, gate, reason, refused_at) FROM STDIN"


def _copy(connection: "psycopg.Connection[Any]", statement: str, lines: Iterator[str]) -> None:
    with connection.cursor().copy(statement.encode()) as copy:
        while batch := "".join(itertools.islice(lines, 1000)):
            copy.write(batch)


def _decisions(size: int) -> Iterator[str]:
    """Half of the decisions are the bench's own client's; one in twenty fell through."""
    for number in range(size):
        invoice = number // DECISIONS_OF_AN_INVOICE
        at = FIRST_DAY + timedelta(seconds=number)
        code = CODES[invoice % len(CODES)]
        rule, matched = ("default", "f") if number % 20 == 0 else (code, "t")
        attempt = number % DECISIONS_OF_AN_INVOICE + 1
        yield (
            f"{_uuid(at, number)}\t{_client(invoice)}\tin_{invoice}\t{code}\t{attempt}\t0\t{rule}\t{matched}\t"
            f"retry_and_verify\tcalm_helpful\t2\tlow\tf\t{RULES_VERSION}\t{at}\n"
        )


def _outcomes(size: int) -> Iterator[str]:
    for number in range(0, size, 10):
        invoice = number // DECISIONS_OF_AN_INVOICE
        at = FIRST_DAY + timedelta(seconds=number + 1)
        outcome = "paid" if number % 30 else "not_paid"
        yield f"{_uuid(at, number)}\t{_client(invoice)}\tin_{invoice}\t{outcome}\treport-{number}\t{at}\n"


def _refusals(size: int) -> Iterator[str]:
    for number in range(0, size, 100):
        at = FIRST_DAY + timedelta(seconds=number)
        yield f"{_uuid(at, number)}\t{_client(number)}\tPOST /decide\tbody\tinvalid_json\t{at}\n"


def _client(invoice: int) -> str:
    return CLIENT if invoice % 2 else f"client-{invoice % OTHER_CLIENTS}"


def _uuid(at: datetime, number: int) -> uuid.UUID:
    """A UUIDv7 of that time, the same each run."""
    noise = int.from_bytes(hashlib.blake2b(number.to_bytes(8), digest_size=10).digest())
    value = int(at.timestamp() * 1000) << 80 | noise
    return uuid.UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)
