"""Schema and roles, from the numbered SQL files: one transaction under an advisory lock, each file once."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

SQL_FOLDER = Path(__file__).parent / "sql"
OLDEST_POSTGRES = 160000

# Any fixed number does, so long as nothing else in this database takes it.
ADVISORY_LOCK = 5_029_071_466


# Tables of nobody's extension, other than the list of what was applied.
OTHERS_TABLES: LiteralString = """
SELECT coalesce(string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid::regclass::text), '')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND c.oid IS DISTINCT FROM to_regclass('public.paypilot_migrations')
  AND NOT EXISTS (SELECT FROM pg_depend d
                  WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
"""


class MigrationError(Exception):
    """The schema was left as it was; the message says why."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file. `digest` is the SHA-256 of its bytes, in hex."""

    version: int
    name: str
    statements: str
    digest: str


def migrations() -> list[Migration]:
    """The numbered files, in order."""
    found = []
    for path in sorted(SQL_FOLDER.glob("*.sql")):
        data = path.read_bytes()
        number, _, name = path.stem.partition("_")
        found.append(Migration(int(number), name, data.decode(), hashlib.sha256(data).hexdigest()))
    return found


def migrate(connection: psycopg.Connection[Any], service_password: str | None, *, up_to: int | None = None) -> int:
    """Apply the files that this database doesn't have yet, in one transaction, and return the schema's version.

    `connection` is the master user's. `service_password` becomes the service's, or None where it logs in by IAM.
    `up_to` stops at an earlier version. Raises `MigrationError` if Postgres is too old, if a file that was applied has
    been edited since, if the database is ahead of these files, or if it is another application's: the first file takes
    CONNECT from PUBLIC, which may be done only in a database that is PayPilot's alone.
    """
    if connection.info.server_version < OLDEST_POSTGRES:
        raise MigrationError(f"Postgres 16 or later is needed; this is {connection.info.server_version // 10000}")
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS public.paypilot_migrations (version integer PRIMARY KEY, name text NOT NULL, "
            "digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
        applied = dict(connection.execute("SELECT version, digest FROM public.paypilot_migrations").fetchall())
        if not applied:
            _refuse_others_database(connection)
        known = migrations()
        if unknown := applied.keys() - {migration.version for migration in known}:
            raise MigrationError(f"the database has version {max(unknown)}, which this build doesn't know")
        for migration in known:
            if up_to is not None and migration.version > up_to:
                break
            if migration.version not in applied:
                connection.execute(migration.statements.encode())
                connection.execute(
                    "INSERT INTO public.paypilot_migrations (version, name, digest) VALUES (%s, %s, %s)",
                    (migration.version, migration.name, migration.digest),
                )
            elif applied[migration.version] != migration.digest:
                raise MigrationError(f"{migration.version:03}_{migration.name}.sql was edited after it was applied")
        if service_password is not None:
            # As psql's \password does: no log of the server's statements then holds the password.
            verifier = connection.pgconn.encrypt_password(
                service_password.encode(), b"paypilot_service", b"scram-sha-256"
            ).decode()
            connection.execute(sql.SQL("ALTER ROLE paypilot_service PASSWORD {}").format(sql.Literal(verifier)))
        row = connection.execute("SELECT max(version) FROM public.paypilot_migrations").fetchone()
    return int(row[0]) if row else 0


def _refuse_others_database(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute(OTHERS_TABLES).fetchone()
    if row and row[0]:
        raise MigrationError(
            f"the database {connection.info.dbname} is another application's: it has the tables {row[0]}. "
            "Create an empty database for PayPilot"
        )
