"""An attempt on the service's connection, and what it proves: tried, rolled back, compared with what it must give."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from paypilot.record.database import Connection
from paypilot.record.rows import SET_CLIENT

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


def as_data(proofs: list[Proof]) -> list[dict[str, Any]]:
    """The proofs as JSON can carry them."""
    return [{**asdict(proof), "passed": proof.passed} for proof in proofs]


@contextmanager
def rolled_back(connection: psycopg.Connection[Any]) -> Iterator[None]:
    with connection.transaction(force_rollback=True):
        yield


def set_client(connection: Connection, client_id: str) -> None:
    connection.execute(SET_CLIENT, {"client": client_id})


def sqlstate(connection: psycopg.Connection[Any], statement: LiteralString | sql.Composed) -> str:
    try:
        with connection.transaction():
            connection.execute(statement)
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise
        return error.sqlstate
    return "allowed"


def changes(table: str) -> dict[str, sql.Composed]:
    """What an append-only table must refuse, by the change's name."""
    name = sql.Identifier("paypilot", table)
    return {
        "UPDATE": sql.SQL("UPDATE {} SET client_id = client_id").format(name),
        "DELETE": sql.SQL("DELETE FROM {}").format(name),
        "TRUNCATE": sql.SQL("TRUNCATE {}").format(name),
    }


def tried(connection: Connection, steps: Callable[[], str]) -> str:
    """What `steps` gives, or the SQLSTATE that it ends with; rolled back."""
    try:
        with rolled_back(connection):
            return steps()
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise
        return error.sqlstate


def text(connection: Connection, statement: LiteralString) -> str:
    row = connection.execute(statement).fetchone()
    return str(row[0]) if row else ""
