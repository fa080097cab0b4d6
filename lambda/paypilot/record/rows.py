"""One client's rows: how they are written and read, whatever they record.

The service may SELECT, and INSERT into the columns that it must supply; nothing else. Each row that it writes carries
its own key, so that a statement sent twice over a lost connection writes once. The database gives times and order.

Row-level security shows and takes rows of one client only: the one set for the statement's own transaction. An INSERT
sets it in the value of its client_id column, so that it is one statement and one round trip. The commit is on disk
before the answer in the same way, whatever the role's default has become. Results are binary: no setting of the
connection changes how they are read.
"""

import os
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from paypilot.record.database import Connection

Result = TypeVar("Result")
Row = tuple[Any, ...]

COMMIT_ON_DISK = "set_config('synchronous_commit', 'on', true)"
SET_CLIENT = f"SELECT {COMMIT_ON_DISK}, set_config('paypilot.client_id', %(client)s, true)"


class Run(Protocol):
    """Calls work with a connection on which each statement commits by itself, and returns what it returns."""

    def __call__(self, work: Callable[[Connection], Result]) -> Result: ...


class Record:
    """What `client_id` has on record. Raises what `run` raises."""

    def __init__(self, run: Run, client_id: str) -> None:
        self._run = run
        self._client_id = client_id

    def insert(self, statement: str, values: Sequence[Any]) -> Row | None:
        """Commit a statement of `insert_statement`, and return the row; None where its key is taken already."""
        parameters = (self._client_id, *values)
        return self._run(lambda connection: connection.execute(statement, parameters, binary=True).fetchone())

    def query(self, *statements: str, **values: Any) -> list[list[Row]]:
        """The rows of each statement. All run in one transaction and one round trip, and commit together.

        `%(client)s` is this client in every statement.
        """
        values["client"] = self._client_id

        def work(connection: Connection) -> list[list[Row]]:
            with connection.pipeline():
                connection.execute(SET_CLIENT, values)
                results = [connection.execute(statement, values, binary=True) for statement in statements]
            return [result.fetchall() for result in results]

        return self._run(work)


def insert_statement(table: str, columns: Sequence[str], returning: Sequence[str]) -> str:
    """An INSERT of one client's row for `Record.insert`, which gives the client and then `columns`.

    A row whose key is taken writes nothing. Only names of our own are put into the text.
    """
    names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
    return (
        f"INSERT INTO paypilot.{table} (client_id, {names}) "  # noqa: S608
        f"VALUES (CASE {COMMIT_ON_DISK} WHEN 'on' THEN set_config('paypilot.client_id', %s, true) END, {marks}) "
        f"ON CONFLICT DO NOTHING RETURNING {', '.join(returning)}"
    )


def new_id() -> uuid.UUID:
    """A UUIDv7 (RFC 9562): 48 bits of Unix milliseconds, then random bits around version and variant."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    return uuid.UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with six decimals."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
