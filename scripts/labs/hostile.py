"""Send hostile input by the hundred thousand, and look for it in answers, rows and logs.

Events go to the handler and raw bytes to the local host, on a real Postgres; schemathesis reads the document, and
atheris drives the parser. None of it may be answered 5xx, be repeated to a caller, or appear in a row or a log line.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from scripts.labs.hostility import findings
from scripts.labs.hostility.findings import Finding
from scripts.labs.hostility.generate import TOKENS, Hostile
from scripts.local import command
from scripts.local.checkout import ROOT
from scripts.local.host import running_host
from scripts.local.postgres import LocalPostgres, ignore_libpq_environment
from scripts.local.slice import DATABASE, bootstrap, reach, running_database

CONTRACT = ROOT / "tests" / "contract"
PROCESSES = 2
SECONDS_FOR_AN_ANSWER = 20


def main() -> int:
    parser = command.parser(__doc__)
    parser.add_argument("--events", type=int, default=90_000, help="events to the handler")
    parser.add_argument("--requests", type=int, default=12_000, help="raw requests to the local host")
    parser.add_argument("--examples", type=int, default=100, help="schemathesis's for each operation and phase")
    parser.add_argument("--parser-runs", type=int, default=300_000, help="atheris's, where it is installed")
    parser.add_argument("--seed", default="1", help="decides what is sent")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = list(attack(Path(folder), arguments))
    for finding in found[:20]:
        print(f"FOUND {finding.what}: {finding.case}")
    print(f"{len(found)} findings")
    return 1 if found else 0


def attack(folder: Path, arguments: argparse.Namespace) -> Iterator[Finding]:
    """Every kind of hostile input in turn, and what came of it."""
    ignore_libpq_environment()
    with running_database(folder / "database") as server:
        os.environ["DECISION_API_TOKEN"] = json.dumps(TOKENS)
        with contextlib.redirect_stdout(sys.stderr):
            bootstrap(reach(server.conninfo(DATABASE)))
        yield from _events(folder, arguments)
        yield from _host(folder, server, arguments)
        with psycopg.connect(server.conninfo(DATABASE), autocommit=True) as superuser:
            yield from findings.of_rows(superuser)
            rows = superuser.execute("SELECT count(*) FROM paypilot.decision_refusals").fetchone()
            print(f"rows: {rows and rows[0]:,} refusals on record", flush=True)
        yield from findings.of_log("Postgres", (server.folder / "postgres.log").read_text(errors="replace"))
    yield from _parser(folder, arguments.parser_runs)


def _events(folder: Path, arguments: argparse.Namespace) -> Iterator[Finding]:
    each = arguments.events // PROCESSES
    logs = [folder / f"events-{number}.log" for number in range(PROCESSES)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "scripts.labs.hostility.events", f"{arguments.seed}-{log.stem}", str(each), log],
            stdout=subprocess.PIPE,
            text=True,
        )
        for log in logs
    ]
    statuses: Counter[int] = Counter()
    for process, log in zip(processes, logs, strict=True):
        output, _ = process.communicate()
        if process.returncode:
            yield Finding("a process that ended", log.read_text()[-2000:])
            continue
        came_of_it = json.loads(output)
        statuses.update({int(status): count for status, count in came_of_it["statuses"].items()})
        yield from (Finding(*finding) for finding in came_of_it["found"])
        yield from findings.of_log(log.stem, log.read_text())
    lines = sum(log.read_text().count("\n") for log in logs)
    print(f"events: {sum(statuses.values()):,} sent, {findings.counted(statuses)}; {lines:,} log lines", flush=True)


def _host(folder: Path, server: LocalPostgres, arguments: argparse.Namespace) -> Iterator[Finding]:
    log = folder / "host.log"
    with running_host(log, DATABASE_URL=server.conninfo(DATABASE)) as (address, _):
        yield from _requests(address, arguments)
        if arguments.examples:
            yield from _schemathesis(folder, address, arguments.examples)
    yield from findings.of_log("host", log.read_text(errors="replace"))


def _requests(address: str, arguments: argparse.Namespace) -> Iterator[Finding]:
    hostile = Hostile(f"{arguments.seed}-requests")
    url = urlsplit(address)
    statuses: Counter[int] = Counter()
    for _ in range(arguments.requests):
        request = hostile.request()
        answer = _exchange(url.hostname or "", url.port or 0, request)
        head, _, rest = answer.partition(b"\r\n\r\n")
        match = re.match(rb"HTTP/1\.[01] (\d{3})", head)
        length = re.search(rb"(?i)content-length: (\d+)", head)
        status = int(match[1]) if match else 0
        statuses[status] += 1
        body = rest[: int(length[1]) if length else 0].decode("utf-8", "replace")
        if status == 501 and b"transfer-encoding" in request.lower():
            continue  # RFC 9112 (6.1), on an unknown transfer coding; waitress's own answer
        # Its other 4xx aren't problem details either: waitress answers invalid HTTP before anything of ours runs.
        yield from findings.of_answer(status, body if body.startswith("{") else "", request)
    print(f"raw requests: {sum(statuses.values()):,} sent, {findings.counted(statuses)}", flush=True)


def _exchange(host: str, port: int, request: bytes) -> bytes:
    """The answer's bytes. None (0 above) to what is no whole request: the caller has no more to say then."""
    answer = b""
    connection = socket.create_connection((host, port), timeout=SECONDS_FOR_AN_ANSWER)
    with connection, contextlib.suppress(OSError):
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(65536):
            answer += part
    return answer


def _schemathesis(folder: Path, address: str, examples: int) -> Iterator[Finding]:
    ran = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "--config-file", CONTRACT / "schemathesis.toml", "run"),
            *(f"{address}/openapi.json", "--max-examples", str(examples), "--no-color"),
        ],
        env={
            **os.environ,
            "PAYPILOT_CONTRACT_TOKEN": next(iter(TOKENS)),
            "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
            "PYTHONPATH": f"{CONTRACT}:{ROOT}",
        },
        cwd=folder,
        capture_output=True,
        text=True,
    )
    said = [line.strip() for line in ran.stdout.splitlines() if "generated" in line or "No issues" in line]
    print(f"schemathesis: {'; '.join(said)}", flush=True)
    if ran.returncode:
        yield Finding("schemathesis found something", ran.stdout[-3000:])


def _parser(folder: Path, runs: int) -> Iterable[Finding]:
    if not runs or importlib.util.find_spec("atheris") is None:
        print("parser: SKIPPED, atheris is not installed (it is in requirements/bench.lock, for Linux)", flush=True)
        return
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "scripts.labs.hostility.parser"),
            *(f"-runs={runs}", f"-artifact_prefix={folder}/", "-max_len=4096"),
        ],
        capture_output=True,
        text=True,
    )
    done = re.search(r"Done (\d+) runs", ran.stderr)
    print(f"parser: {int(done[1]) if done else 0:,} runs guided by coverage", flush=True)
    if ran.returncode or not done:
        yield Finding("the parser crashed", ran.stderr[-3000:])


if __name__ == "__main__":
    sys.exit(main())
