"""A warm decision through the Lambda entry point, beside the bare insert of its row and a usual build's decision."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from scripts.labs.benchmarks.harness import (
    BARE_INSERT,
    CLIENT,
    TOKEN,
    Row,
    bare_insert,
    compare,
    decide_event,
    interleaved,
    quiet,
)
from scripts.local.events import Context
from scripts.local.postgres import LocalPostgres

REFERENCES = Path(__file__).parents[3] / "tests" / "bench"
BLOCKS = 7


def measure(server: LocalPostgres, rounds: int) -> list[Row]:
    """Rows for the database `paypilot` of `server`."""
    os.environ["BENCH_TOKEN"] = TOKEN
    sys.path.insert(0, str(REFERENCES))
    import resolver_build

    from paypilot import function

    context = Context()

    def ours(word: str) -> Any:
        return function.handler(decide_event(word), context)

    def resolver(word: str) -> Any:
        return resolver_build.handler(decide_event(word), context)

    with quiet():
        answers = ours("first"), resolver("first")
        if [answer["statusCode"] for answer in answers] != [200, 200]:
            raise RuntimeError(f"not both decided: {answers}")
        # The very connection that the function decides on.
        connection = function.database._connection(float("inf"))
        connection.execute("SELECT set_config('paypilot.client_id', %s, false)", (CLIENT,))

        def floor(word: str, statement: str = BARE_INSERT) -> None:
            connection.deadline = float("inf")  # a decision sets its own
            bare_insert(connection, word, statement)

        def transaction(word: str) -> None:
            connection.deadline = float("inf")
            with connection.transaction():
                bare_insert(connection, word)

        references = {"floor": floor, "transaction": transaction, "resolver": resolver}
        blocks = {}
        for name, reference in references.items():
            # Two at a time: a third would leave the caches of the machine to neither.
            pair = {"ours": ours, name: reference}
            interleaved(pair, rounds // 5, f"{name}-warm-up")
            blocks[name] = [interleaved(pair, rounds, f"{name}-{number}") for number in range(BLOCKS)]
    rows = []
    for name, label, percent, target in (
        ("floor", "one INSERT that commits", 50, "<= 1.25"),
        ("floor", "one INSERT that commits", 99, "<= 1.5"),
        ("transaction", "BEGIN, INSERT, COMMIT", 50, ""),
        ("resolver", "resolver + pydantic build", 50, "<= 0.9"),
        ("resolver", "resolver + pydantic build", 99, ""),
    ):
        value, reference_value, ratio = compare(blocks[name], "ours", name, percent)
        rows.append(Row(f"warm decision p{percent}", "µs", value, label, reference_value, ratio, target))
    rows.append(_cost_of_counting(server, floor, rounds))
    return rows


def _cost_of_counting(server: LocalPostgres, insert: Callable[..., None], rounds: int) -> Row:
    """The insert with the summary's count beside an insert into a table that is the same without it."""
    with psycopg.connect(server.conninfo("paypilot"), autocommit=True) as superuser:
        superuser.execute("CREATE TABLE paypilot.uncounted (LIKE paypilot.decision_audit INCLUDING ALL)")
        superuser.execute("GRANT INSERT, SELECT ON paypilot.uncounted TO paypilot_service")
        uncounted = BARE_INSERT.replace("decision_audit", "uncounted")
        calls = {"counted": insert, "uncounted": lambda word: insert(word, uncounted)}
        blocks = [interleaved(calls, rounds, f"count{number}") for number in range(3)]
        superuser.execute("DROP TABLE paypilot.uncounted")  # the bootstrap's proof would not have it
    value, reference_value, ratio = compare(blocks, "counted", "uncounted", 50)
    note = "what the summary's triggers and row-level security cost each insert"
    return Row("INSERT with the summary's count p50", "µs", value, "without it", reference_value, ratio, "", note)
