"""The proof proves: it names whatever is broken on purpose, and leaves nothing behind.

Each case is (what a superuser does to the database, a proof that must then fail).
"""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors as postgres

from paypilot.http.problems import InvalidJson
from paypilot.outcomes import OutcomeReport, record_outcome
from paypilot.record.database import Connection, connect
from paypilot.record.rows import new_id
from paypilot.refusals import record_refusal
from paypilot_bootstrap.append_only import APPEND_ONLY
from paypilot_bootstrap.function import handler as bootstrap
from paypilot_bootstrap.proof.attempt import ProofFailed
from paypilot_bootstrap.proof.prove import prove, prove_owner
from paypilot_bootstrap.proof.refused import REFUSED
from support.slice import TestDatabase, bootstrapped, decided, record_on, running_postgres, until

AUDIT = "paypilot.decision_audit"

BROKEN = [
    (
        f"GRANT UPDATE ON {AUDIT} TO paypilot_service; ALTER TABLE {AUDIT} DISABLE TRIGGER append_only",
        "UPDATE decision_audit",
    ),
    ("GRANT UPDATE ON paypilot.decision_outcomes TO paypilot_service", "privileges: none beyond its own"),
    ("GRANT UPDATE (reason) ON paypilot.decision_refusals TO PUBLIC", "privileges: none beyond its own"),
    ("GRANT DELETE ON paypilot.decision_outcomes TO paypilot_service", "privileges: none beyond its own"),
    (
        "GRANT DELETE ON paypilot.decision_refusals TO paypilot_service;"
        "DROP TRIGGER append_only ON paypilot.decision_refusals",
        "DELETE decision_refusals",
    ),
    (
        "GRANT TRUNCATE ON paypilot.decision_outcomes TO paypilot_service;"
        "DROP TRIGGER append_only ON paypilot.decision_outcomes",
        "TRUNCATE decision_outcomes",
    ),
    (f"GRANT INSERT ON {AUDIT} TO paypilot_service", "privileges: none beyond its own"),
    ("GRANT INSERT (seq) ON paypilot.decision_refusals TO paypilot_service", "INSERT a place in the order"),
    ("GRANT INSERT (refused_at) ON paypilot.decision_refusals TO paypilot_service", "INSERT a time"),
    (f"GRANT SELECT ON {AUDIT} TO paypilot_service WITH GRANT OPTION", "GRANT what it holds"),
    ("GRANT SELECT ON paypilot.invoice_states TO paypilot_service", "SELECT invoice_states"),
    (
        "GRANT INSERT ON paypilot.rule_counts TO paypilot_service; "
        "ALTER TABLE paypilot.rule_counts DISABLE ROW LEVEL SECURITY",
        "INSERT rule_counts",
    ),
    ("GRANT INSERT ON paypilot.erasures TO PUBLIC", "INSERT erasures"),
    ("GRANT USAGE ON SEQUENCE paypilot.decision_audit_seq_seq TO paypilot_service", "nextval of a sequence"),
    ("GRANT EXECUTE ON FUNCTION paypilot.erase_client(text) TO paypilot_service", "erase_client"),
    ("GRANT EXECUTE ON FUNCTION paypilot.count_everything() TO PUBLIC", "privileges: none beyond its own"),
    ("GRANT CREATE ON SCHEMA paypilot TO paypilot_service", "CREATE TABLE in paypilot"),
    ("GRANT CREATE ON SCHEMA public TO PUBLIC", "CREATE TABLE in public"),
    ("GRANT CREATE ON SCHEMA public TO PUBLIC", "CREATE FUNCTION in public"),
    ("GRANT CREATE ON DATABASE paypilot TO paypilot_service", "CREATE SCHEMA"),
    ("GRANT TEMPORARY ON DATABASE paypilot TO PUBLIC", "CREATE TEMPORARY TABLE"),
    ("GRANT TEMPORARY ON DATABASE paypilot TO paypilot_service", "CREATE temporary FUNCTION"),
    ("CREATE SCHEMA other; GRANT CREATE ON SCHEMA other TO PUBLIC", "privileges: none beyond its own"),
    ("CREATE TABLE public.other (); GRANT UPDATE ON public.other TO PUBLIC", "privileges: none beyond its own"),
    (
        "CREATE FUNCTION public.other() RETURNS integer LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
        "privileges: none beyond its own",
    ),
    ("ALTER DEFAULT PRIVILEGES IN SCHEMA paypilot GRANT SELECT ON TABLES TO PUBLIC", "privileges: none beyond its own"),
    (
        "ALTER DEFAULT PRIVILEGES FOR ROLE paypilot_owner GRANT UPDATE ON TABLES TO paypilot_service",
        "privileges: none beyond its own",
    ),
    ("GRANT paypilot_owner TO paypilot_service", "SET ROLE paypilot_owner"),
    ("GRANT paypilot_owner TO paypilot_service WITH SET FALSE", "memberships of the role"),
    ("GRANT paypilot_erasure TO paypilot_service", "SET ROLE paypilot_erasure"),
    ("GRANT paypilot_eraser TO paypilot_service", "SET ROLE paypilot_eraser"),
    ("GRANT pg_write_all_data TO paypilot_service", "memberships of the role"),
    ("GRANT pg_read_server_files TO paypilot_service", "memberships of the role"),
    ("GRANT pg_execute_server_program TO paypilot_service", "COPY TO PROGRAM"),
    ("ALTER ROLE paypilot_service BYPASSRLS", "SELECT another client's rows"),
    ("ALTER ROLE paypilot_service CREATEROLE", "CREATE ROLE"),
    ("ALTER ROLE paypilot_service CREATEDB REPLICATION", "attributes of the role"),
    ("ALTER ROLE paypilot_service SUPERUSER", "attributes of the role"),
    (f"ALTER TABLE {AUDIT} OWNER TO paypilot_service", "ALTER TABLE"),
    ("ALTER TABLE paypilot.erasures OWNER TO paypilot_service", "objects that the role owns"),
    (f"ALTER TABLE {AUDIT} DISABLE TRIGGER append_only", "owner, triggers and row-level security: all there"),
    (f"ALTER TABLE {AUDIT} ENABLE TRIGGER append_only", "owner, triggers and row-level security: all there"),
    ("DROP TRIGGER append_only ON paypilot.erasures", "owner, triggers and row-level security: all there"),
    (
        "DROP TRIGGER append_only ON paypilot.decision_outcomes; "
        "CREATE TRIGGER append_only BEFORE UPDATE ON paypilot.decision_outcomes "
        "FOR EACH STATEMENT EXECUTE FUNCTION paypilot.refuse_change(); "
        "ALTER TABLE paypilot.decision_outcomes ENABLE ALWAYS TRIGGER append_only",
        "owner, triggers and row-level security: all there",
    ),
    (f"DROP TRIGGER count_decision ON {AUDIT}", "owner, triggers and row-level security: all there"),
    ("DROP TRIGGER count_outcome ON paypilot.decision_outcomes", "control before: its own rows are written and read"),
    (
        "CREATE RULE other AS ON INSERT TO paypilot.decision_refusals DO ALSO NOTHING",
        "owner, triggers and row-level security: no others",
    ),
    (
        "CREATE VIEW paypilot.other AS SELECT * FROM paypilot.decision_audit",
        "owner, triggers and row-level security: no others",
    ),
    (f"ALTER TABLE {AUDIT} NO FORCE ROW LEVEL SECURITY", "owner, triggers and row-level security: all there"),
    ("ALTER TABLE paypilot.decision_outcomes DISABLE ROW LEVEL SECURITY", "SELECT another client's rows"),
    ("ALTER TABLE paypilot.rule_counts DISABLE ROW LEVEL SECURITY", "SELECT with no client set"),
    ("CREATE POLICY other ON paypilot.decision_refusals USING (true)", "INSERT for another client"),
    ("CREATE POLICY other ON paypilot.decision_refusals USING (true)", "INSERT with no client set"),
    (
        "CREATE POLICY other ON paypilot.decision_outcomes FOR SELECT USING (client_id = 'x')",
        "owner, triggers and row-level security: no others",
    ),
    ("ALTER POLICY one_client ON paypilot.decision_outcomes USING (true)", "SELECT another client's rows"),
    (f"ALTER POLICY one_client ON {AUDIT} WITH CHECK (true)", "owner, triggers and row-level security: all there"),
    (
        f"ALTER TABLE {AUDIT} DISABLE ROW LEVEL SECURITY; ANALYZE {AUDIT}",
        "statistics of rows that it may not see",
    ),
    ("ALTER ROLE paypilot_service SET synchronous_commit = off", "settings of the role are bootstrap's"),
    (
        "ALTER ROLE paypilot_service IN DATABASE paypilot SET search_path = public",
        "settings of the role are bootstrap's",
    ),
    ("ALTER ROLE paypilot_service RESET statement_timeout", "settings of the role are bootstrap's"),
    ("GRANT SET ON PARAMETER session_replication_role TO paypilot_service", "SET session_replication_role"),
    ("GRANT SET ON PARAMETER log_statement TO PUBLIC", "ALTER SYSTEM's right"),
    ("GRANT SET ON PARAMETER track_functions TO PUBLIC", "privileges: none beyond its own"),
    ("GRANT EXECUTE ON FUNCTION pg_read_file(text) TO paypilot_service", "pg_read_file"),
    ("GRANT EXECUTE ON FUNCTION lo_create(oid) TO PUBLIC", "lo_create"),
    ("SELECT lo_create(0)", "large objects"),
    # What the service needs is missing: then nothing else that was refused says anything.
    (f"REVOKE SELECT ON {AUDIT} FROM paypilot_service", "control before: its own rows are written and read"),
    (f"REVOKE INSERT (rule) ON {AUDIT} FROM paypilot_service", "control after: its own rows are written and read"),
    (
        "REVOKE SELECT ON paypilot.rule_counts FROM paypilot_service",
        "control before: its own rows are written and read",
    ),
    ("REVOKE INSERT (gate) ON paypilot.decision_refusals FROM paypilot_service", "privileges: all of its own"),
    ("REVOKE USAGE ON SCHEMA paypilot FROM paypilot_service", "privileges: all of its own"),
]


@pytest.fixture(scope="module")
def breakable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A superuser's connection, made as the service makes its own, to a database with a row of each kind."""
    with running_postgres(tmp_path_factory.mktemp("broken")) as server, pytest.MonkeyPatch.context() as monkeypatch:
        database = bootstrapped(server, monkeypatch)
        with connect(iam_login=False) as service:
            decided(service, "client-a", "in_1")
            record_outcome(record_on(service, "client-a"), new_id(), "in_1", OutcomeReport("paid", "key"))
            record_refusal(record_on(service, "client-a"), "POST /decide", InvalidJson(""))
        monkeypatch.setenv("PGUSER", "postgres")
        monkeypatch.setenv("PGPASSWORD", database.server.password)
        with connect(iam_login=False) as connection:
            yield connection


def failed_proofs(connection: Connection, harm: str) -> set[str]:
    """The proofs that fail once `harm` is done, all in one transaction that is rolled back."""
    with connection.transaction(force_rollback=True):
        connection.execute(harm.encode())
        connection.execute("SET LOCAL SESSION AUTHORIZATION paypilot_service")
        with pytest.raises(ProofFailed) as failed:
            prove(connection)
        return {proof.name for proof in failed.value.proofs if not proof.passed}


def test_nothing_is_named_on_a_database_that_is_whole(breakable: Connection) -> None:
    # Whoever logged in as a superuser may always go back to that, which no session of the service's can.
    assert failed_proofs(breakable, "SELECT 1") == {"SET SESSION AUTHORIZATION"}


@pytest.mark.parametrize(("harm", "named"), BROKEN, ids=[f"{named}: {harm[:60]}" for harm, named in BROKEN])
def test_the_proof_names_what_is_broken(breakable: Connection, harm: str, named: str) -> None:
    assert named in failed_proofs(breakable, harm)


def test_the_proof_names_a_server_that_does_not_write_to_disk(database: TestDatabase) -> None:
    with database.superuser() as connection:

        def fsync(value: str) -> None:
            connection.execute(f"ALTER SYSTEM SET fsync = {value}".encode())
            connection.execute("SELECT pg_reload_conf()")
            until(lambda: connection.execute("SHOW fsync").fetchone() == (value,))

        fsync("off")
        try:
            with pytest.raises(ProofFailed, match=r"an answered commit is on disk: expected .*, got on, fsync off"):
                bootstrap({"action": "prove"}, None)
        finally:
            fsync("on")


@pytest.mark.parametrize("table", [*APPEND_ONLY, "erasures"])
def test_the_owners_proof_names_a_table_whose_trigger_lets_a_change_through(database: TestDatabase, table: str) -> None:
    with database.superuser() as connection:
        assert all(proof.passed for proof in prove_owner(connection))
        connection.execute(f"ALTER TABLE paypilot.{table} DISABLE TRIGGER append_only".encode())
        with pytest.raises(ProofFailed) as failed:
            prove_owner(connection)
    assert {proof.name for proof in failed.value.proofs if not proof.passed} == {
        f"owner: {change} {table}" for change in ("UPDATE", "DELETE", "TRUNCATE")
    }


def test_a_bootstrap_that_does_not_prove_fails(database: TestDatabase) -> None:
    with database.superuser() as connection:
        connection.execute("GRANT DELETE ON paypilot.decision_audit TO paypilot_service")
    with pytest.raises(ProofFailed, match="privileges: none beyond its own"):
        bootstrap({"action": "bootstrap", "master_password": database.server.password}, None)


def test_every_proof_says_what_it_expected_and_none_is_named_twice(database: TestDatabase) -> None:
    with connect(iam_login=False) as connection:
        proofs = prove(connection)
    assert all(proof.passed for proof in proofs)
    names = [proof.name for proof in proofs]
    assert len(names) == len(set(names))
    assert set(REFUSED) < set(names)
    assert names[0].startswith("control before")
    assert names[-1].startswith("control after")


def test_the_proof_leaves_no_row_and_no_session_behind(database: TestDatabase) -> None:
    tables = [f"paypilot.{table}" for table in (*APPEND_ONLY, "invoice_states", "rule_counts", "erasures")]
    password = "SELECT rolpassword FROM pg_authid WHERE rolname = 'paypilot_service'"
    with database.superuser() as connection:
        before = connection.execute(password).fetchone()
        bootstrap({"action": "prove"}, None)
        for table in (*tables, "pg_largeobject_metadata"):
            assert connection.execute(f"SELECT FROM {table}".encode()).rowcount == 0, table
        assert connection.execute(password).fetchone() == before


def test_a_lost_connection_proves_nothing(database: TestDatabase) -> None:
    with connect(iam_login=False) as service, database.superuser() as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (service.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            prove(service)


def test_a_broken_proof_is_counted_and_logged_without_what_it_found(
    database: TestDatabase, capfd: pytest.CaptureFixture[str]
) -> None:
    with database.superuser() as connection:
        connection.execute("GRANT DELETE ON paypilot.decision_audit TO paypilot_service")
    with pytest.raises(ProofFailed):
        bootstrap({"action": "prove"}, None)
    out, _ = capfd.readouterr()
    assert '"ProofFailed":[1.0]' in out
    assert "127.0.0.1" not in out


@pytest.mark.parametrize("role", ["LISTEN paypilot", "NOTIFY paypilot", "SELECT pg_advisory_lock(1)", "DO 'BEGIN END'"])
def test_what_postgres_lets_any_role_do_is_known(database: TestDatabase, role: str) -> None:
    # The docstring of the proof names these: no server has a right to take away for them.
    with connect(iam_login=False) as service:
        service.execute(role.encode())
        with pytest.raises(postgres.InsufficientPrivilege):
            service.execute("DELETE FROM paypilot.decision_audit")
