"""The proof: logged in as the service, what must fail is tried, and must fail with the SQLSTATE that says why.

Every attempt runs in a transaction that is rolled back, so that a proof that fails leaves nothing. What must work is
tried before and after, because a broken connection refuses everything. Row-level security keeps a query that forgets
its client from another's rows; it doesn't keep out whoever holds the service's login, who may set any client.

Postgres has no right to take away, on any server, for: DO blocks, pg_sleep, advisory locks and LOCK TABLE in ACCESS
SHARE MODE (they can make others wait, and change nothing), LISTEN and NOTIFY, the role's own defaults (each transaction
sets what an answer relies on), ending sessions of its own role, and reading the catalogs with their numbers of
rows. Others' queries and the statistics of rows that it may not see stay hidden, which a proof looks at.
"""

from typing import Any

import psycopg

from paypilot.record.database import Connection
from paypilot_bootstrap.append_only import APPEND_ONLY
from paypilot_bootstrap.proof.attempt import DENIED, Proof, ProofFailed, changes, rolled_back, sqlstate
from paypilot_bootstrap.proof.catalog import catalog
from paypilot_bootstrap.proof.refused import REFUSED, granting_what_it_holds, insert_without_a_client, refused
from paypilot_bootstrap.proof.rows import control, other_clients_rows
from paypilot_bootstrap.proof.server import password, what_rds_differs_in


def prove(connection: Connection) -> list[Proof]:
    """Every proof, on the service's own connection. Raises `ProofFailed` naming those that failed."""
    connection.execute("SELECT set_config('paypilot.client_id', '', false)")
    proofs = [
        control(connection, "before"),
        *(refused(connection, name, statement) for name, statement in REFUSED.items()),
        *other_clients_rows(connection),
        insert_without_a_client(connection),
        granting_what_it_holds(connection),
        *catalog(connection),
        password(connection),
        *what_rds_differs_in(connection),
        control(connection, "after"),
    ]
    if not all(proof.passed for proof in proofs):
        raise ProofFailed(proofs)
    return proofs


def prove_owner(connection: psycopg.Connection[Any]) -> list[Proof]:
    """That the triggers refuse the owner too, on the master user's connection. Raises `ProofFailed`."""
    proofs = []
    for table in (*APPEND_ONLY, "erasures"):
        for change, statement in changes(table).items():
            with rolled_back(connection):
                connection.execute("SET LOCAL ROLE paypilot_owner")
                got = sqlstate(connection, statement)
            proofs.append(Proof(f"owner: {change} {table}", DENIED, got))
    if not all(proof.passed for proof in proofs):
        raise ProofFailed(proofs)
    return proofs
