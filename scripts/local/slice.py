"""The slice on this machine: a database for it, and the bootstrap that sets the database and the environment up."""

import contextlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import Conninfo

from scripts.local.checkout import commit
from scripts.local.postgres import LocalPostgres, running_postgres

DATABASE = "paypilot"
CONNECT_SECONDS = 10


class SliceError(Exception):
    """The slice can't be set up; the message says why and what to do."""


class Target(NamedTuple):
    """A database that was reached, and its master user. `parameters` are libpq's, all but the defaults."""

    host: str
    port: int
    database: str
    user: str
    password: str
    parameters: Mapping[str, str]


@contextlib.contextmanager
def running_database(folder: Path, *options: str) -> Iterator[LocalPostgres]:
    """A Postgres in `folder` that has a database for the slice, stopped at the end."""
    with running_postgres(folder, *options) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", (DATABASE,)).fetchall():
                connection.execute("CREATE DATABASE paypilot")
        yield server


def reach(conninfo: str) -> Target:
    """Connect, and change nothing. Raises `SliceError`."""
    try:
        with psycopg.connect(conninfo, connect_timeout=CONNECT_SECONDS) as connection:
            info = connection.info
            return Target(info.host, info.port, info.dbname, info.user, info.password, info.get_parameters())
    except psycopg.ProgrammingError:
        # libpq's own message may hold the password.
        raise SliceError("DATABASE_URL is not a URL like postgresql://user:password@host:5432/database") from None
    except psycopg.OperationalError as error:
        raise SliceError(f"the database can't be reached: {_first_line(error)}") from error


def bootstrap(target: Target) -> None:
    """Set up the database as the bootstrap function does, and the environment as the functions find it.

    Raises `SliceError`.
    """
    names = {option.keyword.decode(): option.envvar.decode() for option in Conninfo.get_defaults() if option.envvar}
    found = {**target.parameters, "host": target.host, "port": str(target.port), "dbname": target.database}
    os.environ |= {names[keyword]: value for keyword, value in found.items() if keyword in names}
    os.environ |= {
        "PGUSER": "paypilot_service",
        "PGPASSWORD": _service_password(target.password),
        "PAYPILOT_MASTER_USER": target.user,
        "POWERTOOLS_METRICS_NAMESPACE": "PayPilot",
        "POWERTOOLS_SERVICE_NAME": "paypilot-decision",
    }
    from paypilot_bootstrap.function import handler
    from paypilot_bootstrap.migrate import MigrationError
    from paypilot_bootstrap.proof.attempt import ProofFailed

    try:
        handler({"action": "bootstrap", "master_password": target.password}, None)
    except (MigrationError, ProofFailed) as error:
        raise SliceError(str(error)) from error
    except psycopg.Error as error:
        raise SliceError(f"the database can't be set up: {_first_line(error)}") from error


def local_handler() -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The function's Lambda handler. Its health reports this checkout's commit, as a package's reports the build's."""
    from paypilot import function

    function.published = function.published._replace(commit=commit())
    return function.handler


def _service_password(master_password: str) -> str:
    """The service's password. Every run on a server takes the same one, because a role is the whole server's."""
    if not master_password:
        return secrets.token_urlsafe(32)
    return hmac.digest(master_password.encode(), b"paypilot_service", "sha256").hex()


def _first_line(error: psycopg.Error) -> str:
    """What went wrong; libpq never puts a password there."""
    return str(error).partition("\n")[0]
