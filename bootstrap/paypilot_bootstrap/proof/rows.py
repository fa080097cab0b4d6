"""The service's own rows, which it must write and read, and another client's, which it must not see."""

from collections.abc import Iterator

from psycopg import sql

from paypilot import decisions, outcomes, refusals
from paypilot.core.decide import FailedPayment, apply_rule
from paypilot.http.page import Page
from paypilot.http.problems import InvalidJson
from paypilot.record.database import Connection
from paypilot.record.rows import Record, new_id
from paypilot.tables import published_tables
from paypilot_bootstrap.append_only import APPEND_ONLY
from paypilot_bootstrap.proof.attempt import OTHER_CLIENT, PROVER, Proof, set_client, tried


def _write_a_row_of_each(connection: Connection, client_id: str) -> None:
    record = Record(lambda work: work(connection), client_id)
    payment = FailedPayment("proof", "card_expired")
    decision = apply_rule(published_tables().card.rule(payment.failure_code, payment.attempt), payment)
    decisions.record_decision(record, new_id(), payment, decision, None)
    outcomes.record_outcome(record, new_id(), "proof", outcomes.OutcomeReport("paid", "proof"))
    refusals.record_refusal(record, "proof", InvalidJson("proof"))


def control(connection: Connection, when: str) -> Proof:
    def write_and_read() -> str:
        _write_a_row_of_each(connection, PROVER)
        record = Record(lambda work: work(connection), PROVER)
        page = Page(limit=1, after=None, kind="refusal", mark=b"")
        _, decided = decisions.read_history(record, "proof", page)
        refused = refusals.read_refusals(record, page)
        paid = sum(row[2] for row in outcomes.read_summary(record))
        return f"{len(decided)} decision, {len(refused)} refusal, {paid} paid"

    name = f"control {when}: its own rows are written and read"
    return Proof(name, "1 decision, 1 refusal, 1 paid", tried(connection, write_and_read))


VISIBLE = sql.SQL("SELECT {}").format(
    sql.SQL(" + ").join(
        sql.SQL("(SELECT count(*) FROM {} WHERE client_id <> %(client)s)").format(sql.Identifier("paypilot", table))
        for table in (*APPEND_ONLY, "rule_counts")
    )
)


def other_clients_rows(connection: Connection) -> Iterator[Proof]:
    for name, client_id in (("SELECT another client's rows", PROVER), ("SELECT with no client set", "")):

        def look(client_id: str = client_id) -> str:
            _write_a_row_of_each(connection, OTHER_CLIENT)
            set_client(connection, client_id)
            row = connection.execute(VISIBLE, {"client": client_id}).fetchone()
            return f"{row[0] if row else 0} rows"

        yield Proof(name, "0 rows", tried(connection, look))
