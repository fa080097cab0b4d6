"""Serve the slice on this machine: an embedded Postgres, the bootstrap, and the Lambda handler behind HTTP.

Environment:
  PORT                8080; 0 takes a free one
  PAYPILOT_DATA_DIR   .local; the database's files, kept between runs
  DECISION_API_TOKEN  the token to accept; one is generated for this run unless it is set
  DATABASE_URL        your own Postgres instead of the embedded one; its login must be able to create roles
  PG*                 libpq's own variables (PGHOST, PGSERVICE, ...) are ignored
"""

import contextlib
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

from scripts.local import command
from scripts.local.example import FAILED_PAYMENT
from scripts.local.host import http_server
from scripts.local.postgres import HOST, STOP_SIGNALS, PostgresError, ignore_libpq_environment
from scripts.local.slice import DATABASE, SliceError, Target, bootstrap, local_handler, reach, running_database

ON_ONES_OWN_DATABASE = """\
serve: It makes or upgrades the schema paypilot there, makes the server's roles paypilot_* and sets the password of
serve: paypilot_service, takes from PUBLIC its rights on this database, on creating in the schema public and, for a
serve: superuser, on large objects, and records each decision. It drops nothing and leaves all of it there."""


class ServeError(Exception):
    """The slice can't be served; the message says why and what to do."""


def main() -> None:
    command.parser(__doc__).parse_args()
    for number in STOP_SIGNALS:
        signal.signal(number, _stop)
    ignore_libpq_environment()
    # The HTTP server's own lines repeat the request. The function logs every answer.
    logging.getLogger("waitress").setLevel(logging.CRITICAL)
    try:
        with listening_socket(os.environ.get("PORT", "8080")) as listener, database() as target:
            stdout = sys.stdout
            # The function's log lines go to standard error: standard output is for whoever types the command.
            with contextlib.redirect_stdout(sys.stderr):
                bootstrap(target)
                token = configure_token()
                server = http_server(local_handler(), listener)
                with contextlib.redirect_stdout(stdout):
                    print_ready(listener.getsockname()[1], token)
                server.run()
    except (ServeError, SliceError, PostgresError) as error:
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
    """The folder of the database's files. An empty setting counts as none, and never as the current folder."""
    return Path(os.environ.get("PAYPILOT_DATA_DIR") or ".local")


@contextlib.contextmanager
def database() -> Iterator[Target]:
    """A running database to set up: that of DATABASE_URL, after printing which, or the embedded one."""
    if url := os.environ.get("DATABASE_URL"):
        target = reach(url)
        print(
            f"serve: DATABASE_URL is host {target.host}, port {target.port}, database {target.database}, "
            f"login {target.user}.\n{ON_ONES_OWN_DATABASE}",
            file=sys.stderr,
            flush=True,
        )
        yield target
        return
    with running_database(data_folder()) as server:
        yield reach(server.conninfo(DATABASE))


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
    """Print that the slice answers, and a request to paste, unless no token would let it in."""
    if token is None:
        print(f"ready http://{HOST}:{port} but DECISION_API_TOKEN lets nobody in", flush=True)
        return
    print(f"ready http://{HOST}:{port} token={token}\n")
    body = json.dumps(FAILED_PAYMENT)
    print(
        shlex.join(["curl", "-s", f"http://{HOST}:{port}/decide", "-H", f"Authorization: Bearer {token}", "-d", body]),
        flush=True,
    )


def _stop(signal_number: int, frame: object) -> None:
    # Once: a second signal must not cut off what stops the database.
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    raise KeyboardInterrupt


if __name__ == "__main__":
    with command.reader_may_leave():
        main()
