"""The proof: logged in as the service, what must fail is tried, and must fail with the SQLSTATE that says why.

Every attempt runs in a transaction that is rolled back, so that a proof that fails leaves nothing. What must work is
tried before and after, because a broken connection refuses everything. Row-level security keeps a query that forgets
its client from another's rows; it doesn't keep out whoever holds the service's login, who may set any client.

Postgres has no right to take away, on any server, for: DO blocks, pg_sleep, advisory locks and LOCK TABLE in ACCESS
SHARE MODE (they can make others wait, and change nothing), LISTEN and NOTIFY, the role's own defaults (each transaction
sets what an answer relies on), ending sessions of its own role, and reading the catalogs with their numbers of
rows. Others' queries and the statistics of rows that it may not see stay hidden, which a proof looks at.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from paypilot import decisions, outcomes, refusals
from paypilot.core.decide import FailedPayment, apply_rule
from paypilot.http.page import Page
from paypilot.http.problems import InvalidJson
from paypilot.record.database import Connection
from paypilot.record.rows import SET_CLIENT, Record, new_id
from paypilot.tables import published_tables
from paypilot_bootstrap.append_only import APPEND_ONLY

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
    "COMMENT": "COMMENT ON TABLE paypilot.decision_audit IS 'proof'",
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
    "LOCK TABLE IN ROW SHARE MODE": "LOCK TABLE paypilot.decision_audit IN ROW SHARE MODE",
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
        *((table, "SELECT", "*") for table in (*APPEND_ONLY, "rule_counts")),
        *((table, "INSERT", column) for table, columns in APPEND_ONLY.items() for column in columns),
        ("schema paypilot", "USAGE", "*"),
        ("its database", "CONNECT", "*"),
    }
)

# How rows are guarded: by what the triggers and policies are, not only by their names. No more of them, and no fewer.
GUARDED: frozenset[tuple[str, str]] = frozenset(
    {
        *((table, "owned by paypilot_owner, row security forced") for table in APPEND_ONLY),
        ("erasures", "owned by paypilot_owner"),
        *((table, "owned by paypilot_owner, row security") for table in ("rule_counts", "invoice_states")),
        *(
            (table, "one_client permissive * {0} (client_id = current_setting('paypilot.client_id'::text, true)) -")
            for table in (*APPEND_ONLY, "rule_counts", "invoice_states")
        ),
        *(
            (
                table,
                f"A CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON paypilot.{table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION paypilot.refuse_change()",
            )
            for table in (*APPEND_ONLY, "erasures")
        ),
        *(
            (
                table,
                f"A CREATE TRIGGER {function} AFTER INSERT ON paypilot.{table} "
                f"FOR EACH ROW EXECUTE FUNCTION paypilot.{function}()",
            )
            for table, function in (("decision_audit", "count_decision"), ("decision_outcomes", "count_outcome"))
        ),
    }
)


def prove(connection: Connection) -> list[Proof]:
    """Every proof, on the service's own connection. Raises `ProofFailed` naming those that failed."""
    connection.execute("SELECT set_config('paypilot.client_id', '', false)")
    proofs = [
        _control(connection, "before"),
        *(_refused(connection, name, statement) for name, statement in REFUSED.items()),
        *_other_clients_rows(connection),
        _insert_without_a_client(connection),
        _granting_what_it_holds(connection),
        *_catalog(connection),
        _password(connection),
        *_what_rds_differs_in(connection),
        _control(connection, "after"),
    ]
    if not all(proof.passed for proof in proofs):
        raise ProofFailed(proofs)
    return proofs


def prove_owner(connection: psycopg.Connection[Any]) -> list[Proof]:
    """That the triggers refuse the owner too, on the master user's connection. Raises `ProofFailed`."""
    proofs = []
    for table in (*APPEND_ONLY, "erasures"):
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
    connection.execute(SET_CLIENT, {"client": client_id})


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


def _tried(connection: Connection, steps: Callable[[], str]) -> str:
    """What `steps` gives, or the SQLSTATE that it ends with; rolled back."""
    try:
        with _rolled_back(connection):
            return steps()
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise
        return error.sqlstate


def _write_a_row_of_each(connection: Connection, client_id: str) -> None:
    record = Record(lambda work: work(connection), client_id)
    payment = FailedPayment("proof", "card_expired")
    decision = apply_rule(published_tables().card.rule(payment.failure_code, payment.attempt), payment)
    decisions.record_decision(record, new_id(), payment, decision, None)
    outcomes.record_outcome(record, new_id(), "proof", outcomes.OutcomeReport("paid", "proof"))
    refusals.record_refusal(record, "proof", InvalidJson("proof"))


def _control(connection: Connection, when: str) -> Proof:
    def write_and_read() -> str:
        _write_a_row_of_each(connection, PROVER)
        record = Record(lambda work: work(connection), PROVER)
        page = Page(limit=1, after=None, kind="refusal", mark=b"")
        _, decided = decisions.read_history(record, "proof", page)
        refused = refusals.read_refusals(record, page)
        paid = sum(row[2] for row in outcomes.read_summary(record))
        return f"{len(decided)} decision, {len(refused)} refusal, {paid} paid"

    name = f"control {when}: its own rows are written and read"
    return Proof(name, "1 decision, 1 refusal, 1 paid", _tried(connection, write_and_read))


VISIBLE: LiteralString = """
SELECT (SELECT count(*) FROM paypilot.decision_audit WHERE client_id <> %(client)s)
     + (SELECT count(*) FROM paypilot.decision_outcomes WHERE client_id <> %(client)s)
     + (SELECT count(*) FROM paypilot.decision_refusals WHERE client_id <> %(client)s)
     + (SELECT count(*) FROM paypilot.rule_counts WHERE client_id <> %(client)s)
"""


def _other_clients_rows(connection: Connection) -> Iterator[Proof]:
    for name, client_id in (("SELECT another client's rows", PROVER), ("SELECT with no client set", "")):

        def look(client_id: str = client_id) -> str:
            _write_a_row_of_each(connection, OTHER_CLIENT)
            _set_client(connection, client_id)
            row = connection.execute(VISIBLE, {"client": client_id}).fetchone()
            return f"{row[0] if row else 0} rows"

        yield Proof(name, "0 rows", _tried(connection, look))


def _insert_without_a_client(connection: Connection) -> Proof:
    statement: LiteralString = (
        "INSERT INTO paypilot.decision_refusals (refusal_id, client_id, route, gate, reason) "
        "VALUES (gen_random_uuid(), 'paypilot-proof', 'proof', 'proof', 'proof')"
    )
    with _rolled_back(connection):
        return Proof("INSERT with no client set", DENIED, _sqlstate(connection, statement))


def _granting_what_it_holds(connection: Connection) -> Proof:
    # Postgres answers a GRANT by a role that holds the right, but not the right to pass it on, with a warning only.
    acl: LiteralString = "SELECT relacl::text FROM pg_class WHERE relname = 'decision_audit'"

    def grant() -> str:
        before = connection.execute(acl).fetchall()
        got = _sqlstate(connection, "GRANT SELECT ON paypilot.decision_audit TO PUBLIC")
        return "nothing granted" if got == DENIED or connection.execute(acl).fetchall() == before else "granted"

    return Proof("GRANT what it holds", "nothing granted", _tried(connection, grant))


# Beyond the slice's own schema, what changes something or acts for another: an extension's objects are its own matter.
HELD: LiteralString = """
WITH relation AS (
    SELECT c.oid, c.relacl, n.nspname = 'paypilot' AS own,
           CASE WHEN n.nspname = 'paypilot' THEN c.relname::text ELSE c.oid::regclass::text END AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
      AND NOT EXISTS (SELECT FROM pg_depend d
                      WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
)
SELECT r.name, acl.privilege_type, '*' AS held_column
FROM relation r, aclexplode(r.relacl) acl
WHERE acl.grantee IN (0, 'paypilot_service'::regrole) AND (r.own OR acl.privilege_type <> 'SELECT')
UNION
SELECT r.name, acl.privilege_type, a.attname
FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid, aclexplode(a.attacl) acl
WHERE acl.grantee IN (0, 'paypilot_service'::regrole) AND (r.own OR acl.privilege_type <> 'SELECT')
UNION
SELECT p.oid::regprocedure::text, 'EXECUTE', '*'
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace,
     aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) acl
WHERE acl.grantee IN (0, 'paypilot_service'::regrole)
  AND (n.nspname = 'paypilot' OR (p.prosecdef AND n.nspname NOT IN ('pg_catalog', 'information_schema')))
  AND NOT EXISTS (SELECT FROM pg_depend d
                  WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
UNION
SELECT 'schema ' || n.nspname, acl.privilege_type, '*'
FROM pg_namespace n, aclexplode(n.nspacl) acl
WHERE acl.grantee IN (0, 'paypilot_service'::regrole) AND (n.nspname = 'paypilot' OR acl.privilege_type = 'CREATE')
UNION
SELECT 'its database', acl.privilege_type, '*'
FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) acl
WHERE d.datname = current_database() AND acl.grantee IN (0, 'paypilot_service'::regrole)
UNION
SELECT 'parameter ' || p.parname, acl.privilege_type, '*'
FROM pg_parameter_acl p, aclexplode(p.paracl) acl
WHERE acl.grantee IN (0, 'paypilot_service'::regrole)
UNION
SELECT 'default of ' || d.defaclrole::regrole, acl.privilege_type, '*'
FROM pg_default_acl d, aclexplode(d.defaclacl) acl
WHERE acl.grantee IN (0, 'paypilot_service'::regrole)
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
SELECT c.relname::text,
       concat('owned by ', c.relowner::regrole, CASE WHEN c.relrowsecurity THEN ', row security' END,
              CASE WHEN c.relforcerowsecurity THEN ' forced' END)
FROM pg_class c WHERE c.relnamespace = 'paypilot'::regnamespace AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
UNION
SELECT c.relname::text, concat_ws(' ', p.polname, CASE WHEN p.polpermissive THEN 'permissive' ELSE 'restrictive' END,
       p.polcmd, p.polroles, pg_get_expr(p.polqual, p.polrelid), coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '-'))
FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relnamespace = 'paypilot'::regnamespace
UNION
SELECT c.relname::text, concat_ws(' ', t.tgenabled, pg_get_triggerdef(t.oid))
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = 'paypilot'::regnamespace AND NOT t.tgisinternal
UNION
SELECT c.relname::text, pg_get_ruledef(r.oid)
FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class WHERE c.relnamespace = 'paypilot'::regnamespace
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

STATISTICS: LiteralString = "SELECT count(*)::text FROM pg_stats WHERE schemaname = 'paypilot'"

DURABLE: LiteralString = "SELECT current_setting('synchronous_commit') || ', fsync ' || current_setting('fsync')"


def _catalog(connection: Connection) -> Iterator[Proof]:
    held = set(connection.execute(HELD).fetchall())
    yield Proof("privileges: none beyond its own", "none", _names(held - GRANTED))
    yield Proof("privileges: all of its own", "none missing", _names(GRANTED - held, "none missing"))
    yield Proof("attributes of the role", "none", _text(connection, ATTRIBUTES) or "none")
    yield Proof("memberships of the role", "none", _text(connection, MEMBERSHIPS) or "none")
    yield Proof("objects that the role owns", "0", _text(connection, OWNED))
    guards = set(connection.execute(GUARDS).fetchall())
    yield Proof(
        "owner, triggers and row-level security: all stand", "none missing", _names(GUARDED - guards, "none missing")
    )
    yield Proof("owner, triggers and row-level security: no others", "none", _names(guards - GUARDED))
    # A role may always change its own defaults. What an answer relies on, each transaction of the record sets anew.
    yield Proof(
        "settings of the role are bootstrap's",
        "TimeZone=UTC, default_transaction_isolation=read committed, idle_in_transaction_session_timeout=5s, "
        'search_path="", statement_timeout=5s, synchronous_commit=on',
        _text(connection, SETTINGS),
    )
    yield Proof("an answered commit is on disk", "on, fsync on", _text(connection, DURABLE))
    yield Proof("statistics of rows that it may not see", "0", _text(connection, STATISTICS))


def _password(connection: Connection) -> Proof:
    # Every Postgres role may change its own password; RDS can be told to refuse it (rds.restrict_password_commands).
    with _rolled_back(connection):
        got = _sqlstate(connection, "ALTER ROLE paypilot_service PASSWORD 'proof-rolled-back'")
        on_rds = connection.execute("SELECT current_setting('rds.restrict_password_commands', true)").fetchone()
    restricted = on_rds is not None and on_rds[0] in {"on", "1"}
    return Proof("ALTER ROLE its own password", DENIED if restricted else "allowed", got)


# The two that a server has from the start, and that its master user owns.
OTHER_DATABASES: LiteralString = """
SELECT coalesce(string_agg(datname, ', ' ORDER BY datname), 'none') FROM pg_database
WHERE datname IN ('postgres', 'template1') AND datname <> current_database() AND datdba::regrole::text <> 'rdsadmin'
  AND has_database_privilege(oid, 'CONNECT')
"""


def _what_rds_differs_in(connection: Connection) -> Iterator[Proof]:
    on_rds = _text(connection, "SELECT count(*)::text FROM pg_roles WHERE rolname = 'rdsadmin'") != "0"
    if on_rds:
        # A server that isn't the slice's alone has others' databases, and PUBLIC's rights there are others' to change.
        yield Proof("CONNECT to the server's other databases", "none", _text(connection, OTHER_DATABASES))
    # Only a superuser can take lo_create from PUBLIC, and RDS has none: there the proof says so and looks for any.
    with _rolled_back(connection):
        got = _sqlstate(connection, "SELECT lo_create(0)")
    yield Proof("lo_create", "allowed" if on_rds else DENIED, got)
    yield Proof("large objects", "0", _text(connection, "SELECT count(*)::text FROM pg_largeobject_metadata"))


def _text(connection: Connection, statement: LiteralString) -> str:
    row = connection.execute(statement).fetchone()
    return str(row[0]) if row else ""


def _names(rows: Any, empty: str = "none") -> str:
    return ", ".join(sorted(" ".join(row) for row in rows)) or empty
