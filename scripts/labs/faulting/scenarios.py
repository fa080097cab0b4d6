"""The faults: each is done to a running database under load, lasts a while, and is taken away again."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg

from scripts.labs.faulting.proxy import Mode, Proxy
from scripts.local.postgres import LocalPostgres
from scripts.local.slice import DATABASE

# Enough that each kind of call was hit.
BROKEN_CONNECTIONS = 20


class Stage(NamedTuple):
    """What a fault is done to. `seconds` is how long it lasts."""

    server: LocalPostgres
    proxy: Proxy
    rng: random.Random
    seconds: float

    def superuser(self) -> "psycopg.Connection[tuple[object, ...]]":
        """A connection past the proxy that sees every row."""
        return psycopg.connect(self.server.conninfo(DATABASE), autocommit=True)


def kill_postgres(stage: Stage) -> None:
    """Every process of the server is killed at once, and it is started again, three times."""
    for _ in range(3):
        time.sleep(stage.rng.uniform(0.2, 0.6))
        stage.server.kill()
        time.sleep(stage.seconds / 6)
        stage.server.start()


def freeze(stage: Stage) -> None:
    """Every process of the server is stopped, and goes on."""
    stage.server.signal(signal.SIGSTOP)
    time.sleep(stage.seconds * 2)
    stage.server.signal(signal.SIGCONT)


def terminate_backends(stage: Stage) -> None:
    """Every connection of the service is ended by the server, ten times."""
    with stage.superuser() as superuser:
        for _ in range(10):
            superuser.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'paypilot_service'"
            )
            time.sleep(stage.rng.uniform(0, stage.seconds / 5))


def _break_connections(mode: Mode) -> Callable[[Stage], None]:
    def fault(stage: Stage) -> None:
        enough, give_up = stage.proxy.broken + BROKEN_CONNECTIONS, time.monotonic() + stage.seconds * 10
        stage.proxy.set(mode)
        time.sleep(stage.seconds)
        while stage.proxy.broken < enough and time.monotonic() < give_up:
            time.sleep(0.1)
        stage.proxy.set("pass")

    return fault


def black_hole(stage: Stage) -> None:
    """Nothing comes through, and no connection is closed."""
    stage.proxy.set("black-hole")
    time.sleep(stage.seconds * 2)
    stage.proxy.set("pass")


def read_only(stage: Stage) -> None:
    """Transactions are read-only, as on a standby after a failover: SQLSTATE 25006."""
    with stage.superuser() as superuser:
        superuser.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        superuser.execute("SELECT pg_reload_conf()")
        time.sleep(stage.seconds)
        superuser.execute("SET default_transaction_read_only = off")
        superuser.execute("ALTER SYSTEM RESET default_transaction_read_only")
        superuser.execute("SELECT pg_reload_conf()")


def too_many_connections(stage: Stage) -> None:
    """The service's role may have no connection, and loses those that it has: SQLSTATE 53300."""
    with stage.superuser() as superuser:
        superuser.execute("ALTER ROLE paypilot_service CONNECTION LIMIT 0")
        superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'paypilot_service'")
        time.sleep(stage.seconds)
        superuser.execute("ALTER ROLE paypilot_service CONNECTION LIMIT -1")


def disk_full(stage: Stage) -> None:
    """The file system that holds the database fills up, and is emptied again."""
    ballast = stage.server.folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 65536)
    time.sleep(stage.seconds * 2)
    ballast.unlink()
    # Postgres stops itself where it can't write its log ahead.
    if stage.server.process is not None and stage.server.process.poll() is not None:
        stage.server.stop()
        stage.server.start()


def nothing(stage: Stage) -> None:
    """The control: load, and no fault."""
    time.sleep(stage.seconds)


FAULTS: dict[str, Callable[[Stage], None]] = {
    "no fault": nothing,
    "kill -9 of Postgres": kill_postgres,
    "frozen Postgres": freeze,
    "backends terminated": terminate_backends,
    "connections reset": _break_connections("reset"),
    "answers lost": _break_connections("lose-answers"),
    "black hole": black_hole,
    "read-only standby": read_only,
    "too many connections": too_many_connections,
    "disk full": disk_full,
    "clock jumps": nothing,
}
# Faults that a call must have felt, or they were not done: a new connection hides some of them.
FELT = {"frozen Postgres", "black hole", "connections reset", "read-only standby", "too many connections", "disk full"}


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int = 320) -> Iterator[Path]:
    """A file system of its own in memory. Raises `CalledProcessError` where this user may not mount one."""
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], check=True, capture_output=True
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def may_mount() -> bool:
    """Whether `small_disk` can work here."""
    return (
        os.geteuid() == 0
        and subprocess.run(
            ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True
        ).returncode
        == 0
    )
