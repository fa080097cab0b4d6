"""What the service must be refused, by statement."""

from typing import LiteralString

from psycopg import sql

from paypilot.record.database import Connection
from paypilot_bootstrap.append_only import APPEND_ONLY
from paypilot_bootstrap.proof.attempt import DENIED, PROVER, Proof, changes, rolled_back, set_client, sqlstate, tried

# name -> the statement that the service must be refused
REFUSED: dict[str, LiteralString | sql.Composed] = {
    **{f"{change} {table}": statement for table in APPEND_ONLY for change, statement in changes(table).items()},
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
    "INSERT erasures": (
        "INSERT INTO paypilot.erasures (erasure_id, client_id, table_name, row_count) VALUES (0, 'x', 'x', 0)"
    ),
    "SELECT invoice_states": "SELECT FROM paypilot.invoice_states",
    "nextval of a sequence": "SELECT nextval('paypilot.decision_audit_seq_seq')",
    "COPY TO PROGRAM": "COPY (SELECT 1) TO PROGRAM 'true'",
    "pg_read_file": "SELECT pg_read_file('PG_VERSION')",
}


def refused(connection: Connection, name: str, statement: LiteralString | sql.Composed) -> Proof:
    with rolled_back(connection):
        set_client(connection, PROVER)
        return Proof(name, DENIED, sqlstate(connection, statement))


def insert_without_a_client(connection: Connection) -> Proof:
    statement: LiteralString = (
        "INSERT INTO paypilot.decision_refusals (refusal_id, client_id, route, gate, reason) "
        "VALUES (gen_random_uuid(), 'paypilot-proof', 'proof', 'proof', 'proof')"
    )
    with rolled_back(connection):
        return Proof("INSERT with no client set", DENIED, sqlstate(connection, statement))


def granting_what_it_holds(connection: Connection) -> Proof:
    # Postgres answers a GRANT by a role that holds the right, but not the right to pass it on, with a warning only.
    acl: LiteralString = "SELECT relacl::text FROM pg_class WHERE relname = 'decision_audit'"

    def grant() -> str:
        before = connection.execute(acl).fetchall()
        got = sqlstate(connection, "GRANT SELECT ON paypilot.decision_audit TO PUBLIC")
        return "nothing granted" if got == DENIED or connection.execute(acl).fetchall() == before else "granted"

    return Proof("GRANT what it holds", "nothing granted", tried(connection, grant))
