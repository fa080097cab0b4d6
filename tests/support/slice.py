"""What the tests run against: a real database that the bootstrap set up, and the local host as `make run` starts it."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from paypilot.core.decide import Decision, FailedPayment, decide
from paypilot.decisions import StoredDecision, record_decision
from paypilot.record.database import Connection
from paypilot.record.rows import Record, new_id
from paypilot.tables import published_tables
from paypilot_bootstrap.function import handler as bootstrap
from scripts.local import host
from scripts.local.checkout import ROOT
from scripts.local.postgres import LocalPostgres, running_postgres

__all__ = ["ROOT", "running_postgres"]

TOKEN, OTHER_TOKEN = "token-of-client-a", "token-of-client-b"
TOKENS = '{"token-of-client-a": "client-a", "token-of-client-b": "client-b"}'


@dataclass(frozen=True)
class Host:
    """A running local host. `log` is where its standard error goes."""

    url: str
    process: subprocess.Popen[str]
    log: Path


@contextmanager
def running_host(folder: Path, **environment: str) -> Iterator[Host]:
    """The local host on a free port, with its data in `folder`."""
    log = folder.parent / f"{folder.name}.log"
    environment = {"PAYPILOT_DATA_DIR": str(folder), "DECISION_API_TOKEN": TOKENS, **environment}
    with host.running_host(log, **environment) as (url, process):
        yield Host(url, process, log)


@dataclass(frozen=True)
class TestDatabase:
    """A database on `server`, made by `running_postgres`. `service` are the service's libpq variables."""

    __test__ = False

    server: LocalPostgres
    name: str
    service: Mapping[str, str]

    def superuser(self) -> "psycopg.Connection[tuple[object, ...]]":
        """A superuser's connection, which sees every row."""
        return psycopg.connect(self.server.conninfo(self.name), autocommit=True)


def decided(connection: Connection, client: str, invoice: str, code: str = "card_expired") -> StoredDecision:
    """A decision recorded by the service's own statement."""
    payment = FailedPayment(invoice, code)
    decision = decide(payment, published_tables())
    assert isinstance(decision, Decision)
    return record_decision(record_on(connection, client), new_id(), payment, decision, None)


def record_on(connection: Connection, client: str) -> Record:
    """The record of `client`, on a connection of the test's own."""
    return Record(lambda work: work(connection), client)


def waiting(database: TestDatabase, lock: str) -> None:
    """Return once somebody waits for a lock of this type in `database`."""
    with database.superuser() as connection:
        until(
            lambda: connection.execute("SELECT FROM pg_locks WHERE NOT granted AND locktype = %s", (lock,)).fetchall()
        )


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Return once `condition` holds; fail if it doesn't within `seconds`."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.01)


def blank_database(server: LocalPostgres, name: str = "paypilot") -> None:
    """An empty database, on a server that has never seen the slice: roles belong to all its databases."""
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        connection.execute("DROP ROLE IF EXISTS paypilot_owner, paypilot_service, paypilot_erasure, paypilot_eraser")
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def bootstrapped(server: LocalPostgres, monkeypatch: pytest.MonkeyPatch) -> TestDatabase:
    """A fresh database that the bootstrap set up, and the environment by which the service finds it."""
    blank_database(server)
    service = service_environment(server, "paypilot")
    for name, value in service.items():
        monkeypatch.setenv(name, value)
    bootstrap({"action": "bootstrap", "master_password": server.password}, None)
    return TestDatabase(server, "paypilot", service)


def service_environment(server: LocalPostgres, database: str) -> dict[str, str]:
    """The libpq variables by which the service logs in to `database`."""
    return {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(server.port),
        "PGDATABASE": database,
        "PGUSER": "paypilot_service",
        "PGPASSWORD": "password-of-the-service",
        "PAYPILOT_MASTER_USER": "postgres",
    }
