"""Erasing a client: who may, what goes, what stays, and what happens to calls that are under way."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import errors as postgres

from paypilot.http.problems import InvalidJson
from paypilot.outcomes import OutcomeReport, read_summary, record_outcome
from paypilot.record.database import Connection, connect
from paypilot.record.rows import new_id
from paypilot.refusals import record_refusal
from support.slice import TestDatabase, decided, record_on, waiting

CLIENT, OTHER = "client-a", "client-b"


@pytest.fixture
def service(database: TestDatabase) -> Iterator[Connection]:
    with connect(iam_login=False) as connection:
        yield connection


def make_rows(connection: Connection, client: str) -> None:
    for number in range(3):
        decided(connection, client, f"in_{number}")
    record_outcome(record_on(connection, client), new_id(), "in_0", OutcomeReport("paid", "key-0"))
    record_outcome(record_on(connection, client), new_id(), "in_1", OutcomeReport("not_paid", "key-1"))
    record_refusal(record_on(connection, client), "POST /decide", InvalidJson(""))


def counted(database: TestDatabase, client: str) -> tuple[Any, ...]:
    with database.superuser() as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM paypilot.decision_audit WHERE client_id = %(client)s),"
            "(SELECT count(*) FROM paypilot.decision_outcomes WHERE client_id = %(client)s),"
            "(SELECT count(*) FROM paypilot.decision_refusals WHERE client_id = %(client)s),"
            "(SELECT count(*) FROM paypilot.invoice_states WHERE client_id = %(client)s),"
            "(SELECT coalesce(sum(invoices), 0) FROM paypilot.rule_counts WHERE client_id = %(client)s)::bigint",
            {"client": client},
        ).fetchone()
        assert row is not None
        return row


def erase(database: TestDatabase, client: str) -> Any:
    with database.superuser() as connection:
        connection.execute("SET ROLE paypilot_eraser")
        return connection.execute("SELECT * FROM paypilot.erase_client(%s)", (client,)).fetchone()


def test_an_erasure_removes_one_client_and_leaves_a_row_that_counts_what_it_removed(
    database: TestDatabase, service: Connection
) -> None:
    make_rows(service, CLIENT)
    make_rows(service, OTHER)
    before = counted(database, OTHER)
    assert erase(database, CLIENT) == (3, 2, 1)
    assert counted(database, CLIENT) == (0, 0, 0, 0, 0)
    assert counted(database, OTHER) == before == (3, 2, 1, 3, 3)
    assert read_summary(record_on(service, CLIENT)) == []
    with database.superuser() as connection:
        left = connection.execute(
            "SELECT client_id, decisions, outcomes, refusals, erased_by, erased_at <= clock_timestamp() "
            "FROM paypilot.erasures"
        ).fetchall()
    assert left == [(CLIENT, 3, 2, 1, "postgres", True)]


def test_an_erased_client_starts_anew(database: TestDatabase, service: Connection) -> None:
    make_rows(service, CLIENT)
    erase(database, CLIENT)
    make_rows(service, CLIENT)
    assert counted(database, CLIENT) == (3, 2, 1, 3, 3)
    assert read_summary(record_on(service, CLIENT)) == [("card_expired", 3, 1, 1)]


@pytest.mark.parametrize("role", ["paypilot_owner", "paypilot_service"])
def test_neither_owner_nor_service_may_erase(database: TestDatabase, service: Connection, role: str) -> None:
    make_rows(service, CLIENT)
    with database.superuser() as connection:
        connection.execute(f"SET ROLE {role}".encode())
        with pytest.raises(postgres.InsufficientPrivilege):
            connection.execute("SELECT paypilot.erase_client(%s)", (CLIENT,))
    assert counted(database, CLIENT) == (3, 2, 1, 3, 3)


def test_the_eraser_may_do_nothing_else(database: TestDatabase, service: Connection) -> None:
    make_rows(service, CLIENT)
    with database.superuser() as connection:
        connection.execute("SET ROLE paypilot_eraser")
        for statement in (
            "SELECT FROM paypilot.decision_audit",
            "DELETE FROM paypilot.decision_audit",
            "DELETE FROM paypilot.erasures",
            "INSERT INTO paypilot.erasures (client_id, decisions, outcomes, refusals) VALUES ('x', 0, 0, 0)",
            "SET ROLE paypilot_erasure",
        ):
            # The session's own user is a superuser, who may take any role: an eraser's own session may not.
            if statement.startswith("SET ROLE"):
                connection.execute("SET SESSION AUTHORIZATION paypilot_eraser")
            with pytest.raises(postgres.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_an_erasure_under_another_isolation_is_refused(database: TestDatabase) -> None:
    with database.superuser() as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with pytest.raises(postgres.FeatureNotSupported, match="READ COMMITTED"), connection.transaction():
            connection.execute("SELECT paypilot.erase_client(%s)", (CLIENT,))


def test_an_erasure_waits_for_a_decision_under_way_and_erases_it(database: TestDatabase, service: Connection) -> None:
    with ThreadPoolExecutor(1) as pool:
        with service.transaction():
            decided(service, CLIENT, "in_9")
            erasure = pool.submit(erase, database, CLIENT)
            waiting(database, "advisory")
        assert erasure.result() == (1, 0, 0)
    assert counted(database, CLIENT) == (0, 0, 0, 0, 0)


def test_a_report_that_waits_for_an_erasure_finds_no_decision_and_leaves_no_row(
    database: TestDatabase, service: Connection
) -> None:
    decided(service, CLIENT, "in_0")
    with ThreadPoolExecutor(1) as pool, database.superuser() as eraser:
        with eraser.transaction():
            eraser.execute("SELECT paypilot.erase_client(%s)", (CLIENT,))
            report = pool.submit(
                record_outcome, record_on(service, CLIENT), new_id(), "in_0", OutcomeReport("paid", "key-0")
            )
            waiting(database, "advisory")
        with pytest.raises(postgres.SerializationFailure):
            report.result()
    # Which is what the function's one more try is for.
    assert record_outcome(record_on(service, CLIENT), new_id(), "in_0", OutcomeReport("paid", "key-0")) is None
    assert counted(database, CLIENT) == (0, 0, 0, 0, 0)


def test_decisions_during_erasures_leave_counts_that_agree_with_the_rows(database: TestDatabase) -> None:
    erased = threading.Event()

    def decide_until_erased(thread: int) -> int:
        made = 0
        with connect(iam_login=False) as connection:
            while not erased.is_set():
                decided(connection, CLIENT, f"in_{thread}_{made % 7}")
                made += 1
        return made

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(decide_until_erased, thread) for thread in range(4)]
        try:
            removed = [erase(database, CLIENT)[0] for _ in range(10)]
        finally:
            erased.set()
        made = sum(future.result() for future in running)
    decisions, _, _, states, invoices = counted(database, CLIENT)
    assert decisions == made - sum(removed)
    with database.superuser() as connection:
        row = connection.execute("SELECT count(DISTINCT invoice_id) FROM paypilot.decision_audit").fetchone()
    assert (states, invoices) == (row[0], row[0]) if row else ()
