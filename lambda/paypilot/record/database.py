"""One connection to the database, and what happens to it when the database doesn't answer.

A hung network must not hang the caller: `statement_timeout` is the server's own and says nothing while the server is
frozen, so every wait on the socket ends at the caller's deadline.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import psycopg
from psycopg import errors as postgres
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from paypilot.record.iam_login import database_token

Result = TypeVar("Result")

# Its warnings show the connection: host, user and database. What they report is an exception here anyway.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)

# psycopg and libpq take no less.
CONNECT_SECONDS = 2
# With it a database that is down or frozen is a 503 in under 3 seconds.
WAIT_SECONDS_MAX = 2.5


class RecordUnavailable(Exception):
    """The database can't be reached, doesn't answer in time or takes no writes now."""


class PrivilegeDenied(Exception):
    """The service's role lacks what it needs (SQLSTATE 42501): somebody changed it."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection whose waits end at `deadline`, in seconds of `time.monotonic`."""

    deadline = float("inf")

    def wait(self, gen: PQGen[Result], interval: float = 0.1, timeout: float | None = None) -> Result:
        return super().wait(gen, interval, timeout=max(0.0, self.deadline - time.monotonic()))


class Database:
    """The service's connection: one for each thread, so one in a function, made when first needed."""

    def __init__(self, *, iam_login: bool) -> None:
        self._iam_login = iam_login
        self._local = threading.local()

    def run(self, work: Callable[[Connection], Result], deadline: float) -> Result:
        """What `work` returns, given a connection on which each statement commits by itself.

        A lost connection is made anew once, and `work` called again: so it writes only rows that carry their own key.
        `deadline` is in seconds of `time.monotonic`. Raises `RecordUnavailable` and `PrivilegeDenied`.
        """
        for last_try in (False, True):
            try:
                return work(self._connection(deadline))
            except postgres.InsufficientPrivilege as error:
                self.drop()
                raise PrivilegeDenied("the service's role was refused by the database") from error
            except (psycopg.OperationalError, postgres.ReadOnlySqlTransaction) as error:
                self.drop()
                if last_try or deadline - time.monotonic() < CONNECT_SECONDS:
                    raise RecordUnavailable("the database did not answer") from error
            except BaseException:
                # Whatever it was, a connection in the middle of something is not used again.
                if not self._idle():
                    self.drop()
                raise
        raise AssertionError("the last try returns or raises")

    def drop(self) -> None:
        """Close this thread's connection, if there is one."""
        connection: Connection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def _idle(self) -> bool:
        connection: Connection | None = getattr(self._local, "connection", None)
        return connection is not None and connection.info.transaction_status is TransactionStatus.IDLE

    def _connection(self, deadline: float) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            if deadline - time.monotonic() < CONNECT_SECONDS:
                raise postgres.ConnectionTimeout("no time is left to connect")
            connection = self._local.connection = connect(iam_login=self._iam_login)
        connection.deadline = deadline
        return connection


def connect(*, iam_login: bool) -> Connection:
    """A new connection as libpq's environment variables say; with `iam_login`, by a token and over verified TLS only.

    Raises `psycopg.OperationalError`, and `KeyError` naming a variable that IAM login needs and doesn't find.
    """
    login: dict[str, Any] = {}
    if iam_login:
        host, port, user = os.environ["PGHOST"], os.environ["PGPORT"], os.environ["PGUSER"]
        login = {
            "password": database_token(host, port, user, os.environ, datetime.now(UTC)),
            "sslmode": "verify-full",
            "gssencmode": "disable",
        }
    started = time.monotonic()
    connection = Connection.connect(
        autocommit=True,
        application_name="paypilot",
        connect_timeout=CONNECT_SECONDS,
        tcp_user_timeout=CONNECT_SECONDS * 1000,
        keepalives_idle=10,
        keepalives_interval=2,
        keepalives_count=2,
        # A pooler refuses settings that are sent at the start, PGOPTIONS included, or gives them to whoever comes next.
        # Settings are the role's own, and each transaction's.
        options="",
        client_encoding="UTF8",
        **login,
    )
    try:
        _prepare_nothing_behind_a_pooler(connection, started + CONNECT_SECONDS)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare_nothing_behind_a_pooler(connection: Connection, deadline: float) -> None:
    """Have each statement planned each time where a pooler answers, which names its own process at the login.

    It gives each transaction whichever server connection is free, and that one may know another statement by the name.
    """
    connection.deadline = deadline
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    if row != (connection.info.backend_pid,):
        connection.prepare_threshold = None
    connection.deadline = Connection.deadline
