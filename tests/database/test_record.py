"""What the database itself keeps of the record's promises, whoever asks, whatever a query forgets."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psycopg
import pytest
from psycopg import errors as postgres

from paypilot.decisions import read_history
from paypilot.http.page import Page
from paypilot.http.problems import InvalidJson
from paypilot.outcomes import OutcomeReport, read_summary, record_outcome
from paypilot.record.database import Connection, connect
from paypilot.record.rows import SET_CLIENT, new_id
from paypilot.refusals import record_refusal
from paypilot_bootstrap.append_only import APPEND_ONLY
from support.slice import TestDatabase, decided, record_on

CHANGES = {
    "UPDATE": "UPDATE paypilot.{} SET client_id = client_id",
    "DELETE": "DELETE FROM paypilot.{}",
    "TRUNCATE": "TRUNCATE paypilot.{} CASCADE",
}


@pytest.fixture
def service(database: TestDatabase) -> Iterator[Connection]:
    """The service's own connection, to a database with a row of each kind of two clients."""
    with connect(iam_login=False) as connection:
        for client in ("client-a", "client-b"):
            decided(connection, client, "in_1")
            record_outcome(record_on(connection, client), new_id(), "in_1", OutcomeReport("paid", "key"))
            record_refusal(record_on(connection, client), "POST /decide", InvalidJson(""))
        yield connection


@pytest.mark.parametrize("role", ["paypilot_owner", "postgres"])
def test_owner_and_superuser_are_refused_every_change_also_as_a_replica(database: TestDatabase, role: str) -> None:
    with database.superuser() as connection:
        for replication_role in ("origin", "replica"):
            connection.execute("RESET ROLE")
            connection.execute(f"SET session_replication_role = {replication_role}".encode())
            connection.execute(f"SET ROLE {role}".encode())
            for table in (*APPEND_ONLY, "erasures"):
                for change, statement in CHANGES.items():
                    with pytest.raises(postgres.InsufficientPrivilege, match=f"{change} is refused"):
                        connection.execute(statement.format(table).encode())


@pytest.mark.parametrize("table", [*APPEND_ONLY, "rule_counts"])
def test_a_query_without_a_filter_sees_one_client_and_without_a_client_nothing(service: Connection, table: str) -> None:
    clients = f"SELECT DISTINCT client_id FROM paypilot.{table}".encode()
    assert service.execute(clients).fetchall() == []
    with service.transaction():
        service.execute(SET_CLIENT, {"client": "client-a"})
        assert service.execute(clients).fetchall() == [("client-a",)]
    # The client was set for that transaction only.
    assert service.execute(clients).fetchall() == []


def test_the_owner_sees_no_row_without_a_client_either(service: Connection, database: TestDatabase) -> None:
    with database.superuser() as connection:
        connection.execute("SET ROLE paypilot_owner")
        for table in APPEND_ONLY:
            assert connection.execute(f"SELECT FROM paypilot.{table}".encode()).fetchall() == []


INSERT_REFUSAL = (
    "INSERT INTO paypilot.decision_refusals (client_id, refusal_id, route, gate, reason{column}) {override} "
    "VALUES ('client-a', gen_random_uuid(), 'r', 'g', 'r'{value})"
)


@pytest.mark.parametrize(
    ("column", "override", "value"),
    [
        (", refused_at", "", ", '2020-01-01'"),
        (", refused_at", "", ", clock_timestamp()"),
        (", seq", "", ", 1"),
        (", seq", "OVERRIDING SYSTEM VALUE", ", 1"),
        (", seq", "OVERRIDING USER VALUE", ", 1"),
    ],
    ids=["back-dated", "dated now", "a place", "a place overridden", "a place given up"],
)
def test_a_row_gets_its_time_and_its_place_from_the_database(
    service: Connection, column: str, override: str, value: str
) -> None:
    statement = INSERT_REFUSAL.format(column=column, override=override, value=value)
    with service.transaction(force_rollback=True):
        service.execute(SET_CLIENT, {"client": "client-a"})
        with pytest.raises((postgres.InsufficientPrivilege, postgres.GeneratedAlways)), service.transaction():
            service.execute(statement.encode())
        # The positive control: it is the column that is refused.
        service.execute(INSERT_REFUSAL.format(column="", override="", value="").encode())


def test_a_row_of_another_client_is_refused(service: Connection) -> None:
    with pytest.raises(postgres.InsufficientPrivilege, match="row-level security"), service.transaction():
        service.execute(SET_CLIENT, {"client": "client-b"})
        service.execute(INSERT_REFUSAL.format(column="", override="", value="").encode())


def test_an_outcome_without_a_decision_is_refused_by_the_database_too(service: Connection) -> None:
    with pytest.raises(postgres.SerializationFailure), service.transaction():
        service.execute(SET_CLIENT, {"client": "client-a"})
        service.execute(
            "INSERT INTO paypilot.decision_outcomes (client_id, outcome_id, invoice_id, outcome, report_key) "
            "VALUES ('client-a', gen_random_uuid(), 'in_never', 'paid', 'never')"
        )


def test_answers_and_commits_are_the_same_whatever_the_roles_defaults_have_become(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(iam_login=False) as connection:
        before = decided(connection, "client-a", "in_1")
        for setting in (
            "synchronous_commit = off",
            "search_path = public",
            "default_transaction_isolation = 'serializable'",
            "timezone = 'America/New_York'",
            "datestyle = 'German'",
        ):
            # Every role may do this to itself.
            connection.execute(f"ALTER ROLE paypilot_service SET {setting}".encode())
    # And a shell's own, for other programs.
    monkeypatch.setenv("PGOPTIONS", "-c synchronous_commit=off")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with connect(iam_login=False) as connection:
        _, history = read_history(record_on(connection, "client-a"), "in_1", Page(1, None, None, b""))
        assert history == [before]
        assert history[0].body() == before.body()
        on_disk = "SELECT current_setting('synchronous_commit')"
        with connection.transaction():
            decided(connection, "client-a", "in_1")
            assert connection.execute(on_disk).fetchone() == ("on",)
        # A report goes by way of query, and so do reads.
        assert record_on(connection, "client-a").query(on_disk) == [[("on",)]]


def test_the_service_sees_neither_others_queries_nor_statistics_of_the_rows(
    service: Connection, database: TestDatabase
) -> None:
    with database.superuser() as connection:
        connection.execute("ANALYZE")
        connection.execute("SELECT 'canary'")
        rows = service.execute("SELECT query FROM pg_stat_activity WHERE usename <> current_user").fetchall()
        assert rows
        assert all("canary" not in str(row) for row in rows)
        assert service.execute("SELECT FROM pg_stats WHERE schemaname = 'paypilot'").fetchall() == []


@pytest.mark.parametrize("connections", [1, 6])
def test_the_summary_equals_a_plain_count_whatever_comes_at_the_same_time(
    database: TestDatabase, connections: int
) -> None:
    codes = ["card_expired", "insufficient_funds", "generic_decline", "another_code"]
    numbers = count()

    def work(seed: int) -> None:
        # Few invoices and few rules, so that connections meet at both.
        choose = random.Random(seed)
        with connect(iam_login=False) as connection:
            for _ in range(120):
                client, invoice = choose.choice(["client-a", "client-b"]), f"in_{choose.randrange(6)}"
                if choose.random() < 0.5:
                    decided(connection, client, invoice, choose.choice(codes))
                else:
                    outcome = choose.choice(["paid", "not_paid"])
                    key = f"key-{next(numbers)}"
                    record_outcome(record_on(connection, client), new_id(), invoice, OutcomeReport(outcome, key))

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(work, range(connections)))
    plain = """
        SELECT rule, count(*), count(*) FILTER (WHERE outcome = 'paid'), count(*) FILTER (WHERE outcome = 'not_paid')
        FROM (SELECT DISTINCT ON (invoice_id) invoice_id, rule FROM paypilot.decision_audit
              WHERE client_id = %(client)s ORDER BY invoice_id, seq DESC) AS decision
        LEFT JOIN (SELECT DISTINCT ON (invoice_id) invoice_id, outcome FROM paypilot.decision_outcomes
                   WHERE client_id = %(client)s ORDER BY invoice_id, seq DESC) AS report USING (invoice_id)
        GROUP BY rule ORDER BY rule
    """
    with connect(iam_login=False) as connection, database.superuser() as everything:
        for client in ("client-a", "client-b"):
            expected = everything.execute(plain, {"client": client}).fetchall()
            assert sum(int(str(row[1])) for row in expected) >= 4
            assert read_summary(record_on(connection, client)) == expected
        # And so does a count made anew.
        everything.execute("SET ROLE paypilot_owner")
        with everything.transaction(force_rollback=True):
            for table in ("decision_audit", "decision_outcomes"):
                everything.execute(f"ALTER TABLE paypilot.{table} NO FORCE ROW LEVEL SECURITY".encode())
            everything.execute("SELECT paypilot.count_everything()")
            counted = everything.execute(
                "SELECT rule, invoices, paid, not_paid FROM paypilot.rule_counts WHERE client_id = %s ORDER BY 1",
                ("client-a",),
            ).fetchall()
        assert counted == read_summary(record_on(connection, "client-a"))


def test_a_statement_of_the_service_ends_by_itself(database: TestDatabase) -> None:
    with connect(iam_login=False) as service:
        assert service.execute("SHOW statement_timeout").fetchone() == ("5s",)
        service.execute("SET statement_timeout = '10ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            service.execute("SELECT pg_sleep(10)")


def test_the_driver_logs_nothing_of_a_lost_connection(
    service: Connection, database: TestDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    def read() -> None:
        read_history(record_on(service, "client-a"), "in_1", Page(1, None, None, b""))

    read()
    with database.superuser() as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", (service.info.backend_pid,))
    with pytest.raises(psycopg.OperationalError):
        read()
    assert [entry.getMessage() for entry in caplog.records if entry.name.startswith("psycopg")] == []
