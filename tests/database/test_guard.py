"""A table that a migration makes and guards: what the service may do with it, and what an erasure does."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from psycopg import errors as postgres

from paypilot.record.database import Connection, connect
from paypilot.record.rows import SET_CLIENT
from paypilot_bootstrap.proof.catalog import GUARDED, GUARDS, HELD
from support.slice import TestDatabase, decided, waiting

SCRATCH = """
CREATE TABLE paypilot.scratch (
    scratch_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq bigint GENERATED ALWAYS AS IDENTITY,
    client_id text NOT NULL,
    decision_id uuid NOT NULL REFERENCES paypilot.decision_audit,
    note text,
    note_length integer GENERATED ALWAYS AS (length(note)) STORED,
    "noted by" text,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""
INSERT = (
    "INSERT INTO paypilot.scratch (client_id, decision_id, note{column}) "
    "SELECT '{client}', decision_id, 'note'{value} FROM paypilot.decision_audit LIMIT 1"
)
OWN = INSERT.format(client="client-a", column="", value="")


@pytest.fixture
def service(database: TestDatabase) -> Iterator[Connection]:
    """The service's own connection, to a database with a guarded table that has a row of each of two clients."""
    with database.superuser() as superuser:
        superuser.execute("SET ROLE paypilot_owner")
        superuser.execute(SCRATCH)
        superuser.execute("SELECT paypilot.guard('scratch')")
    with connect(iam_login=False) as connection:
        for client in ("client-a", "client-b"):
            decided(connection, client, "in_1")
            with connection.transaction():
                connection.execute(SET_CLIENT, {"client": client})
                connection.execute(INSERT.format(client=client, column="", value="").encode())
        yield connection


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE paypilot.scratch SET note = note",
        "DELETE FROM paypilot.scratch",
        "TRUNCATE paypilot.scratch",
        INSERT.format(client="client-a", column=", scratch_id", value=", gen_random_uuid()"),
        INSERT.format(client="client-a", column=", seq", value=", 1").replace(
            ") SELECT", ") OVERRIDING USER VALUE SELECT"
        ),
        INSERT.format(client="client-a", column=", noted_at", value=", now()"),
        INSERT.format(client="client-b", column="", value=""),
        "SELECT paypilot.guard('decision_audit')",
        "ALTER TABLE paypilot.scratch DISABLE TRIGGER append_only",
    ],
)
def test_the_service_is_refused_every_change_and_every_column_with_a_default(
    service: Connection, statement: str
) -> None:
    with service.transaction(force_rollback=True):
        service.execute(SET_CLIENT, {"client": "client-a"})
        with pytest.raises(postgres.InsufficientPrivilege), service.transaction():
            service.execute(statement.encode())
        # The positive control: its own row, and each column that it supplies.
        service.execute(OWN.encode())
        service.execute(INSERT.format(client="client-a", column=', "noted by"', value=", 'me'").encode())


def test_the_service_sees_one_clients_rows_and_without_a_client_none(service: Connection) -> None:
    clients = "SELECT client_id FROM paypilot.scratch"
    assert service.execute(clients).fetchall() == []
    with service.transaction():
        service.execute(SET_CLIENT, {"client": "client-a"})
        assert service.execute(clients).fetchall() == [("client-a",)]


def test_it_is_guarded_as_the_tables_of_the_record_are_and_nothing_else_is_granted(service: Connection) -> None:
    guards = {guard for table, guard in service.execute(GUARDS).fetchall() if table == "scratch"}
    like = {guard.replace("decision_refusals", "scratch") for table, guard in GUARDED if table == "decision_refusals"}
    assert guards == like
    assert {held[1:] for held in service.execute(HELD).fetchall() if held[0] == "scratch"} == {
        ("SELECT", "*"),
        *(("INSERT", column) for column in ("client_id", "decision_id", "note", "noted by")),
    }


@pytest.mark.parametrize("change", ["UPDATE paypilot.scratch SET note = note", "DELETE FROM paypilot.scratch"])
@pytest.mark.parametrize("role", ["paypilot_owner", "postgres"])
def test_owner_and_superuser_are_refused_a_change_also_as_a_replica(
    database: TestDatabase, service: Connection, role: str, change: str
) -> None:
    with database.superuser() as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(f"SET ROLE {role}".encode())
        with pytest.raises(postgres.InsufficientPrivilege, match=r"scratch is append-only"):
            connection.execute(change.encode())


def test_an_erasure_removes_its_rows_before_those_that_they_refer_to(
    database: TestDatabase, service: Connection
) -> None:
    with database.superuser() as connection:
        erased = connection.execute("SELECT * FROM paypilot.erase_client('client-a')").fetchall()
        left = connection.execute("SELECT client_id FROM paypilot.scratch").fetchall()
    assert erased[0] == ("scratch", 1)
    assert ("decision_audit", 1) in erased
    assert left == [("client-b",)]


def test_an_erasure_waits_for_a_row_under_way_and_erases_it(database: TestDatabase, service: Connection) -> None:
    def erase() -> dict[str, int]:
        with database.superuser() as connection:
            rows = connection.execute("SELECT table_name, row_count::integer FROM paypilot.erase_client('client-a')")
            return {str(table): int(str(count)) for table, count in rows.fetchall()}

    with ThreadPoolExecutor(1) as pool:
        with service.transaction():
            service.execute(SET_CLIENT, {"client": "client-a"})
            service.execute(OWN.encode())
            erasure = pool.submit(erase)
            waiting(database, "advisory")
        assert erasure.result()["scratch"] == 2


def test_a_row_that_waits_for_an_erasure_finds_what_it_refers_to_gone(
    database: TestDatabase, service: Connection
) -> None:
    with service.transaction():
        service.execute(SET_CLIENT, {"client": "client-a"})
        decision = service.execute("SELECT decision_id FROM paypilot.decision_audit").fetchone()
    assert decision is not None

    def insert() -> None:
        with service.transaction():
            service.execute(SET_CLIENT, {"client": "client-a"})
            service.execute("INSERT INTO paypilot.scratch (client_id, decision_id) VALUES ('client-a', %s)", decision)

    with ThreadPoolExecutor(1) as pool, database.superuser() as eraser:
        with eraser.transaction():
            eraser.execute("SELECT paypilot.erase_client('client-a')")
            inserted = pool.submit(insert)
            waiting(database, "advisory")
        with pytest.raises(postgres.ForeignKeyViolation):
            inserted.result()


@pytest.mark.parametrize("role", ["paypilot_service", "paypilot_eraser", "paypilot_erasure"])
def test_only_the_owner_guards_a_table(database: TestDatabase, role: str) -> None:
    with database.superuser() as connection:
        connection.execute(f"SET ROLE {role}".encode())
        with pytest.raises(postgres.InsufficientPrivilege, match="function guard"):
            connection.execute("SELECT paypilot.guard('decision_audit')")
