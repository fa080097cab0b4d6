"""What the tests run against: a real database that the bootstrap set up, and the local host as `make run` starts it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from local_postgres import LocalPostgres

ROOT = Path(__file__).parent.parent
TOKEN, OTHER_TOKEN = "token-of-client-a", "token-of-client-b"
TOKENS = '{"token-of-client-a": "client-a", "token-of-client-b": "client-b"}'


@dataclass(frozen=True)
class Host:
    """A running local host. `log` is where its standard error goes."""

    url: str
    process: subprocess.Popen[str]
    log: Path


@contextmanager
def running_host(folder: Path, **environment: str) -> Iterator[Host]:
    """The local host on a free port, with its data in `folder`."""
    log = folder.parent / f"{folder.name}.log"
    with log.open("a") as stderr:
        process = subprocess.Popen(
            [sys.executable, ROOT / "scripts" / "serve.py"],
            env={
                **os.environ,
                "PORT": "0",
                "PAYPILOT_DATA_DIR": str(folder),
                "DECISION_API_TOKEN": TOKENS,
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        ready = re.match(r"ready (http://\S+) ", line)
        assert ready, f"the host did not start: {log.read_text()}"
        yield Host(ready[1], process, log)
    finally:
        process.terminate()
        process.communicate()


@dataclass(frozen=True)
class TestDatabase:
    """A database on `server`, made by `running_postgres`. `service` are the service's libpq variables."""

    __test__ = False

    server: LocalPostgres
    name: str
    service: Mapping[str, str]

    def superuser(self) -> "psycopg.Connection[tuple[object, ...]]":
        """A superuser's connection, which sees every row."""
        return psycopg.connect(self.server.conninfo(self.name), autocommit=True)


def service_environment(server: LocalPostgres, database: str) -> dict[str, str]:
    """The libpq variables by which the service logs in to `database`."""
    return {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(server.port),
        "PGDATABASE": database,
        "PGUSER": "paypilot_service",
        "PGPASSWORD": "password-of-the-service",
        "PAYPILOT_MASTER_USER": "postgres",
    }
