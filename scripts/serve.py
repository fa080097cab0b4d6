"""Serve the slice on this machine: an embedded Postgres, the bootstrap, and the Lambda handler behind HTTP.

Environment:
  PORT                8080; 0 takes a free one
  PAYPILOT_DATA_DIR   .local; the database's files, kept between runs
  DECISION_API_TOKEN  a token is drawn for this run unless one is given
  DATABASE_URL        a Postgres of one's own instead of the embedded one: its login must be able to create roles
"""

import argparse
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from waitress.server import create_server

from local_host import LARGEST_BODY_BYTES, wsgi_application
from local_postgres import HOST, LocalPostgres, PostgresError

DATABASE = "paypilot"
# Each thread keeps one connection, as each function instance does.
THREADS = 16


class ServeError(Exception):
    """The slice can't be served; the message says why and what to do."""


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    signal.signal(signal.SIGTERM, _stop)
    try:
        with listening_socket(os.environ.get("PORT", "8080")) as listener, database() as master:
            stdout = sys.stdout
            # The function's log lines go to standard error: standard output is for whoever types the command.
            with contextlib.redirect_stdout(sys.stderr):
                bootstrap(master)
                token = configure_token()
                from paypilot.function import handler

                server = create_server(
                    wsgi_application(handler),
                    sockets=[listener],
                    threads=THREADS,
                    max_request_body_size=LARGEST_BODY_BYTES,
                    clear_untrusted_proxy_headers=False,
                )
                with contextlib.redirect_stdout(stdout):
                    print_ready(listener.getsockname()[1], token)
                server.run()
    except (ServeError, PostgresError) as error:
        sys.exit(f"serve: {error}")
    except KeyboardInterrupt:
        pass


def listening_socket(port: str) -> socket.socket:
    """A socket on loopback, taken before anything else is started. Raises `ServeError`."""
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ServeError("PORT is a number from 0 to 65535")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, int(port)))
    except OSError as error:
        raise ServeError(
            f"port {port} can't be taken ({error.strerror}): choose another one, as in PORT=8081 make run"
        ) from error
    return listener


@contextlib.contextmanager
def database() -> Iterator[dict[str, Any]]:
    """libpq's parameters for the master user of a running database, which is stopped at the end if it is ours."""
    if url := os.environ.get("DATABASE_URL"):
        yield conninfo_to_dict(url)
        return
    server = LocalPostgres(Path(os.environ.get("PAYPILOT_DATA_DIR", ".local")))
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", (DATABASE,)).fetchall():
                connection.execute("CREATE DATABASE paypilot")
        yield conninfo_to_dict(server.conninfo(DATABASE))
    finally:
        server.stop()


def bootstrap(master: dict[str, Any]) -> None:
    """Set up the database as the bootstrap function does, and the environment as the functions find it."""
    os.environ.pop("PGPASSWORD", None)
    with psycopg.connect(**master) as connection:
        info = connection.info
        os.environ |= {"PGHOST": info.host, "PGPORT": str(info.port), "PGDATABASE": info.dbname}
        master_user = info.user
    os.environ |= {
        "PGUSER": "paypilot_service",
        "PGPASSWORD": secrets.token_urlsafe(32),
        "PAYPILOT_MASTER_USER": master_user,
        "POWERTOOLS_METRICS_NAMESPACE": "PayPilot",
        "POWERTOOLS_SERVICE_NAME": "paypilot-decision",
    }
    from paypilot_bootstrap.function import handler

    handler({"action": "bootstrap", "master_password": master.get("password", "")}, None)


def configure_token() -> str:
    """The token to show: the one that is configured, or a fresh one."""
    return os.environ.setdefault("DECISION_API_TOKEN", secrets.token_urlsafe(32))


def print_ready(port: int, token: str) -> None:
    """Tell that the slice answers, and a request to paste."""
    print(f"ready http://{HOST}:{port} token={token}\n")
    print(
        f"curl -s http://{HOST}:{port}/decide -H 'Authorization: Bearer {token}' "
        '-d \'{"invoice_id": "in_1001", "failure_code": "card_expired"}\'',
        flush=True,
    )


def _stop(signal_number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
