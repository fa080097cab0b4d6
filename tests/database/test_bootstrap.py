"""The bootstrap, on a server that has never seen the slice and on one that has."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from paypilot.core.decide import Decision, FailedPayment, decide
from paypilot.decisions import read_history, record_decision
from paypilot.http.page import Page
from paypilot.outcomes import OutcomeReport, read_summary, record_outcome
from paypilot.record.database import connect
from paypilot.record.rows import new_id
from paypilot.tables import published_tables
from paypilot_bootstrap import migrate as migrations
from paypilot_bootstrap.function import handler as bootstrap
from paypilot_bootstrap.migrate import MigrationError, migrate
from paypilot_bootstrap.proof.attempt import ProofFailed
from scripts.local.postgres import LocalPostgres
from support.slice import TestDatabase, blank_database, decided, record_on, running_postgres, service_environment

LATEST = max(migration.version for migration in migrations.migrations())

# What the bootstrap sets up, as the catalogs have it: objects by name, with owner, rights and definition.
CATALOG = """
SELECT 'role', rolname, row(rolsuper, rolcreaterole, rolcreatedb, rolcanlogin, rolbypassrls, rolconfig)::text
FROM pg_roles WHERE rolname LIKE 'paypilot%'
UNION ALL
SELECT 'member', row(roleid::regrole, member::regrole, grantor::regrole)::text,
       row(admin_option, inherit_option, set_option)::text
FROM pg_auth_members WHERE roleid::regrole::text LIKE 'paypilot%' OR member::regrole::text LIKE 'paypilot%'
UNION ALL
SELECT 'database', datname, row(datacl)::text FROM pg_database
UNION ALL
SELECT 'schema', nspname, row(nspowner::regrole, nspacl)::text FROM pg_namespace
UNION ALL
SELECT 'relation', oid::regclass::text,
       row(relkind, relowner::regrole, relacl, relrowsecurity, relforcerowsecurity, reloptions)::text
FROM pg_class WHERE relnamespace IN ('paypilot'::regnamespace, 'public'::regnamespace)
UNION ALL
SELECT 'column', row(attrelid::regclass, attname)::text, row(atttypid::regtype, attnotnull, attidentity, attacl)::text
FROM pg_attribute WHERE attrelid::regclass::text LIKE 'paypilot.%'
UNION ALL
SELECT 'function', oid::regprocedure::text,
       row(proowner::regrole, proacl, CASE WHEN prokind <> 'a' THEN pg_get_functiondef(oid) END)::text
FROM pg_proc WHERE pronamespace = 'paypilot'::regnamespace OR proname ~ '^lo_'
UNION ALL
SELECT 'trigger', tgname || ' ' || tgrelid::regclass, row(tgenabled, pg_get_triggerdef(oid))::text FROM pg_trigger
UNION ALL
SELECT 'policy', polname || ' ' || polrelid::regclass, pg_get_expr(polqual, polrelid) FROM pg_policy
UNION ALL
SELECT 'default right', oid::text, row(defaclacl)::text FROM pg_default_acl
UNION ALL
SELECT 'migration', version::text, row(name, digest, applied_at)::text FROM public.paypilot_migrations
ORDER BY 1, 2
"""


@pytest.fixture
def blank(postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch) -> TestDatabase:
    """An empty database, and the environment by which the service will find it."""
    blank_database(postgres)
    service = service_environment(postgres, "paypilot")
    for name, value in service.items():
        monkeypatch.setenv(name, value)
    return TestDatabase(postgres, "paypilot", service)


def run_bootstrap(server: LocalPostgres) -> dict[str, object]:
    return bootstrap({"action": "bootstrap", "master_password": server.password}, None)


def test_a_second_bootstrap_changes_nothing(database: TestDatabase) -> None:
    with database.superuser() as connection:
        before = connection.execute(CATALOG).fetchall()
        answer = run_bootstrap(database.server)
        assert connection.execute(CATALOG).fetchall() == before
    assert answer["schema_version"] == LATEST
    assert len(before) > 100


def test_a_server_that_logs_every_statement_never_logs_the_services_password(blank: TestDatabase) -> None:
    with blank.superuser() as connection:
        connection.execute("ALTER DATABASE paypilot SET log_statement = 'all'")
    run_bootstrap(blank.server)
    log = (blank.server.folder / "postgres.log").read_text()
    assert "ALTER ROLE paypilot_service PASSWORD 'SCRAM-SHA-256$" in log
    assert blank.service["PGPASSWORD"] not in log


def test_bootstraps_at_the_same_time_all_succeed_and_apply_each_file_once(blank: TestDatabase) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(run_bootstrap, [blank.server] * 4))
    assert [answer["schema_version"] for answer in answers] == [LATEST] * 4
    with blank.superuser() as connection:
        rows = connection.execute("SELECT version FROM public.paypilot_migrations ORDER BY version").fetchall()
    assert rows == [(version,) for version in range(1, LATEST + 1)]


def test_a_file_edited_after_it_was_applied_is_refused_and_nothing_is_changed(database: TestDatabase) -> None:
    with database.superuser() as connection:
        connection.execute("UPDATE public.paypilot_migrations SET digest = 'another' WHERE version = 2")
        before = connection.execute(CATALOG).fetchall()
        with pytest.raises(MigrationError, match=r"002_record\.sql was edited after it was applied"):
            run_bootstrap(database.server)
        assert connection.execute(CATALOG).fetchall() == before


def test_a_database_ahead_of_the_build_is_refused(database: TestDatabase) -> None:
    with database.superuser() as connection:
        connection.execute("INSERT INTO public.paypilot_migrations VALUES (999, 'later', 'digest')")
        with pytest.raises(MigrationError, match="version 999, which this build doesn't know"):
            run_bootstrap(database.server)


def test_another_applications_database_is_refused_and_left_as_it_was(blank: TestDatabase) -> None:
    rights = (
        "SELECT (SELECT datacl::text FROM pg_database WHERE datname = 'paypilot'), "
        "to_regclass('public.paypilot_migrations')::text, (SELECT count(*) FROM pg_roles WHERE rolname ~ '^paypilot')"
    )
    with blank.superuser() as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.orders (id integer)")
        before = connection.execute(rights).fetchone()
        with pytest.raises(MigrationError, match=r"database paypilot is another application's: .* shop\.orders\."):
            run_bootstrap(blank.server)
        assert connection.execute(rights).fetchone() == before == (None, None, 0)
        # Tables that come after PayPilot's own keep it from nothing.
        connection.execute("DROP TABLE shop.orders")
        run_bootstrap(blank.server)
        connection.execute("CREATE TABLE shop.orders (id integer)")
        run_bootstrap(blank.server)


def test_a_file_that_fails_leaves_the_schema_as_it_was(
    blank: TestDatabase, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in migrations.SQL_FOLDER.glob("*.sql"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "999_broken.sql").write_text("SELECT 1 / 0;")
    monkeypatch.setattr(migrations, "SQL_FOLDER", tmp_path)
    with blank.superuser() as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(connection, None)
        assert connection.execute("SELECT FROM pg_namespace WHERE nspname = 'paypilot'").fetchall() == []
        assert connection.execute("SELECT FROM pg_roles WHERE rolname LIKE 'paypilot%'").fetchall() == []


def test_an_upgrade_with_rows_in_place_loses_none_and_counts_them(blank: TestDatabase) -> None:
    with blank.superuser() as connection:
        migrate(connection, blank.service["PGPASSWORD"], up_to=3)
    # A warm connection of the function lives through the upgrade.
    with connect(iam_login=False) as service:
        for number in range(60):
            service.execute(
                "INSERT INTO paypilot.decision_audit (client_id, decision_id, invoice_id, failure_code, attempt, "
                "prior_failures, rule, matched, action, tone, retry_in_days, churn_risk, escalated, rules_version) "
                "VALUES (set_config('paypilot.client_id', %s, true), gen_random_uuid(), %s, 'c', 1, 0, %s, true, "
                "'a', 't', 1, 'low', false, 'sha256:' || repeat('0', 64))",
                (f"client-{number % 2}", f"in_{number % 20}", f"rule-{number % 3}"),
            )
        for number in range(0, 20, 2):
            outcome = "paid" if number % 4 else "not_paid"
            reported = record_outcome(
                record_on(service, "client-0"), new_id(), f"in_{number}", OutcomeReport(outcome, f"key-{number}")
            )
            assert reported is not None
        with blank.superuser() as connection:
            rows = "SELECT * FROM paypilot.decision_audit ORDER BY seq"
            before = connection.execute(rows).fetchall()
            assert run_bootstrap(blank.server)["schema_version"] == LATEST
            kept = connection.execute(rows).fetchall()
        assert [row[: len(old)] for row, old in zip(kept, before, strict=True)] == before
        assert len(before) == 60
        summary = read_summary(record_on(service, "client-0"))
        assert sum(row[1] for row in summary) == 10
        assert (sum(row[2] for row in summary), sum(row[3] for row in summary)) == (5, 5)
        # The newest decision of invoice in_<n> is number 40 + n.
        assert {row[0]: row[1] for row in summary} == {
            f"rule-{rule}": sum((40 + n) % 3 == rule for n in range(0, 20, 2)) for rule in range(3)
        }


def test_decisions_recorded_before_an_upgrade_are_replayed_with_the_same_bodies(blank: TestDatabase) -> None:
    payments = [FailedPayment("in_1", code) for code in ("card_expired", "ach:R01", "unheard_of")]
    with blank.superuser() as connection:
        migrate(connection, blank.service["PGPASSWORD"], up_to=5)

    def bodies() -> list[bytes]:
        recorded = []
        with connect(iam_login=False) as service:
            record = record_on(service, "client-a")
            for payment in payments:
                decision = decide(payment, published_tables())
                assert isinstance(decision, Decision)
                stored = record_decision(record, new_id(), payment, decision, f"key of {payment.failure_code}")
                recorded.append(stored.body())
            _, history = read_history(record, "in_1", Page(10, None, None, b""))
        assert [stored.body() for stored in reversed(history)] == recorded
        return recorded

    before = bodies()
    assert run_bootstrap(blank.server)["schema_version"] == LATEST
    assert bodies() == before


def test_erasures_before_an_upgrade_become_a_row_for_each_table_and_stay_append_only(blank: TestDatabase) -> None:
    erasures = "SELECT * FROM paypilot.erasures ORDER BY erasure_id, table_name"
    erase = "SELECT FROM paypilot.erase_client('client-a')"
    with blank.superuser() as connection:
        migrate(connection, blank.service["PGPASSWORD"], up_to=6)
        with connect(iam_login=False) as service:
            for number in range(2):
                decided(service, "client-a", f"in_{number}")
            record_outcome(record_on(service, "client-a"), new_id(), "in_0", OutcomeReport("paid", "key"))
        connection.execute(erase)
        connection.execute(erase)
        old = connection.execute("SELECT erasure_id, erased_by, erased_at FROM paypilot.erasures ORDER BY 1").fetchall()
        assert run_bootstrap(blank.server)["schema_version"] == LATEST
        migrated = connection.execute(erasures).fetchall()
        assert migrated == [
            (number, "client-a", table, rows, erased_by, erased_at)
            for (number, erased_by, erased_at), counts in zip(old, ((2, 1, 0), (0, 0, 0)), strict=True)
            for table, rows in zip(("decision_audit", "decision_outcomes", "decision_refusals"), counts, strict=True)
        ]
        connection.execute(erase)
        assert {row[0] for row in connection.execute(erasures).fetchall()} == {1, 2, 3}
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
            connection.execute("DELETE FROM paypilot.erasures")


def test_prove_alone_needs_no_master_password(database: TestDatabase) -> None:
    answer = bootstrap({"action": "prove"}, None)
    assert answer["proved"] is True
    assert answer["schema_version"] is None


def test_another_action_is_refused(database: TestDatabase) -> None:
    with pytest.raises(ValueError, match="action is bootstrap or prove"):
        bootstrap({"action": "drop"}, None)


# What RDS gives: its own superuser, and a master user who is none and belongs to rds_superuser.
RDS_ROLES = """
CREATE ROLE rdsadmin LOGIN SUPERUSER;
CREATE ROLE rds_iam;
CREATE ROLE rds_password;
CREATE ROLE rds_replication;
CREATE ROLE rds_superuser;
GRANT rds_iam, rds_password, rds_replication, pg_monitor, pg_signal_backend, pg_checkpoint TO rds_superuser
    WITH ADMIN OPTION;
CREATE ROLE master LOGIN CREATEROLE CREATEDB PASSWORD 'password-of-the-master';
GRANT rds_superuser TO master;
ALTER DATABASE postgres OWNER TO master;
ALTER DATABASE template1 OWNER TO master;
CREATE DATABASE rdsadmin OWNER rdsadmin;
REVOKE ALL ON DATABASE rdsadmin FROM PUBLIC;
CREATE DATABASE paypilot OWNER master
"""


@pytest.fixture(scope="module")
def rds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """A server with the roles of RDS; nobody but the test is a superuser."""
    with running_postgres(tmp_path_factory.mktemp("rds")) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for statement in RDS_ROLES.split(";"):
                connection.execute(statement.encode())
        yield server


@pytest.fixture
def on_rds(rds: LocalPostgres, monkeypatch: pytest.MonkeyPatch) -> LocalPostgres:
    for name, value in service_environment(rds, "paypilot").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PAYPILOT_MASTER_USER", "master")
    return rds


def test_a_master_user_that_is_no_superuser_bootstraps_twice_and_proves(
    on_rds: LocalPostgres,
) -> None:
    for _ in range(2):
        answer = bootstrap({"action": "bootstrap", "master_password": "password-of-the-master"}, None)
    proofs = {proof["name"]: proof["got"] for proof in answer["proofs"]}
    assert proofs["lo_create"] == "allowed"
    assert answer["schema_version"] == LATEST
    with psycopg.connect(on_rds.conninfo("paypilot")) as connection:
        member = connection.execute("SELECT pg_has_role('paypilot_service', 'rds_iam', 'MEMBER')").fetchone()
        left = connection.execute("SELECT pg_has_role('master', 'paypilot_erasure', 'SET')").fetchone()
    assert (member, left) == ((True,), (False,))


def test_on_rds_the_service_reaches_no_other_database(on_rds: LocalPostgres) -> None:
    bootstrap({"action": "bootstrap", "master_password": "password-of-the-master"}, None)
    for name in ("postgres", "template1", "rdsadmin"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(dbname=name)


def test_on_rds_a_large_object_left_behind_fails_the_proof(on_rds: LocalPostgres) -> None:
    bootstrap({"action": "bootstrap", "master_password": "password-of-the-master"}, None)
    with connect(iam_login=False) as connection:
        row = connection.execute("SELECT lo_create(0)").fetchone()
        assert row is not None
        try:
            with pytest.raises(ProofFailed, match="large objects: expected 0, got 1"):
                bootstrap({"action": "prove"}, None)
        finally:
            connection.execute("SELECT lo_unlink(%s)", row)
    assert os.environ["PGUSER"] == "paypilot_service"
