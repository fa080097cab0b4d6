"""The slice behind PgBouncer in transaction mode: each transaction may go over another server connection."""

import json
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from paypilot import function
from paypilot.record.database import Connection, connect
from paypilot_bootstrap.function import handler as bootstrap
from scripts.local.events import event
from scripts.local.host import Handler
from scripts.local.postgres import HOST, free_port
from support.slice import OTHER_TOKEN, TOKEN, TestDatabase, decided, record_on, until

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed: apt-get install pgbouncer")

# What a developer's shell may hold for other programs of libpq.
SHELL = {
    "PGOPTIONS": "-c search_path=public -c geqo=off",
    "PGDATESTYLE": "German",
    "PGCLIENTENCODING": "LATIN1",
    "PGTZ": "Asia/Tokyo",
    "PGTARGETSESSIONATTRS": "read-write",
    "PGSSLMODE": "prefer",
}


@pytest.fixture
def pooled(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestDatabase]:
    """The service's environment, by way of a pooler that has two connections to the server for everybody."""
    port = free_port()
    passwords = {"postgres": database.server.password, "paypilot_service": database.service["PGPASSWORD"]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        users, settings, log = folder / "users.txt", folder / "pgbouncer.ini", folder / "pgbouncer.log"
        users.write_text("".join(f'"{user}" "{password}"\n' for user, password in passwords.items()))
        settings.write_text(
            f"[databases]\npaypilot = host={HOST} port={database.server.port}\n"
            f"[pgbouncer]\nlisten_addr = {HOST}\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = scram-sha-256\nauth_file = {users}\npool_mode = transaction\ndefault_pool_size = 2\n"
        )
        # PgBouncer refuses to run as root.
        user = "nobody" if os.geteuid() == 0 else None
        if user is not None:
            for path in (folder, users, settings):
                os.chown(path, pwd.getpwnam(user).pw_uid, -1)
        with log.open("wb") as output:
            pooler = subprocess.Popen([str(PGBOUNCER), settings], stdout=output, stderr=output, user=user)
        try:
            monkeypatch.setenv("PGPORT", str(port))
            until(lambda: _answers(pooler, log))
            yield database
        finally:
            pooler.terminate()
            pooler.wait()


def _answers(pooler: "subprocess.Popen[bytes]", log: Path) -> bool:
    assert pooler.poll() is None, log.read_text()
    try:
        psycopg.connect(connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


class Client:
    """One client of the Lambda entry point. Each thread that asks has a connection of its own to the pooler."""

    def __init__(self, handler: Handler, token: str) -> None:
        self.handler, self.token = handler, token

    def ask(self, method: str, path: str, body: Any = None, query: str = "", **headers: str) -> tuple[int, Any]:
        """The status, and the body's text."""
        headers = {"authorization": f"Bearer {self.token}", **headers}
        sent = json.dumps(body).encode() if body is not None else b""
        answer = self.handler(event(method, path, query=query, headers=headers, body=sent), None)
        return answer["statusCode"], answer["body"]

    def decide(self, invoice: str, key: str | None = None, code: str = "card_expired") -> tuple[int, Any]:
        headers = {} if key is None else {"idempotency-key": key}
        return self.ask("POST", "/decide", {"invoice_id": invoice, "failure_code": code}, **headers)


@pytest.fixture
def clients(pooled: TestDatabase, handler: Handler) -> tuple[Client, Client]:
    return Client(handler, TOKEN), Client(handler, OTHER_TOKEN)


def walk(client: Client, other: Client) -> None:
    """Every kind of request, as two clients."""
    status, first = client.decide("in_1", key="key-1")
    assert status == 200, first
    assert client.decide("in_1", key="key-1") == (200, first)
    assert client.decide("in_2", code="ach:R01")[0] == 200
    assert other.decide("in_1", key="key-1")[0] == 200
    assert client.ask("POST", "/decisions/in_1/outcome", {"outcome": "paid", "report_key": "r"})[0] == 201
    assert client.ask("POST", "/decisions/in_1/outcome", {"outcome": "paid", "report_key": "r"})[0] == 200
    assert client.ask("POST", "/decide", {"invoice_id": "in_1"})[0] == 422
    assert client.decide("in_3", key="key-1")[0] == 422
    status, history = client.ask("GET", "/decisions/in_1")
    assert (status, first in history, json.loads(history)["outcome"]) == (200, True, "paid")
    refusals = json.loads(client.ask("GET", "/refusals")[1])["refusals"]
    assert sorted(entry["reason"] for entry in refusals) == ["idempotency_key_reused", "missing_field"]
    assert json.loads(client.ask("GET", "/decisions/outcomes/summary")[1])["paid"] == 1
    assert json.loads(other.ask("GET", "/refusals")[1])["refusals"] == []
    assert json.loads(other.ask("GET", "/decisions/outcomes/summary")[1])["paid"] == 0
    assert other.ask("GET", "/decisions/in_2")[0] == 404


def test_every_request_is_answered_behind_a_pooler(clients: tuple[Client, Client]) -> None:
    walk(*clients)


def test_what_a_shell_holds_for_other_programs_changes_no_answer(
    database: TestDatabase, clients: tuple[Client, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Behind this pooler PGOPTIONS would refuse the login, and a German date is none that the driver reads.
    for name, value in SHELL.items():
        monkeypatch.setenv(name, value)
    walk(*clients)


def test_six_callers_on_two_server_connections_never_meet_each_others_rows(
    clients: tuple[Client, Client],
) -> None:
    together = threading.Barrier(6)

    def work(caller: int) -> list[Any]:
        client = clients[caller % 2]
        together.wait()
        answers = []
        try:
            # More than the five after which the driver would prepare a statement by a name.
            for number in range(20):
                answers.append(client.decide(f"in_{caller}_{number}", key=f"key-{caller}-{number}"))
                answers.append(client.ask("GET", f"/decisions/in_{caller}_{number}"))
                answers.append(client.ask("POST", "/decide", {"invoice_id": f"in_{caller}"}))
        finally:
            function.database.drop()
        return answers

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(work, range(6)))
    assert [[status for status, _ in caller] for caller in answers] == [[200, 200, 422] * 20] * 6
    for client in clients:
        listed = json.loads(client.ask("GET", "/refusals", query="limit=100")[1])["refusals"]
        assert len(listed) == 60


def test_statements_are_prepared_by_name_on_the_servers_own_connection_only(
    database: TestDatabase, request: pytest.FixtureRequest
) -> None:
    def prepared() -> int:
        with connect(iam_login=False) as connection:
            for number in range(10):
                decided(connection, "client-a", f"in_{number}")
            row = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
            assert row is not None
            return int(row[0])

    assert prepared() == 1
    request.getfixturevalue("pooled")
    assert prepared() == 0


def test_the_next_caller_on_a_server_connection_sees_no_earlier_transaction(
    pooled: TestDatabase,
) -> None:
    def seen(connection: Connection) -> list[Any]:
        return connection.execute("SELECT client_id FROM paypilot.decision_audit").fetchall()

    with connect(iam_login=False) as first, connect(iam_login=False) as second:
        for _ in range(8):
            decided(first, "client-a", "in_1")
            decided(second, "client-b", "in_1")
            assert seen(first) == seen(second) == []
        assert record_on(first, "client-a").query("SELECT DISTINCT client_id FROM paypilot.decision_audit") == [
            [("client-a",)]
        ]


def test_bootstrap_and_proof_work_behind_a_pooler(pooled: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", SHELL["PGOPTIONS"])
    for _ in range(2):
        assert bootstrap({"action": "bootstrap", "master_password": pooled.server.password}, None)["proved"]
