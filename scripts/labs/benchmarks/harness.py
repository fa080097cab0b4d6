"""The parts of every measurement: a database, requests, and clocks that read two things in turn."""

import contextlib
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from paypilot.record.rows import new_id
from scripts.local.events import event
from scripts.local.postgres import LocalPostgres
from scripts.local.slice import DATABASE, bootstrap, reach, running_database

# Never closed: a logger keeps the standard output that it found.
SINK = Path(os.devnull).open("w")  # noqa: SIM115
TOKEN, CLIENT = "token-of-the-bench", "bench"
# The database has a quarter of a small machine's memory, as RDS gives it; nothing else differs from its defaults.
SERVER_OPTIONS = ("max_connections=200", "shared_buffers=1GB", "max_wal_size=8GB", "checkpoint_timeout=30min")


class Row(NamedTuple):
    """One figure beside its reference. `target` bounds `ratio` (value / reference): `<= 1.25`, or empty for none."""

    name: str
    unit: str
    value: float
    reference: str
    reference_value: float
    ratio: float
    target: str = ""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the ratio keeps the target; None where there is none."""
        if not self.target:
            return None
        comparison, bound = self.target.split(" ")
        return self.ratio <= float(bound) if comparison == "<=" else self.ratio >= float(bound)


@contextlib.contextmanager
def database(folder: Path) -> Iterator[LocalPostgres]:
    """A server with one bootstrapped database, `paypilot`, which the environment then names."""
    os.environ["DECISION_API_TOKEN"] = json.dumps({TOKEN: CLIENT})
    with running_database(folder, *SERVER_OPTIONS) as server:
        use_database(server, DATABASE)
        yield server


def add_database(server: LocalPostgres, name: str) -> None:
    """Make and bootstrap a database, which the environment then names."""
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    use_database(server, name)


def use_database(server: LocalPostgres, name: str) -> None:
    """Bootstrap a database, once more if need be: the environment then names it, with a new password of the service."""
    with quiet():
        bootstrap(reach(server.conninfo(name)))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Write the function's log lines and throw them away."""
    with contextlib.redirect_stdout(SINK):
        yield


def ask(method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The event of an ordinary request, with the headers that API Gateway and a client add."""
    headers = {
        "accept": "*/*",
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        "host": "api.example",
        "user-agent": "bench",
        "x-forwarded-for": "192.0.2.1",
        "x-forwarded-proto": "https",
    }
    return event(method, path, headers=headers, body=b"" if body is None else json.dumps(body).encode())


def decide_event(invoice_id: str, failure_code: str = "card_expired") -> dict[str, Any]:
    """The request that most rows here measure."""
    body = {"invoice_id": invoice_id, "failure_code": failure_code, "attempt": 1, "prior_failures": 0}
    return ask("POST", "/decide", body)


BARE_INSERT = """
INSERT INTO paypilot.decision_audit (client_id, decision_id, invoice_id, failure_code, attempt, prior_failures, rule,
    matched, action, tone, retry_in_days, churn_risk, escalated, rules_version)
VALUES (%s, %s, %s, 'card_expired', %s, %s, 'card_expired', %s, 'request_card_update', 'friendly_routine', %s, 'low',
    %s, %s)
"""
RULES_VERSION = "sha256:" + "0" * 64


def bare_insert(connection: "psycopg.Connection[Any]", invoice_id: str, statement: str = BARE_INSERT) -> None:
    """The floor: the row that a decision writes, in one statement that commits by itself, and nothing else."""
    connection.execute(statement.encode(), (CLIENT, new_id(), invoice_id, 1, 0, True, 1, False, RULES_VERSION))


def interleaved(calls: Mapping[str, Callable[[str], object]], rounds: int, seed: str) -> dict[str, list[float]]:
    """Each call `rounds` times, in a new random order each round: microseconds by name. A call gets a fresh word."""
    order = random.Random(seed)  # noqa: S311
    names = list(calls)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        order.shuffle(names)
        for name in names:
            word = f"{seed}-{name}-{number}"
            started = time.perf_counter_ns()
            calls[name](word)
            taken[name].append((time.perf_counter_ns() - started) / 1000)
    return taken


def compare(
    blocks: Sequence[Mapping[str, Sequence[float]]], name: str, reference: str, percent: int
) -> tuple[float, float, float]:
    """Medians over blocks of (value, reference, ratio), each block's ratio being of its own two percentiles."""
    return medians(
        [tuple(statistics.quantiles(block[each], n=100)[percent - 1] for each in (name, reference)) for block in blocks]
    )


def medians(pairs: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Medians of (value, reference, ratio), each ratio being of one pair."""
    value, reference = map(statistics.median, zip(*pairs, strict=True))
    return value, reference, statistics.median(ours / theirs for ours, theirs in pairs)
