"""Serve the slice on this machine: an embedded Postgres, the bootstrap, and the Lambda handler behind HTTP.

Environment:
  PORT                8080; 0 takes a free one
  PAYPILOT_DATA_DIR   .local; the database's files, kept between runs
  DECISION_API_TOKEN  a token is drawn for this run unless one is given
  DATABASE_URL        a Postgres of one's own instead of the embedded one: its login must be able to create roles;
                      libpq's own variables do as well, where PGHOST or PGSERVICE is set
"""

import argparse
import contextlib
import hmac
import json
import logging
import os
import re
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg.pq import Conninfo
from waitress.server import create_server

from scripts.local.host import LARGEST_BODY_BYTES, wsgi_application
from scripts.local.postgres import HOST, LocalPostgres, PostgresError

DATABASE = "paypilot"
CONNECT_SECONDS = 10
# Each thread keeps one connection, as each function instance does. More requests than threads wait for one.
THREADS = 16
OPEN_SOCKETS = 500


class ServeError(Exception):
    """The slice can't be served; the message says why and what to do."""


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    # The HTTP server's own lines hold what was requested. The function's tell of every answer.
    logging.getLogger("waitress").setLevel(logging.CRITICAL)
    try:
        with listening_socket(os.environ.get("PORT", "8080")) as listener, database() as conninfo:
            stdout = sys.stdout
            # The function's log lines go to standard error: standard output is for whoever types the command.
            with contextlib.redirect_stdout(sys.stderr):
                bootstrap(conninfo)
                token = configure_token()
                from paypilot.function import handler

                server = create_server(
                    wsgi_application(handler),
                    sockets=[listener],
                    threads=THREADS,
                    max_request_body_size=LARGEST_BODY_BYTES,
                    connection_limit=OPEN_SOCKETS,
                    asyncore_use_poll=True,
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
    if not (re.fullmatch("[0-9]{1,5}", port) and int(port) < 65536):
        raise ServeError("PORT is a number from 0 to 65535")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, int(port)))
        # Before it listens, another run could bind to the same port.
        listener.listen()
    except OSError as error:
        listener.close()
        raise ServeError(
            f"port {port} can't be taken ({error.strerror}): choose another one, as in PORT=8081 make run"
        ) from error
    return listener


def data_folder() -> Path:
    """Where the database's files are. An empty setting is none: the files are never strewn over the current folder."""
    return Path(os.environ.get("PAYPILOT_DATA_DIR") or ".local")


@contextlib.contextmanager
def database() -> Iterator[str]:
    """The connection string of a running database's master user; the database is stopped at the end if it is ours."""
    if url := os.environ.get("DATABASE_URL"):
        yield url
        return
    if os.environ.get("PGHOST") or os.environ.get("PGSERVICE"):
        yield ""
        return
    server = LocalPostgres(data_folder())
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", (DATABASE,)).fetchall():
                connection.execute("CREATE DATABASE paypilot")
        yield server.conninfo(DATABASE)
    finally:
        server.stop()


def bootstrap(conninfo: str) -> None:
    """Set up the database as the bootstrap function does, and the environment as the functions find it.

    Raises `ServeError`.
    """
    try:
        with psycopg.connect(conninfo, connect_timeout=CONNECT_SECONDS) as connection:
            info = connection.info
            found, master_user, master_password = info.get_parameters(), info.user, info.password
            found |= {"host": info.host, "port": str(info.port), "dbname": info.dbname}
    except psycopg.ProgrammingError:
        # What libpq says of it may hold the password.
        raise ServeError("DATABASE_URL is not a URL like postgresql://user:password@host:5432/database") from None
    except psycopg.OperationalError as error:
        raise ServeError(f"the database can't be reached: {first_line(error)}") from error
    names = {option.keyword.decode(): option.envvar.decode() for option in Conninfo.get_defaults() if option.envvar}
    os.environ.pop("PGSERVICE", None)
    os.environ |= {names[keyword]: value for keyword, value in found.items() if keyword in names}
    os.environ |= {
        "PGUSER": "paypilot_service",
        "PGPASSWORD": service_password(master_password),
        "PAYPILOT_MASTER_USER": master_user,
        "POWERTOOLS_METRICS_NAMESPACE": "PayPilot",
        "POWERTOOLS_SERVICE_NAME": "paypilot-decision",
    }
    from paypilot_bootstrap.function import handler
    from paypilot_bootstrap.migrate import MigrationError
    from paypilot_bootstrap.prove import ProofFailed

    try:
        handler({"action": "bootstrap", "master_password": master_password}, None)
    except (MigrationError, ProofFailed) as error:
        raise ServeError(str(error)) from error
    except psycopg.Error as error:
        raise ServeError(f"the database can't be set up: {first_line(error)}") from error


def service_password(master_password: str) -> str:
    """The service's password. Every run on a server takes the same one, because a role is the whole server's."""
    if not master_password:
        return secrets.token_urlsafe(32)
    return hmac.digest(master_password.encode(), b"paypilot_service", "sha256").hex()


def first_line(error: psycopg.Error) -> str:
    """What went wrong; libpq never puts a password there."""
    return str(error).partition("\n")[0]


def configure_token() -> str | None:
    """The token to show: one that is configured in the clear, or a fresh one where none is configured.

    None where what is configured lets nobody in.
    """
    from paypilot.settings import InvalidTokens, read_tokens

    text = os.environ.setdefault("DECISION_API_TOKEN", secrets.token_urlsafe(32)).strip()
    try:
        read_tokens(text)
    except InvalidTokens as error:
        print(f"serve: {error}. Until then every route that needs a token answers 503.", file=sys.stderr)
        if text.startswith("{") and '"token_digests"' in text:
            print("serve: it looks like a .tfvars.json file: take the object inside token_digests.", file=sys.stderr)
        return None
    tokens = list(json.loads(text)) if text.startswith("{") else [text]
    return next((token for token in tokens if not token.startswith("sha256:")), "the-token-of-your-digest")


def print_ready(port: int, token: str | None) -> None:
    """Tell that the slice answers, and a request to paste, unless no token would let it in."""
    if token is None:
        print(f"ready http://{HOST}:{port} but DECISION_API_TOKEN lets nobody in", flush=True)
        return
    print(f"ready http://{HOST}:{port} token={token}\n")
    body = '{"invoice_id": "in_1001", "failure_code": "card_expired"}'
    print(
        shlex.join(["curl", "-s", f"http://{HOST}:{port}/decide", "-H", f"Authorization: Bearer {token}", "-d", body]),
        flush=True,
    )


def _stop(signal_number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
