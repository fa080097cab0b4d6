"""Erasing a client: who may, what goes, what stays, and what happens to calls that are under way."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import errors as postgres
from psycopg import sql

from paypilot.http.problems import InvalidJson
from paypilot.outcomes import OutcomeReport, read_summary, record_outcome
from paypilot.record.database import Connection, connect
from paypilot.record.rows import new_id
from paypilot.refusals import record_refusal
from paypilot_bootstrap.append_only import APPEND_ONLY
from support.slice import TestDatabase, decided, record_on, waiting

CLIENT, OTHER = "client-a", "client-b"
# The rows that `make_rows` makes, by table.
MADE = {"decision_audit": 3, "decision_outcomes": 2, "decision_refusals": 1, "invoice_states": 3, "rule_counts": 1}


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


def tables(database: TestDatabase) -> set[str]:
    """Every table of the schema but the one that says what was erased."""
    with database.superuser() as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'paypilot'").fetchall()
    return {str(table) for (table,) in found} - {"erasures"}


def counted(database: TestDatabase, client: str) -> dict[str, int]:
    """How many rows of the client there are, by table that has any."""
    found = {}
    for table in tables(database):
        rows = sql.SQL("SELECT FROM {} WHERE client_id = %s").format(sql.Identifier("paypilot", table))
        with database.superuser() as connection:
            found[table] = connection.execute(rows, (client,)).rowcount
    return {table: count for table, count in found.items() if count}


def erase(database: TestDatabase, client: str) -> dict[str, int]:
    """How many rows were erased, by table."""
    with psycopg.connect(database.server.conninfo(database.name), autocommit=True) as connection:
        connection.execute("SET ROLE paypilot_eraser")
        return dict(connection.execute("SELECT * FROM paypilot.erase_client(%s)", (client,)).fetchall())


def test_an_erasure_removes_one_client_and_leaves_a_row_that_counts_what_it_removed(
    database: TestDatabase, service: Connection
) -> None:
    make_rows(service, CLIENT)
    make_rows(service, OTHER)
    before = counted(database, OTHER)
    assert {table: rows for table, rows in erase(database, CLIENT).items() if rows} == MADE
    assert counted(database, CLIENT) == {}
    assert counted(database, OTHER) == before == MADE
    assert read_summary(record_on(service, CLIENT)) == []
    erase(database, OTHER)
    with database.superuser() as connection:
        left = connection.execute(
            "SELECT erasure_id, client_id, table_name, row_count, erased_by, erased_at <= clock_timestamp() "
            "FROM paypilot.erasures WHERE row_count > 0"
        ).fetchall()
    assert sorted(left) == [
        (number, client, table, rows, "postgres", True)
        for number, client in enumerate((CLIENT, OTHER), 1)
        for table, rows in sorted(MADE.items())
    ]


def test_every_table_is_append_only_or_counted_and_an_erasure_names_it(database: TestDatabase) -> None:
    # A table that fails here has no client_id, or isn't in APPEND_ONLY.
    assert tables(database) == set(erase(database, CLIENT)) == {*APPEND_ONLY, "invoice_states", "rule_counts"}
    with database.superuser() as connection:
        left = connection.execute("SELECT table_name, row_count FROM paypilot.erasures").fetchall()
    assert left == [(table, 0) for table, _ in left]
    assert {table for table, _ in left} == tables(database)


def test_a_table_that_is_not_guarded_fails_the_whole_erasure(database: TestDatabase, service: Connection) -> None:
    make_rows(service, CLIENT)
    with database.superuser() as connection:
        connection.execute("CREATE TABLE paypilot.forgotten (client_id text)")
    with pytest.raises(postgres.InsufficientPrivilege, match="forgotten"):
        erase(database, CLIENT)
    assert counted(database, CLIENT) == MADE


def test_an_erased_client_starts_anew(database: TestDatabase, service: Connection) -> None:
    make_rows(service, CLIENT)
    erase(database, CLIENT)
    make_rows(service, CLIENT)
    assert counted(database, CLIENT) == MADE
    assert read_summary(record_on(service, CLIENT)) == [("card_expired", 3, 1, 1)]


@pytest.mark.parametrize("role", ["paypilot_owner", "paypilot_service"])
def test_neither_owner_nor_service_may_erase(database: TestDatabase, service: Connection, role: str) -> None:
    make_rows(service, CLIENT)
    with database.superuser() as connection:
        connection.execute(f"SET ROLE {role}".encode())
        with pytest.raises(postgres.InsufficientPrivilege):
            connection.execute("SELECT paypilot.erase_client(%s)", (CLIENT,))
    assert counted(database, CLIENT) == MADE


def test_the_eraser_may_do_nothing_else(database: TestDatabase, service: Connection) -> None:
    make_rows(service, CLIENT)
    with database.superuser() as connection:
        connection.execute("SET ROLE paypilot_eraser")
        for statement in (
            "SELECT FROM paypilot.decision_audit",
            "DELETE FROM paypilot.decision_audit",
            "DELETE FROM paypilot.erasures",
            "INSERT INTO paypilot.erasures (erasure_id, client_id, table_name, row_count) VALUES (0, 'x', 'x', 0)",
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
        assert erasure.result()["decision_audit"] == 1
    assert counted(database, CLIENT) == {}


def test_an_erasure_waits_for_a_refusal_under_way_and_erases_it(database: TestDatabase, service: Connection) -> None:
    with ThreadPoolExecutor(1) as pool:
        with service.transaction():
            record_refusal(record_on(service, CLIENT), "POST /decide", InvalidJson(""))
            erasure = pool.submit(erase, database, CLIENT)
            waiting(database, "advisory")
        assert erasure.result()["decision_refusals"] == 1
    assert counted(database, CLIENT) == {}


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
    assert counted(database, CLIENT) == {}


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
            removed = [erase(database, CLIENT)["decision_audit"] for _ in range(10)]
        finally:
            erased.set()
        made = sum(future.result() for future in running)
    with database.superuser() as connection:
        row = connection.execute(
            "SELECT count(*), count(DISTINCT invoice_id), (SELECT count(*) FROM paypilot.invoice_states), "
            "(SELECT coalesce(sum(invoices), 0)::bigint FROM paypilot.rule_counts) FROM paypilot.decision_audit"
        ).fetchone()
    assert row is not None
    decisions, invoices, states, counts = row
    assert decisions == made - sum(removed)
    assert states == counts == invoices
