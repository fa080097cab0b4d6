"""`make run`: what it prints, what it refuses to start on, and that nothing of it stays when it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.pq import Conninfo

from paypilot_bootstrap.migrate import ADVISORY_LOCK
from scripts.local import checkout
from scripts.local.postgres import LocalPostgres, ignore_libpq_environment
from scripts.serve import data_folder
from support.serving import Serving
from support.slice import ROOT, TOKEN, TOKENS, blank_database, running_host, until

SERVE = [sys.executable, str(ROOT / "scripts" / "serve.py")]
MAKE_RUN = ["make", "--no-print-directory", "run"]
# Every variable that libpq reads; no server or driver takes such a value.
HOSTILE_LIBPQ = dict.fromkeys(
    [*(option.envvar.decode() for option in Conninfo.get_defaults() if option.envvar), "PGDATESTYLE", "PGTZ"],
    "nonsense",
)
Start = Callable[..., Serving]


def left_running(folder: Path) -> list[int]:
    """The processes with an argument that is a path in `folder`, without their children: a forked one looks the same.

    A path in it, and not a text that contains it: another test's folder may begin with the same characters.
    """
    found: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, UnicodeDecodeError):
            continue
        if any(Path(word.rpartition("=")[2]).is_relative_to(folder.resolve()) for word in words):
            found[int(process.name)] = parent
    return [process for process, parent in found.items() if parent not in found]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the host in a folder of this test's own; ends it after the test."""
    started: list[Serving] = []

    def start(*, command: list[str] = SERVE, folder: str = "data", **environment: str) -> Serving:
        started.append(Serving(tmp_path / folder, command, os.environ, **environment))
        return started[-1]

    yield start
    for serving in started:
        if serving.process.poll() is None:
            serving.end()
        if serving.process.stdout is not None:
            serving.process.stdout.close()
    until(lambda: not left_running(tmp_path))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder that an earlier run left."""
    folder = tmp_path_factory.mktemp("made") / "data"
    with running_host(folder):
        pass
    yield folder


def test_make_run_prints_one_ready_line_and_a_request_that_decides_when_pasted(start: Start, made: Path) -> None:
    serving = start(command=MAKE_RUN, DECISION_API_TOKEN="it's-a-token", PAYPILOT_DATA_DIR=str(made))
    ready, request = serving.lines()
    assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+ token=it's-a-token", ready)
    answer = subprocess.run(["bash", "-c", request], capture_output=True, check=True, text=True).stdout
    assert json.loads(answer)["rule"] == "insufficient_funds"
    # Nothing else comes to standard output, whatever is asked.
    os.killpg(serving.process.pid, signal.SIGINT)
    rest, _ = serving.process.communicate(timeout=20)
    assert rest == ""


@pytest.mark.parametrize(
    ("command", "number"),
    [(SERVE, signal.SIGTERM), (SERVE, signal.SIGINT), (SERVE, signal.SIGHUP), (MAKE_RUN, signal.SIGINT)],
    ids=["serve.py-SIGTERM", "serve.py-SIGINT", "serve.py-SIGHUP", "make-SIGINT"],
)
def test_a_signal_as_a_terminal_sends_it_stops_everything(
    start: Start, made: Path, command: list[str], number: signal.Signals
) -> None:
    serving = start(command=command, PAYPILOT_DATA_DIR=str(made))
    url = serving.url()
    assert left_running(made)
    code = serving.end(number)
    # make tells in its own way that its recipe was interrupted.
    assert code in ({0} if command is SERVE else {0, 2, 130, -number})
    until(lambda: not left_running(made), seconds=5)
    assert "Traceback" not in serving.log.read_text()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_while_the_database_starts_leaves_nothing_running(
    start: Start, made: Path, number: signal.Signals
) -> None:
    serving = start(PAYPILOT_DATA_DIR=str(made))
    until(lambda: left_running(made))
    assert serving.end(number) == 0
    assert left_running(made) == []
    assert "Traceback" not in serving.log.read_text()


def test_a_reader_that_has_gone_ends_it_quietly_and_stops_the_database(start: Start, made: Path) -> None:
    serving = start(PAYPILOT_DATA_DIR=str(made))
    assert serving.process.stdout is not None
    serving.process.stdout.close()
    assert serving.process.wait(timeout=30) == 128 + signal.SIGPIPE
    assert left_running(made) == []
    assert [line for line in serving.log.read_text().splitlines() if not line.startswith("{")] == []


def test_a_second_signal_does_not_cut_off_what_stops_the_database(start: Start, made: Path) -> None:
    serving = start(PAYPILOT_DATA_DIR=str(made))
    serving.url()
    (postmaster,) = left_running(made)
    os.kill(postmaster, signal.SIGSTOP)  # so that it can't stop before the second signal
    serving.process.send_signal(signal.SIGINT)
    until(lambda: signal.SIGINT in pending_signals(postmaster))
    serving.process.send_signal(signal.SIGINT)
    os.kill(postmaster, signal.SIGCONT)
    assert serving.process.wait(timeout=20) == 0
    assert left_running(made) == []


def pending_signals(process: int) -> set[int]:
    """The signals that a process was sent and has not taken."""
    (mask,) = re.findall(r"^ShdPnd:\s+(\w+)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    return {number for number in range(1, 32) if int(mask, 16) >> (number - 1) & 1}


def test_rows_are_kept_from_run_to_run(start: Start, made: Path) -> None:
    serving = start(PAYPILOT_DATA_DIR=str(made))
    first = serving.decide(serving.url(), "in_kept")
    assert serving.end() == 0
    again = start(PAYPILOT_DATA_DIR=str(made))
    history = httpx.get(f"{again.url()}/decisions/in_kept", headers={"authorization": f"Bearer {TOKEN}"})
    assert history.json()["decisions"] == [first.json()]


def test_a_run_that_was_killed_is_cleared_away_by_the_next_one_which_has_its_rows(start: Start, made: Path) -> None:
    serving = start(PAYPILOT_DATA_DIR=str(made))
    first = serving.decide(serving.url(), "in_killed")
    serving.process.kill()
    serving.process.wait()
    assert left_running(made), "its database runs on"
    again = start(PAYPILOT_DATA_DIR=str(made))
    url = again.url()
    assert len(left_running(made)) == 1
    history = httpx.get(f"{url}/decisions/in_killed", headers={"authorization": f"Bearer {TOKEN}"})
    assert history.json()["decisions"] == [first.json()]
    assert again.end() == 0


def test_a_stale_process_id_that_is_somebody_elses_is_left_alone(start: Start) -> None:
    first = start()
    url = first.url()
    first.process.kill()
    first.process.wait()
    pid_file = first.folder / "postgres" / "postmaster.pid"
    postmaster = int(pid_file.read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    until(lambda: not left_running(first.folder))
    with subprocess.Popen(["sleep", "60"]) as somebody:
        pid_file.write_text(pid_file.read_text().replace(str(postmaster), str(somebody.pid)))
        again = start()
        assert again.process.stdout is not None
        again.process.stdout.readline()  # whether Postgres starts depends on who somebody is
        assert somebody.poll() is None, url
        somebody.kill()


def test_a_second_start_on_the_same_folder_is_refused_and_the_first_goes_on(start: Start, made: Path) -> None:
    first = start(PAYPILOT_DATA_DIR=str(made))
    url = first.url()
    second = start(PAYPILOT_DATA_DIR=str(made))
    assert re.fullmatch(
        r"serve: \S+ is in use by another run: stop that one, or choose another folder", second.refused()
    )
    assert first.decide(url).status_code == 200


def test_a_busy_port_is_refused_before_anything_is_started(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        serving = start(PORT=str(port))
        assert serving.refused().startswith(f"serve: port {port} can't be taken")
    assert not serving.folder.exists()


def test_a_port_is_taken_from_the_first_moment(start: Start, made: Path) -> None:
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        start(PORT=str(bound.getsockname()[1]), PAYPILOT_DATA_DIR=str(made)).url()
        # An address that was bound and isn't listened on may be shared; listened on, it is one run's.
        with pytest.raises(OSError, match="in use"):
            bound.listen()


@pytest.mark.parametrize(
    "port", ["", "http", "-1", "65536", "8080.0", "٨٠", "9" * 5000], ids=lambda port: port[:8] or "empty"
)
def test_a_port_that_is_no_port_is_refused(start: Start, port: str) -> None:
    assert start(PORT=port).refused() == "serve: PORT is a number from 0 to 65535"


def test_a_data_folder_of_another_postgres_is_refused_and_not_touched(start: Start, tmp_path: Path) -> None:
    other = tmp_path / "data" / "postgres"
    other.mkdir(parents=True)
    (other / "PG_VERSION").write_text("9.6\n")
    assert "was made by Postgres 9.6 and this is Postgres" in start().refused()
    assert [path.name for path in other.iterdir()] == ["PG_VERSION"]


def test_a_folder_that_is_no_data_folder_is_refused(start: Start, tmp_path: Path) -> None:
    (tmp_path / "data" / "postgres").mkdir(parents=True)
    assert "is not a Postgres data folder" in start().refused()


def test_an_empty_data_folder_setting_is_no_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAYPILOT_DATA_DIR", "")
    monkeypatch.chdir(tmp_path)
    assert data_folder() == Path(".local")


def test_health_tells_the_commit_of_this_checkout(start: Start, made: Path) -> None:
    url = start(PAYPILOT_DATA_DIR=str(made)).url()
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    assert httpx.get(f"{url}/health").json()["commit"].removesuffix("-dirty") == head.strip()


def test_the_commit_is_unknown_where_git_or_a_repository_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert checkout.commit() == "unknown"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checkout.commit() == "unknown"


def test_a_target_that_is_no_url_reaches_no_log_line(start: Start, made: Path) -> None:
    serving = start(folder=str(made))
    url = serving.url()
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"GET http://[CANARY]/health HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.recv(65536)
    assert httpx.get(f"{url}/health").status_code == 200
    assert "CANARY" not in serving.log.read_text()


def test_a_data_folder_that_is_a_file_is_refused(start: Start, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert "can't be used" in start().refused()


def test_a_start_that_was_cut_off_while_it_made_the_folder_is_begun_anew(start: Start, tmp_path: Path) -> None:
    half_made = tmp_path / "data" / "postgres-making"
    half_made.mkdir(parents=True)
    (half_made / "PG_VERSION").write_text("18\n")
    serving = start()
    assert serving.decide(serving.url()).status_code == 200


@pytest.fixture
def own(postgres: LocalPostgres) -> LocalPostgres:
    blank_database(postgres)
    return postgres


def url_of(server: LocalPostgres, **parts: str) -> str:
    parts = {"user": "postgres", "password": server.password, "port": str(server.port), **parts}
    return "postgresql://{user}:{password}@127.0.0.1:{port}/paypilot".format(**parts)


def test_a_database_of_ones_own_is_used_and_left_running(start: Start, own: LocalPostgres) -> None:
    serving = start(DATABASE_URL=url_of(own) + "?sslmode=disable")
    assert serving.decide(serving.url()).status_code == 200
    assert serving.end() == 0
    assert not serving.folder.exists()
    with psycopg.connect(own.conninfo("paypilot")) as connection:
        assert connection.execute("SELECT count(*) FROM paypilot.decision_audit").fetchone() == (1,)


def test_a_second_run_on_the_same_server_leaves_the_first_its_login(start: Start, own: LocalPostgres) -> None:
    first = start(DATABASE_URL=url_of(own))
    url = first.url()
    second = start(DATABASE_URL=url_of(own), folder="other")
    assert second.decide(second.url()).status_code == 200
    # The first one had no connection yet: it logs in now.
    assert first.decide(url).status_code == 200


def test_the_variables_of_libpq_are_ignored_and_the_embedded_postgres_is_used(start: Start) -> None:
    serving = start(command=MAKE_RUN, **HOSTILE_LIBPQ)
    url = serving.url()
    answer = serving.decide(url)
    assert answer.status_code == 200, answer.text
    assert left_running(serving.folder)
    history = httpx.get(f"{url}/decisions/in_1", headers={"authorization": f"Bearer {TOKEN}"})
    assert history.json()["decisions"] == [answer.json()]
    assert "DATABASE_URL" not in serving.log.read_text()


def test_no_variable_of_libpq_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in HOSTILE_LIBPQ.items():
        monkeypatch.setenv(name, value)
    ignore_libpq_environment()
    assert HOSTILE_LIBPQ.keys().isdisjoint(os.environ)


def test_a_database_of_ones_own_is_named_before_anything_in_it_is_changed(start: Start, own: LocalPostgres) -> None:
    with psycopg.connect(own.conninfo("paypilot")) as holds:
        # Whoever changes something here waits for this.
        holds.execute("SELECT pg_advisory_lock(%s)", (ADVISORY_LOCK,))
        serving = start(DATABASE_URL=url_of(own))
        until(lambda: "records each decision" in serving.log.read_text())
        said = serving.log.read_text()
        assert f"host 127.0.0.1, port {own.port}, database paypilot, login postgres." in said
        assert "makes or upgrades the schema paypilot" in said
        assert own.password not in said
        assert holds.execute("SELECT FROM pg_namespace WHERE nspname = 'paypilot'").fetchall() == []
        assert holds.execute("SELECT FROM pg_roles WHERE rolname LIKE 'paypilot%'").fetchall() == []
    assert serving.decide(serving.url()).status_code == 200


def test_a_wrong_password_is_told_and_not_shown(start: Start, own: LocalPostgres) -> None:
    said = start(DATABASE_URL=url_of(own, password="canary-of-a-password")).refused()
    assert "password authentication failed" in said
    assert "canary" not in said


def test_a_database_that_is_not_there_is_told(start: Start, own: LocalPostgres) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        said = start(DATABASE_URL=url_of(own, port=str(nobody.getsockname()[1]))).refused()
    assert said.startswith("serve: the database can't be reached")
    assert own.password not in said


@pytest.mark.parametrize("url", ["canary:secret@nowhere", "mysql://u:canary@h/d"])
def test_a_url_that_is_none_is_told_and_not_shown(start: Start, url: str) -> None:
    serving = start(DATABASE_URL=url)
    assert serving.refused().startswith("serve: DATABASE_URL is not a URL like postgresql://")
    assert "canary" not in serving.log.read_text()


def test_a_login_that_may_not_create_roles_is_told(start: Start, own: LocalPostgres) -> None:
    with psycopg.connect(own.conninfo(), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS somebody")
        connection.execute("CREATE ROLE somebody LOGIN PASSWORD 'somebody'")
        said = start(DATABASE_URL=url_of(own, user="somebody", password="somebody")).refused()
        connection.execute("DROP ROLE somebody")
    assert said.startswith("serve: the database can't be set up: permission denied")


@pytest.mark.parametrize(
    "text", ["", "two tokens", '{"canary-token": 1}', '{"token_digests": {"sha256:canary": "acme"}}']
)
def test_an_invalid_token_is_warned_of_and_lets_nobody_in(start: Start, made: Path, text: str) -> None:
    serving = start(DECISION_API_TOKEN=text, PAYPILOT_DATA_DIR=str(made))
    ready = serving.ready()
    assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+ but DECISION_API_TOKEN lets nobody in", ready)
    url = ready.split()[1]
    assert httpx.get(f"{url}/health").status_code == 200
    assert httpx.get(f"{url}/refusals", headers={"authorization": "Bearer x"}).status_code == 503
    os.killpg(serving.process.pid, signal.SIGTERM)
    assert serving.process.communicate(timeout=20)[0] == ""  # no request to paste
    said = serving.log.read_text()
    assert "every route that needs a token answers 503" in said
    assert ("take the object inside token_digests" in said) == ("token_digests" in text)
    assert "canary" not in said


def test_a_token_is_drawn_where_none_is_configured(start: Start, made: Path) -> None:
    serving = start(command=["env", "-u", "DECISION_API_TOKEN", *SERVE], PAYPILOT_DATA_DIR=str(made))
    _, url, token = serving.lines()[0].split()
    token = token.removeprefix("token=")
    assert len(token) >= 43
    answer = httpx.get(f"{url}/refusals", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == 200


@pytest.mark.parametrize(("tokens", "shown"), [(TOKENS, TOKEN), ("sha256:" + 64 * "0", "the-token-of-your-digest")])
def test_the_ready_line_shows_a_token_in_the_clear_or_says_that_there_is_none(
    start: Start, made: Path, tokens: str, shown: str
) -> None:
    assert start(DECISION_API_TOKEN=tokens, PAYPILOT_DATA_DIR=str(made)).lines()[0].endswith(f" token={shown}")
