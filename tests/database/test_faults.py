"""What happens to a call while the database is down, frozen, full or read-only, or its role was tampered with.

Through the local host: the same handler, in a process of its own, whose log can be read.
"""

import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import psycopg
import pytest

from scripts.local.postgres import LocalPostgres
from support.slice import TOKEN, Host, blank_database, running_host, running_postgres, until

LONGEST_SECONDS = 3.0


@dataclass
class Slice:
    """The host on a database of its own that a test may break, so long as it mends it."""

    server: LocalPostgres
    host: Host
    client: httpx.Client

    def decide(self, invoice: str, key: str | None = None, **body: Any) -> httpx.Response:
        headers = {} if key is None else {"idempotency-key": key}
        body = {"invoice_id": invoice, "failure_code": "card_expired", **body}
        return self.client.post("/decide", json=body, headers=headers)

    def rows(self, invoice: str) -> int:
        with self.superuser() as connection:
            row = connection.execute(
                "SELECT count(*) FROM paypilot.decision_audit WHERE invoice_id = %s", (invoice,)
            ).fetchone()
        assert row is not None
        return int(row[0])

    def superuser(self) -> "psycopg.Connection[tuple[Any, ...]]":
        return psycopg.connect(self.server.conninfo("paypilot"), autocommit=True)

    @contextmanager
    def harmed(self, harm: str, repair: str) -> Iterator[None]:
        """`harm` done, and met by new connections only; mended at the end."""
        with self.superuser() as connection:
            connection.execute(harm.encode())
            self.end_sessions()
            try:
                yield
            finally:
                connection.execute(b"SET default_transaction_read_only = off")
                connection.execute(repair.encode())

    def end_sessions(self) -> int:
        """End the service's sessions, as a failover does; return how many there were."""
        with self.superuser() as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'paypilot_service'"
            ).fetchall()
        return len(ended)

    def log_of(self, request_id: str) -> str:
        """The log lines of one request."""
        found: list[str] = []

        def look() -> bool:
            found[:] = [line for line in self.host.log.read_text().splitlines() if request_id in line]
            return any('"answered"' in line for line in found)

        until(look)
        return "\n".join(found)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slice]:
    folder = tmp_path_factory.mktemp("faulty")
    with running_postgres(folder / "postgres") as server:
        blank_database(server)
        url = f"postgresql://postgres:{server.password}@127.0.0.1:{server.port}/paypilot"
        limits = httpx.Limits(max_connections=None)
        with (
            running_host(folder / "host", DATABASE_URL=url) as host,
            httpx.Client(
                base_url=host.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=20, limits=limits
            ) as client,
        ):
            yield Slice(server, host, client)


@pytest.fixture
def whole(faulty: Slice) -> Slice:
    """The slice, answering."""
    until(lambda: faulty.decide("in_before").status_code == 200)
    return faulty


def assert_unavailable(answer: httpx.Response) -> None:
    assert answer.status_code == 503
    assert answer.json()["code"] == "audit_unavailable"
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.elapsed.total_seconds() < LONGEST_SECONDS
    assert not {"decision_id", "action", "retry", "rule"} & answer.json().keys()


def ask_everything(whole: Slice, invoice: str) -> list[httpx.Response]:
    """Each route once, at the same time; `invoice` is decided, if that works."""
    asked = [
        ("POST", "/decide", {"invoice_id": invoice, "failure_code": "card_expired"}),
        ("POST", "/decide", {"invoice_id": invoice}),
        ("POST", "/decisions/in_before/outcome", {"outcome": "paid", "report_key": "asked"}),
        ("GET", "/decisions/in_before", None),
        ("GET", "/decisions/outcomes/summary", None),
        ("GET", "/refusals", None),
    ]
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(lambda call: whole.client.request(call[0], call[1], json=call[2]), asked))


def test_a_killed_database_is_503_and_the_first_call_after_it_is_back_succeeds(whole: Slice) -> None:
    whole.server.kill()
    try:
        answers = ask_everything(whole, "in_killed")
        assert whole.client.get("/health").status_code == 200
    finally:
        whole.server.start()
    after = whole.decide("in_after_kill")
    for answer in answers:
        assert_unavailable(answer)
    assert after.status_code == 200
    assert (whole.rows("in_killed"), whole.rows("in_after_kill")) == (0, 1)


def test_a_frozen_database_is_503_within_the_deadline_on_every_route(whole: Slice) -> None:
    whole.server.signal(signal.SIGSTOP)
    try:
        answers = ask_everything(whole, "in_asked")  # over connections that were warm, and over new ones
        answers += ask_everything(whole, "in_asked")
    finally:
        whole.server.signal(signal.SIGCONT)
    for answer in answers:
        assert_unavailable(answer)
        assert "127.0.0.1" not in whole.log_of(answer.headers["x-request-id"])
    assert "host=" not in whole.host.log.read_text()
    until(lambda: whole.decide("in_thawed").status_code == 200)


def test_a_call_that_was_cut_off_by_a_freeze_can_be_sent_again_and_decides_once(whole: Slice) -> None:
    whole.server.signal(signal.SIGSTOP)
    try:
        assert_unavailable(whole.decide("in_frozen", key="frozen"))
    finally:
        whole.server.signal(signal.SIGCONT)
    # What was sent may have been written all the same, once the server went on.
    until(lambda: whole.decide("in_frozen", key="frozen").status_code == 200)
    assert whole.rows("in_frozen") == 1


def test_backends_ended_between_two_warm_calls_cost_nothing(whole: Slice) -> None:
    for number in range(5):
        invoice = f"in_ended_{number}"
        assert whole.decide(invoice).status_code == 200
        assert whole.end_sessions() >= 1
        assert whole.decide(invoice).status_code == 200
        assert whole.rows(invoice) == 2


def test_every_answered_decision_outlives_a_kill_under_load_byte_for_byte(whole: Slice) -> None:
    answered: dict[str, bytes] = {}
    stop = threading.Event()

    def decide_until_stopped(thread: int) -> None:
        number = 0
        while not stop.is_set():
            invoice = f"in_load_{thread}_{number}"
            answer = whole.decide(invoice, key=invoice)
            if answer.status_code == 200:
                answered[invoice] = answer.content
            else:
                assert_unavailable(answer)
            number += 1

    with ThreadPoolExecutor(8) as pool:
        running = [pool.submit(decide_until_stopped, thread) for thread in range(8)]
        try:
            for kill in range(2):
                until(partial(lambda enough: len(answered) > enough, len(answered) + 50))
                whole.server.kill()
                whole.server.start()
                until(partial(lambda kill: whole.decide(f"in_up_{kill}").status_code == 200, kill))
        finally:
            stop.set()
        for future in running:
            future.result()
    assert len(answered) > 100
    for invoice, body in answered.items():
        history = whole.client.get(f"/decisions/{invoice}")
        assert history.content.count(body) == 1
        assert len(history.json()["decisions"]) == 1
        # Sent again, it is answered as it was.
        replayed = whole.decide(invoice, key=invoice)
        assert (replayed.content, replayed.headers["idempotent-replayed"]) == (body, "true")


def test_a_database_that_takes_no_writes_is_503_for_writes_and_still_read(whole: Slice) -> None:
    setting = "ALTER DATABASE paypilot {} default_transaction_read_only"
    with whole.harmed(setting.format("SET") + " = on", setting.format("RESET")):
        answers = ask_everything(whole, "in_asked")
    assert [answer.status_code for answer in answers] == [503, 503, 503, 200, 200, 200]
    for answer in answers[:3]:
        assert_unavailable(answer)
        assert '"sqlstate":"25006"' in whole.log_of(answer.headers["x-request-id"])
    # A connection that met it is given up, also where nobody ends it.
    assert {whole.decide("in_writable").status_code for _ in range(3)} == {200}


def test_a_database_with_no_connection_left_is_503(whole: Slice) -> None:
    limit = "ALTER ROLE paypilot_service CONNECTION LIMIT {}"
    with whole.harmed(limit.format(0), limit.format(-1)):
        answer = whole.decide("in_full")
    assert_unavailable(answer)
    assert "too many connections" not in whole.log_of(answer.headers["x-request-id"])
    assert whole.decide("in_full").status_code == 200


@pytest.mark.parametrize(
    ("harm", "repair"),
    [
        ("REVOKE INSERT (rule) ON {} FROM paypilot_service", "GRANT INSERT (rule) ON {} TO paypilot_service"),
        (
            "ALTER POLICY one_client ON {} USING (false)",
            "ALTER POLICY one_client ON {} USING (client_id = current_setting('paypilot.client_id', true))",
        ),
    ],
    ids=["right taken", "row refused"],
)
def test_a_role_that_was_tampered_with_is_500_and_counted(whole: Slice, harm: str, repair: str) -> None:
    table = "paypilot.decision_audit"
    with whole.harmed(harm.format(table), repair.format(table)):
        answer = whole.decide("in_tampered")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    log = whole.log_of(answer.headers["x-request-id"])
    assert '"sqlstate":"42501"' in log
    assert '"PrivilegeDenied":[1.0]' in whole.host.log.read_text()
    assert "permission denied" not in whole.host.log.read_text()
    assert whole.decide("in_mended").status_code == 200
    assert whole.rows("in_tampered") == 0


def test_a_hundred_calls_at_once_with_one_idempotency_key_give_one_row_and_one_body(whole: Slice) -> None:
    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: whole.decide("in_hundred", key="hundred"), range(100)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert whole.rows("in_hundred") == 1


def test_a_hundred_calls_at_once_with_one_key_and_two_contents_decide_one_of_them(whole: Slice) -> None:
    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda n: whole.decide("in_two", key="two", attempt=1 + n % 2), range(100)))
    decided = {answer.content for answer in answers if answer.status_code == 200}
    assert len(decided) == 1
    assert {answer.json().get("code") for answer in answers if answer.status_code != 200} == {"idempotency_key_reused"}
    assert whole.rows("in_two") == 1


def test_a_hundred_reports_at_once_with_one_key_give_one_row_and_one_body(whole: Slice) -> None:
    whole.decide("in_reported")
    body = {"outcome": "paid", "report_key": "hundred"}
    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: whole.client.post("/decisions/in_reported/outcome", json=body), range(100)))
    assert sorted(answer.status_code for answer in answers) == [200] * 99 + [201]
    assert len({answer.content for answer in answers}) == 1
    with whole.superuser() as connection:
        rows = connection.execute("SELECT FROM paypilot.decision_outcomes WHERE report_key = 'hundred'").fetchall()
    assert len(rows) == 1


CANARY = "canary4711"
# A constraint that no row fits, whose violation repeats the row.
NOTHING_FITS = (
    "ALTER TABLE paypilot.decision_audit ADD CONSTRAINT harm CHECK (false) NOT VALID",
    "ALTER TABLE paypilot.decision_audit DROP CONSTRAINT harm",
)


def test_nothing_of_an_input_a_token_sql_or_a_host_is_in_an_error_or_in_the_log(whole: Slice) -> None:
    def everything() -> list[httpx.Response]:
        headers = {"idempotency-key": f"key-{CANARY}"}
        client = whole.client
        return [
            client.post("/decide", json={"invoice_id": f"in_{CANARY}", "failure_code": f"{CANARY}"}, headers=headers),
            client.post(
                "/decide", json={"invoice_id": f"in_{CANARY}", "failure_code": f"other{CANARY}"}, headers=headers
            ),
            client.post("/decide", json={"invoice_id": f"{CANARY} ", "failure_code": "c"}),
            client.post("/decide", content=f'{{"{CANARY}'),
            client.post("/decide", headers={"authorization": f"Bearer {CANARY}"}),
            client.post("/decide", headers={"authorization": f"Basic {CANARY}"}),
            client.post("/decide", headers={b"idempotency-key": f"{CANARY}\u00e9".encode()}),
            client.post(f"/decisions/in_{CANARY}/outcome", json={"outcome": CANARY, "report_key": CANARY}),
            client.post(f"/decisions/in_{CANARY}/outcome", json={"outcome": "paid", "report_key": CANARY}),
            client.get(f"/decisions/in_unknown_{CANARY}"),
            client.get(f"/refusals?cursor={CANARY}"),
            client.get(f"/{CANARY}", headers={"user-agent": CANARY}),
            client.request(CANARY.upper(), "/decide"),
        ]

    answers = everything()
    # Now each exception of psycopg's holds the statement, a value or the host.
    with whole.harmed(
        "REVOKE ALL ON SCHEMA paypilot FROM paypilot_service", "GRANT USAGE ON SCHEMA paypilot TO paypilot_service"
    ):
        answers += everything()
    with whole.harmed(*NOTHING_FITS):
        answers += everything()
    whole.server.kill()
    try:
        answers += everything()
    finally:
        whole.server.start()
    secrets = [CANARY, TOKEN, "127.0.0.1", "INSERT", "SELECT", "paypilot.decision", "paypilot_service", "psycopg"]
    statuses = {answer.status_code for answer in answers}
    assert {200, 401, 404, 405, 422, 500, 503} <= statuses
    for answer in answers:
        if answer.status_code >= 400:
            assert not [secret for secret in secrets if secret in answer.text], answer.text
        request_id = answer.headers.get("x-request-id")
        if request_id:
            log = whole.log_of(request_id)
            assert not [secret for secret in secrets if secret in log], log
    log = re.sub(r'"location":"[^"]*"', "", whole.host.log.read_text())
    assert CANARY not in log
    assert TOKEN not in log


def test_the_log_of_an_unforeseen_error_tells_it_once_with_its_frames(whole: Slice) -> None:
    with whole.harmed(*NOTHING_FITS):
        answer = whole.decide("in_unforeseen")
    assert answer.status_code == 500
    told = [line for line in whole.log_of(answer.headers["x-request-id"]).splitlines() if '"ERROR"' in line]
    assert len(told) == 1
    assert '"sqlstate":"23514"' in told[0]
    assert "rows.py" in told[0]
