"""The proof: logged in as the service, what must fail is tried, and must fail with the SQLSTATE that says why.

Every attempt runs in a transaction that is rolled back, so that a proof that fails leaves nothing. What must work is
tried before and after, because a broken connection refuses everything. Row-level security keeps a query that forgets
its client from another's rows; it doesn't keep out whoever holds the service's login, who may set any client.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from paypilot import record
from paypilot.core.decide import FailedPayment, decide
from paypilot.core.rails import Registry
from paypilot.database import Connection
from paypilot.rules import current_ruleset

DENIED = "42501"
PROVER, OTHER_CLIENT = "paypilot-proof", "paypilot-proof-other"


@dataclass(frozen=True, slots=True)
class Proof:
    """What was tried, what it must give, and what it gave: a SQLSTATE, or a word of our own."""

    name: str
    expected: str
    got: str

    @property
    def passed(self) -> bool:
        return self.got == self.expected


class ProofFailed(Exception):
    """The database lets the service do what it must not, or keeps it from its work. Names every proof that failed."""

    def __init__(self, proofs: list[Proof]) -> None:
        self.proofs = proofs
        failed = [f"{p.name}: expected {p.expected}, got {p.got}" for p in proofs if not p.passed]
        super().__init__("proof failed: " + "; ".join(failed))


TABLES = ("decision_audit", "decision_outcomes", "decision_refusals")

# name -> the statement that the service must be refused
REFUSED: dict[str, LiteralString] = {
    "UPDATE decision_audit": "UPDATE paypilot.decision_audit SET action = action",
    "UPDATE decision_outcomes": "UPDATE paypilot.decision_outcomes SET outcome = outcome",
    "UPDATE decision_refusals": "UPDATE paypilot.decision_refusals SET reason = reason",
    "DELETE decision_audit": "DELETE FROM paypilot.decision_audit",
    "DELETE decision_outcomes": "DELETE FROM paypilot.decision_outcomes",
    "DELETE decision_refusals": "DELETE FROM paypilot.decision_refusals",
    "TRUNCATE decision_audit": "TRUNCATE paypilot.decision_audit",
    "TRUNCATE decision_outcomes": "TRUNCATE paypilot.decision_outcomes",
    "TRUNCATE decision_refusals": "TRUNCATE paypilot.decision_refusals",
    "CREATE TABLE in paypilot": "CREATE TABLE paypilot.proof (id integer)",
    "CREATE TABLE in public": "CREATE TABLE public.proof (id integer)",
    "CREATE TEMPORARY TABLE": "CREATE TEMPORARY TABLE proof (id integer)",
    "CREATE temporary FUNCTION": "CREATE FUNCTION pg_temp.proof() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION in public": "CREATE FUNCTION public.proof() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE SCHEMA": "CREATE SCHEMA proof",
    "CREATE ROLE": "CREATE ROLE paypilot_proof",
    "ALTER TABLE": "ALTER TABLE paypilot.decision_audit ADD COLUMN proof integer",
    "ALTER TABLE DISABLE TRIGGER": "ALTER TABLE paypilot.decision_audit DISABLE TRIGGER append_only",
    "ALTER TABLE NO FORCE ROW LEVEL SECURITY": "ALTER TABLE paypilot.decision_audit NO FORCE ROW LEVEL SECURITY",
    "ALTER POLICY": "ALTER POLICY one_client ON paypilot.decision_audit USING (true)",
    "DROP TABLE": "DROP TABLE paypilot.decision_audit",
    "DROP TRIGGER": "DROP TRIGGER append_only ON paypilot.decision_audit",
    "GRANT a table": "GRANT SELECT ON paypilot.erasures TO PUBLIC",
    "GRANT a role": "GRANT paypilot_owner TO paypilot_service",
    "SET ROLE paypilot_owner": "SET LOCAL ROLE paypilot_owner",
    "SET ROLE paypilot_erasure": "SET LOCAL ROLE paypilot_erasure",
    "SET ROLE paypilot_eraser": "SET LOCAL ROLE paypilot_eraser",
    "SET SESSION AUTHORIZATION": "SET LOCAL SESSION AUTHORIZATION paypilot_owner",
    "SET session_replication_role": "SET LOCAL session_replication_role = replica",
    "ALTER SYSTEM's right": "SET LOCAL log_statement = 'none'",
    "erase_client": "SELECT paypilot.erase_client('paypilot-proof-other')",
    "count_everything": "SELECT paypilot.count_everything()",
    "SELECT FOR UPDATE": "SELECT FROM paypilot.decision_audit FOR UPDATE",
    "LOCK TABLE": "LOCK TABLE paypilot.decision_audit IN ACCESS EXCLUSIVE MODE",
    "INSERT a place in the order": (
        "INSERT INTO paypilot.decision_refusals (seq, refusal_id, client_id, route, gate, reason) "
        "OVERRIDING SYSTEM VALUE VALUES (1, gen_random_uuid(), 'paypilot-proof', 'proof', 'proof', 'proof')"
    ),
    "INSERT a time": (
        "INSERT INTO paypilot.decision_refusals (refused_at, refusal_id, client_id, route, gate, reason) "
        "VALUES (now(), gen_random_uuid(), 'paypilot-proof', 'proof', 'proof', 'proof')"
    ),
    "INSERT for another client": (
        "INSERT INTO paypilot.decision_refusals (refusal_id, client_id, route, gate, reason) "
        "VALUES (gen_random_uuid(), 'paypilot-proof-other', 'proof', 'proof', 'proof')"
    ),
    "INSERT ON CONFLICT DO UPDATE": (
        "INSERT INTO paypilot.decision_refusals (refusal_id, client_id, route, gate, reason) "
        "VALUES (gen_random_uuid(), 'paypilot-proof', 'proof', 'proof', 'proof') "
        "ON CONFLICT (refusal_id) DO UPDATE SET reason = 'proof'"
    ),
    "INSERT rule_counts": "INSERT INTO paypilot.rule_counts VALUES ('paypilot-proof', 'proof', 0, 1, 0, 0)",
    "INSERT erasures": "INSERT INTO paypilot.erasures (client_id, decisions, outcomes, refusals) VALUES ('x', 0, 0, 0)",
    "SELECT invoice_states": "SELECT FROM paypilot.invoice_states",
    "nextval of a sequence": "SELECT nextval('paypilot.decision_audit_seq_seq')",
    "COPY TO PROGRAM": "COPY (SELECT 1) TO PROGRAM 'true'",
    "pg_read_file": "SELECT pg_read_file('PG_VERSION')",
}

# What the service holds, and nothing else: (table, privilege, column or *).
GRANTED: frozenset[tuple[str, str, str]] = frozenset(
    {
        *((table, "SELECT", "*") for table in (*TABLES, "rule_counts")),
        *(
            ("decision_audit", "INSERT", column)
            for column in [
                "decision_id",
                "client_id",
                "invoice_id",
                "failure_code",
                "attempt",
                "prior_failures",
                "idempotency_key",
                "rule",
                "matched",
                "action",
                "tone",
                "retry_in_days",
                "churn_risk",
                "escalated",
                "rules_version",
                "rail",
            ]
        ),
        *(
            ("decision_outcomes", "INSERT", column)
            for column in ["outcome_id", "client_id", "invoice_id", "outcome", "report_key"]
        ),
        *(("decision_refusals", "INSERT", column) for column in ["refusal_id", "client_id", "route", "gate", "reason"]),
    }
)


def prove(connection: Connection) -> list[Proof]:
    """Every proof, on the service's own connection. Raises `ProofFailed` naming those that failed."""
    connection.execute("SELECT set_config('paypilot.client_id', '', false)")
    proofs = [
        _control(connection, "before"),
        *(_refused(connection, name, statement) for name, statement in REFUSED.items()),
        _other_clients_rows(connection),
        _rows_without_a_client(connection),
        _insert_without_a_client(connection),
        _granting_what_it_holds(connection),
        *_catalog(connection),
        _password(connection),
        *_large_objects(connection),
        _control(connection, "after"),
    ]
    if not all(proof.passed for proof in proofs):
        raise ProofFailed(proofs)
    return proofs


def prove_owner(connection: psycopg.Connection[Any]) -> list[Proof]:
    """That the triggers refuse the owner too, on the master user's connection. Raises `ProofFailed`."""
    proofs = []
    for table in (*TABLES, "erasures"):
        name = sql.Identifier("paypilot", table)
        for change, statement in {
            "UPDATE": sql.SQL("UPDATE {} SET client_id = client_id").format(name),
            "DELETE": sql.SQL("DELETE FROM {}").format(name),
            "TRUNCATE": sql.SQL("TRUNCATE {}").format(name),
        }.items():
            with _rolled_back(connection):
                connection.execute("SET LOCAL ROLE paypilot_owner")
                got = _sqlstate(connection, statement)
            proofs.append(Proof(f"owner: {change} {table}", DENIED, got))
    if not all(proof.passed for proof in proofs):
        raise ProofFailed(proofs)
    return proofs


def as_data(proofs: list[Proof]) -> list[dict[str, Any]]:
    """The proofs as JSON can carry them."""
    return [{**asdict(proof), "passed": proof.passed} for proof in proofs]


@contextmanager
def _rolled_back(connection: psycopg.Connection[Any]) -> Iterator[None]:
    with connection.transaction(force_rollback=True):
        yield


def _set_client(connection: Connection, client_id: str) -> None:
    connection.execute(record.SET_CLIENT, (client_id,))


def _sqlstate(connection: psycopg.Connection[Any], statement: LiteralString | sql.Composed) -> str:
    try:
        with connection.transaction():
            connection.execute(statement)
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise
        return error.sqlstate
    return "allowed"


def _refused(connection: Connection, name: str, statement: LiteralString) -> Proof:
    with _rolled_back(connection):
        _set_client(connection, PROVER)
        return Proof(name, DENIED, _sqlstate(connection, statement))


def _insert(connection: Connection, client_id: str) -> None:
    payment = FailedPayment("proof", "card_expired")
    decision = decide(payment, current_ruleset(), Registry([]))
    record.record_decision(connection, client_id, record.new_id(), payment, decision, None)


def _visible(connection: Connection) -> int:
    return len(connection.execute("SELECT FROM paypilot.decision_audit WHERE invoice_id = 'proof'").fetchall())


def _control(connection: Connection, when: str) -> Proof:
    with _rolled_back(connection):
        _insert(connection, PROVER)
        seen = _visible(connection)
    return Proof(f"control {when}: its own row is written and read", "1 row", f"{seen} row")


def _other_clients_rows(connection: Connection) -> Proof:
    with _rolled_back(connection):
        _insert(connection, OTHER_CLIENT)
        _set_client(connection, PROVER)
        seen = _visible(connection)
    return Proof("SELECT another client's rows", "0 rows", f"{seen} rows")


def _rows_without_a_client(connection: Connection) -> Proof:
    with _rolled_back(connection):
        _insert(connection, OTHER_CLIENT)
        _set_client(connection, "")
        seen = len(connection.execute("SELECT FROM paypilot.decision_audit LIMIT 1").fetchall())
    return Proof("SELECT with no client set", "0 rows", f"{seen} rows")


def _insert_without_a_client(connection: Connection) -> Proof:
    statement: LiteralString = (
        "INSERT INTO paypilot.decision_refusals (refusal_id, client_id, route, gate, reason) "
        "VALUES (gen_random_uuid(), 'paypilot-proof', 'proof', 'proof', 'proof')"
    )
    with _rolled_back(connection):
        return Proof("INSERT with no client set", DENIED, _sqlstate(connection, statement))


def _granting_what_it_holds(connection: Connection) -> Proof:
    # Postgres answers a GRANT by a role that holds the right, but not the right to pass it on, with a warning only.
    acl: LiteralString = "SELECT relacl::text FROM pg_class WHERE oid = 'paypilot.decision_audit'::regclass"
    with _rolled_back(connection):
        before = connection.execute(acl).fetchone()
        got = _sqlstate(connection, "GRANT SELECT ON paypilot.decision_audit TO PUBLIC")
        unchanged = got == DENIED or connection.execute(acl).fetchone() == before
    return Proof("GRANT what it holds", "nothing granted", "nothing granted" if unchanged else "granted")


HELD: LiteralString = """
SELECT c.relname, acl.privilege_type, '*' AS held_column
FROM pg_class c, aclexplode(c.relacl) acl
WHERE c.relnamespace = 'paypilot'::regnamespace AND acl.grantee IN (0, 'paypilot_service'::regrole)
UNION
SELECT c.relname, acl.privilege_type, a.attname
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid, aclexplode(a.attacl) acl
WHERE c.relnamespace = 'paypilot'::regnamespace AND acl.grantee IN (0, 'paypilot_service'::regrole)
UNION
SELECT p.proname, 'EXECUTE', '*'
FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) acl
WHERE p.pronamespace = 'paypilot'::regnamespace AND acl.grantee IN (0, 'paypilot_service'::regrole)
"""

ATTRIBUTES: LiteralString = """
SELECT array_to_string(array_remove(ARRAY[
    CASE WHEN rolsuper THEN 'superuser' END, CASE WHEN rolcreaterole THEN 'createrole' END,
    CASE WHEN rolcreatedb THEN 'createdb' END, CASE WHEN rolreplication THEN 'replication' END,
    CASE WHEN rolbypassrls THEN 'bypassrls' END], NULL), ', ')
FROM pg_roles WHERE rolname = current_user
"""

MEMBERSHIPS: LiteralString = """
SELECT coalesce(string_agg(m.roleid::regrole::text, ', ' ORDER BY 1), '')
FROM pg_auth_members m WHERE m.member = 'paypilot_service'::regrole AND m.roleid::regrole::text <> 'rds_iam'
"""

GUARDS: LiteralString = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'paypilot'::regnamespace
  AND c.relname IN ('decision_audit', 'decision_outcomes', 'decision_refusals')
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND c.relowner = 'paypilot_owner'::regrole
           AND (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid) = 1
           AND EXISTS (SELECT FROM pg_trigger t
                       WHERE t.tgrelid = c.oid AND t.tgname = 'append_only' AND t.tgenabled = 'A'))
"""

SETTINGS: LiteralString = """
SELECT coalesce(string_agg(entry, ', ' ORDER BY entry), '')
FROM pg_db_role_setting s, unnest(s.setconfig) entry
WHERE s.setrole = 'paypilot_service'::regrole
"""

OWNED: LiteralString = """
SELECT count(*)::text FROM pg_shdepend
WHERE refclassid = 'pg_authid'::regclass AND refobjid = 'paypilot_service'::regrole AND deptype = 'o'
"""

DURABLE: LiteralString = "SELECT current_setting('synchronous_commit') || ', fsync ' || current_setting('fsync')"


def _catalog(connection: Connection) -> Iterator[Proof]:
    held = set(connection.execute(HELD).fetchall())
    yield Proof("privileges: none beyond its own", "none", _names(held - GRANTED))
    yield Proof("privileges: all of its own", "none missing", _names(GRANTED - held, "none missing"))
    yield Proof("attributes of the role", "none", _text(connection, ATTRIBUTES) or "none")
    yield Proof("memberships of the role", "none", _text(connection, MEMBERSHIPS) or "none")
    yield Proof("objects that the role owns", "0", _text(connection, OWNED))
    guards = connection.execute(GUARDS).fetchall()
    yield Proof("owner, triggers and row-level security stand", "on every table", _names(guards, "on every table"))
    # A role may always change its own defaults. They don't bind: the service sets what it relies on at each connection.
    yield Proof(
        "settings of the role are bootstrap's",
        "idle_in_transaction_session_timeout=5s, statement_timeout=5s",
        _text(connection, SETTINGS),
    )
    yield Proof("an answered commit is on disk", "on, fsync on", _text(connection, DURABLE))


def _password(connection: Connection) -> Proof:
    # Every Postgres role may change its own password; RDS can be told to refuse it (rds.restrict_password_commands).
    with _rolled_back(connection):
        got = _sqlstate(connection, "ALTER ROLE paypilot_service PASSWORD 'proof-rolled-back'")
        on_rds = connection.execute("SELECT current_setting('rds.restrict_password_commands', true)").fetchone()
    restricted = on_rds is not None and on_rds[0] in {"on", "1"}
    return Proof("ALTER ROLE its own password", DENIED if restricted else "allowed", got)


def _large_objects(connection: Connection) -> Iterator[Proof]:
    # Only a superuser can take lo_create from PUBLIC, and RDS has none: there the proof says so and looks for any.
    with _rolled_back(connection):
        got = _sqlstate(connection, "SELECT lo_create(0)")
    on_rds = _text(connection, "SELECT count(*)::text FROM pg_roles WHERE rolname = 'rdsadmin'") != "0"
    yield Proof("lo_create", "allowed" if on_rds else DENIED, got)
    yield Proof("large objects", "0", _text(connection, "SELECT count(*)::text FROM pg_largeobject_metadata"))


def _text(connection: Connection, statement: LiteralString) -> str:
    row = connection.execute(statement).fetchone()
    return str(row[0]) if row else ""


def _names(rows: Any, empty: str = "none") -> str:
    return ", ".join(sorted(" ".join(row) for row in rows)) or empty
