"""What depends on the server: the role's password, and what RDS leaves open or closes."""

from collections.abc import Iterator
from typing import LiteralString

from paypilot.record.database import Connection
from paypilot_bootstrap.proof.attempt import DENIED, Proof, rolled_back, sqlstate, text


def password(connection: Connection) -> Proof:
    # Every Postgres role may change its own password; RDS can be told to refuse it (rds.restrict_password_commands).
    with rolled_back(connection):
        got = sqlstate(connection, "ALTER ROLE paypilot_service PASSWORD 'proof-rolled-back'")
        on_rds = connection.execute("SELECT current_setting('rds.restrict_password_commands', true)").fetchone()
    restricted = on_rds is not None and on_rds[0] in {"on", "1"}
    return Proof("ALTER ROLE its own password", DENIED if restricted else "allowed", got)


# The two that a server has from the start, and that its master user owns.
OTHER_DATABASES: LiteralString = """
SELECT coalesce(string_agg(datname, ', ' ORDER BY datname), 'none') FROM pg_database
WHERE datname IN ('postgres', 'template1') AND datname <> current_database() AND datdba::regrole::text <> 'rdsadmin'
  AND has_database_privilege(oid, 'CONNECT')
"""


def what_rds_differs_in(connection: Connection) -> Iterator[Proof]:
    on_rds = text(connection, "SELECT count(*)::text FROM pg_roles WHERE rolname = 'rdsadmin'") != "0"
    if on_rds:
        # A server that isn't the slice's alone has others' databases, and PUBLIC's rights there are others' to change.
        yield Proof("CONNECT to the server's other databases", "none", text(connection, OTHER_DATABASES))
    # Only a superuser can take lo_create from PUBLIC, and RDS has none: there the proof says so and looks for any.
    with rolled_back(connection):
        got = sqlstate(connection, "SELECT lo_create(0)")
    yield Proof("lo_create", "allowed" if on_rds else DENIED, got)
    yield Proof("large objects", "0", text(connection, "SELECT count(*)::text FROM pg_largeobject_metadata"))
