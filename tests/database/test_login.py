"""How the function logs in: a token as botocore signs it, over TLS that is verified, within the time that is left."""

import contextlib
import datetime as dt
import signal
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from botocore.credentials import Credentials
from botocore.hooks import HierarchicalEmitter
from botocore.model import ServiceId
from botocore.signers import RequestSigner, generate_db_auth_token
from hypothesis import given, settings
from hypothesis import strategies as st

from paypilot.record.database import WAIT_SECONDS_MAX, Database, PrivilegeDenied, RecordUnavailable, connect
from paypilot.record.iam_login import database_token
from scripts.local.events import Context, event
from scripts.local.host import Handler
from support.certificates import Authority
from support.slice import TOKEN, TestDatabase

Ask = Callable[[float], tuple[int, float]]

# libpq asks with it for TLS: its length, and a number that is no protocol's version.
SSL_REQUEST = struct.pack("!II", 8, 80877103)
EMITTER = HierarchicalEmitter()  # botocore itself holds it only weakly
HOST_NAME = "database.paypilot.example"
VISIBLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
CREDENTIALS = {
    "AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret-of-an-example",
    "AWS_SESSION_TOKEN": "session/of+an=example",
}


@settings(max_examples=60)
@given(
    host=st.lists(LABEL, min_size=1, max_size=4).map(".".join),
    port=st.integers(1150, 65535),  # RDS takes no lower one
    user=VISIBLE,
    region=st.sampled_from(["us-east-1", "eu-central-1", "ap-southeast-2"]),
    key_id=st.from_regex(r"[A-Z0-9]{16,24}", fullmatch=True),
    secret=VISIBLE,
    session_token=st.none() | VISIBLE,
    moment=st.integers(1_000_000_000, 9_999_999_999).map(lambda seconds: dt.datetime.fromtimestamp(seconds, dt.UTC)),
)
def test_a_login_token_is_the_one_that_botocore_signs(
    host: str, port: int, user: str, region: str, key_id: str, secret: str, session_token: str | None, moment: Any
) -> None:
    environment = {"AWS_REGION": region, "AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": secret}
    if session_token is not None:
        environment["AWS_SESSION_TOKEN"] = session_token
    credentials = Credentials(key_id, secret, session_token)
    signer = RequestSigner(ServiceId("rds"), region, "rds", "v4", credentials, EMITTER)
    client = SimpleNamespace(_request_signer=signer, meta=SimpleNamespace(region_name=region))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: moment)
        expected = generate_db_auth_token(client, host, port, user)
    token = database_token(host, str(port), user, environment, moment)
    # The signature is over the parameters in their sorted order, in whichever they are sent.
    assert (token.partition("?")[0], sorted(token.partition("?")[2].split("&"))) == (
        expected.partition("?")[0],
        sorted(expected.partition("?")[2].split("&")),
    )


@pytest.mark.parametrize("missing", ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_a_missing_credential_is_named_and_no_other_is_shown(missing: str) -> None:
    environment = {name: value for name, value in CREDENTIALS.items() if name != missing}
    with pytest.raises(KeyError) as error:
        database_token("host", "5432", "user", environment, dt.datetime.now(dt.UTC))
    assert error.value.args == (missing,)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "ours")


class TlsFront:
    """A port that speaks TLS as Postgres does, before a server whose build has none; `accepted` counts handshakes."""

    def __init__(self, certificate: Path, server_port: int) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        self.server_port, self.accepted = server_port, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, plain: socket.socket) -> None:
        with plain, contextlib.suppress(OSError):
            if plain.recv(8) != SSL_REQUEST:
                return  # a connection in the clear gets no answer
            plain.sendall(b"S")
            with (
                self.context.wrap_socket(plain, server_side=True) as client,
                socket.create_connection(("127.0.0.1", self.server_port)) as server,
            ):
                self.accepted += 1
                back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
                back.start()
                self._copy(client, server)
                back.join()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def front(database: TestDatabase, authority: Authority) -> Iterator[TlsFront]:
    front = TlsFront(authority.certify(HOST_NAME), database.server.port)
    yield front
    front.listener.close()


@pytest.fixture
def over_tls(
    database: TestDatabase, front: TlsFront, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> TestDatabase:
    """The environment of a function that logs in by IAM. In the token's place: a password the server knows."""
    password = database.service["PGPASSWORD"]
    monkeypatch.setattr("paypilot.record.database.database_token", lambda *_: password)
    monkeypatch.delenv("PGPASSWORD")
    for name, value in {
        "PGHOST": HOST_NAME,
        "PGHOSTADDR": "127.0.0.1",
        "PGPORT": str(front.port),
        "PGSSLROOTCERT": str(authority.file),
    }.items():
        monkeypatch.setenv(name, value)
    return database


def test_a_login_by_token_goes_over_verified_tls(over_tls: TestDatabase, front: TlsFront) -> None:
    with connect(iam_login=True) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert front.accepted == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PGHOST", "another.paypilot.example"),
        ("PGHOST", "127.0.0.1"),
        ("PGSSLROOTCERT", "/nowhere.pem"),
        ("PGSSLROOTCERT", "theirs"),
        ("PGSSLROOTCERT", "system"),
    ],
)
def test_a_wrong_name_or_a_wrong_authority_fails_closed(
    over_tls: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    theirs = Authority(tmp_path, "theirs")
    monkeypatch.setenv(name, str(theirs.file) if value == "theirs" else value)
    with pytest.raises(psycopg.OperationalError, match="certificate"):
        connect(iam_login=True)


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require"])
def test_a_weaker_mode_in_the_environment_weakens_no_login_by_token(
    over_tls: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("PGSSLMODE", mode)
    monkeypatch.setenv("PGSSLROOTCERT", str(Authority(tmp_path, "theirs").file))
    with pytest.raises(psycopg.OperationalError, match="certificate"):
        connect(iam_login=True)


def test_a_server_without_tls_gets_no_token(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PGSSLROOTCERT", "/nowhere.pem")
    monkeypatch.setenv("PGSSLMODE", "disable")
    with pytest.raises(psycopg.OperationalError, match=r"certificate|SSL"):
        connect(iam_login=True)


def test_verify_full_is_kept_with_a_password_as_well(over_tls: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", over_tls.service["PGPASSWORD"])
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    connect(iam_login=False).close()
    monkeypatch.setenv("PGHOST", "another.paypilot.example")
    with pytest.raises(psycopg.OperationalError, match="certificate"):
        connect(iam_login=False)


@pytest.fixture
def ask(handler: Handler) -> Ask:
    """Asks the Lambda entry point for a decision, with this much time left; gives the status and how long it took."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    asked = event("POST", "/decide", headers=headers, body=b'{"invoice_id": "in_1", "failure_code": "card_expired"}')

    def ask(seconds: float) -> tuple[int, float]:
        began = time.monotonic()
        answer = handler(asked, Context(seconds=seconds))
        return answer["statusCode"], time.monotonic() - began

    return ask


def test_the_deadline_is_what_the_function_has_left(ask: Ask, database: TestDatabase) -> None:
    assert ask(10)[0] == 200
    database.server.signal(signal.SIGSTOP)
    try:
        for seconds, longest in ((1.0, 1.0), (1.5, 1.5), (30.0, 3.0)):
            status, took = ask(seconds)
            assert status == 503
            assert took < longest
    finally:
        database.server.signal(signal.SIGCONT)
    assert ask(10)[0] == 200


def test_with_too_little_time_left_to_connect_nothing_is_tried(ask: Ask) -> None:
    status, took = ask(1.0)
    assert status == 503
    assert took < 0.5
    assert ask(10)[0] == 200


def test_a_connection_found_broken_is_replaced_and_one_in_order_is_kept(database: TestDatabase) -> None:
    connections = Database(iam_login=False)

    def deadline() -> float:
        return time.monotonic() + WAIT_SECONDS_MAX

    def process(connection: psycopg.Connection[Any]) -> int:
        return connection.info.backend_pid

    first = connections.run(process, deadline())
    assert connections.run(process, deadline()) == first
    with pytest.raises(ZeroDivisionError):
        connections.run(lambda connection: 1 / 0, deadline())
    assert connections.run(process, deadline()) == first
    with pytest.raises(PrivilegeDenied):
        connections.run(lambda connection: connection.execute("DELETE FROM paypilot.decision_audit"), deadline())
    second = connections.run(process, deadline())
    assert second != first
    with pytest.raises(RecordUnavailable):
        connections.run(lambda connection: connection.execute("SELECT pg_sleep(5)"), time.monotonic() + 0.1)
    assert connections.run(process, deadline()) not in (first, second)
    connections.drop()
