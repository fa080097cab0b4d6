"""What the catalogs say of the service's rights, of the guards on the rows, and of the role's settings."""

from collections.abc import Iterator
from typing import Any, LiteralString

from paypilot.record.database import Connection
from paypilot_bootstrap.append_only import APPEND_ONLY
from paypilot_bootstrap.proof.attempt import Proof, text

# What the service holds, and nothing else: (table, privilege, column or *).
GRANTED: frozenset[tuple[str, str, str]] = frozenset(
    {
        *((table, "SELECT", "*") for table in (*APPEND_ONLY, "rule_counts")),
        *((table, "INSERT", column) for table, columns in APPEND_ONLY.items() for column in columns),
        ("schema paypilot", "USAGE", "*"),
        ("its database", "CONNECT", "*"),
    }
)

# The trigger that counts a table's rows. It waits for an erasure too, so these tables need no wait_for_erasure.
COUNTED = {"decision_audit": "count_decision", "decision_outcomes": "count_outcome"}

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
            for table, function in COUNTED.items()
        ),
        *(
            (
                table,
                f"A CREATE TRIGGER wait_for_erasure BEFORE INSERT ON paypilot.{table} "
                "FOR EACH ROW EXECUTE FUNCTION paypilot.wait_for_erasure()",
            )
            for table in APPEND_ONLY
            if table not in COUNTED
        ),
    }
)

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


def catalog(connection: Connection) -> Iterator[Proof]:
    held = set(connection.execute(HELD).fetchall())
    yield Proof("privileges: none beyond its own", "none", _names(held - GRANTED))
    yield Proof("privileges: all of its own", "none missing", _names(GRANTED - held, "none missing"))
    yield Proof("attributes of the role", "none", text(connection, ATTRIBUTES) or "none")
    yield Proof("memberships of the role", "none", text(connection, MEMBERSHIPS) or "none")
    yield Proof("objects that the role owns", "0", text(connection, OWNED))
    guards = set(connection.execute(GUARDS).fetchall())
    yield Proof(
        "owner, triggers and row-level security: all there", "none missing", _names(GUARDED - guards, "none missing")
    )
    yield Proof("owner, triggers and row-level security: no others", "none", _names(guards - GUARDED))
    # A role may always change its own defaults. What an answer relies on, each transaction of the record sets anew.
    yield Proof(
        "settings of the role are bootstrap's",
        "TimeZone=UTC, default_transaction_isolation=read committed, idle_in_transaction_session_timeout=5s, "
        'search_path="", statement_timeout=5s, synchronous_commit=on',
        text(connection, SETTINGS),
    )
    yield Proof("an answered commit is on disk", "on, fsync on", text(connection, DURABLE))
    yield Proof("statistics of rows that it may not see", "0", text(connection, STATISTICS))


def _names(rows: Any, empty: str = "none") -> str:
    return ", ".join(sorted(" ".join(row) for row in rows)) or empty
