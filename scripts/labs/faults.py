"""Break the database, the network, the clock and the function under load, and check what must hold after each fault.

Several processes ask the Lambda handler without pause, through a proxy, on a real Postgres. After each fault their
notes are compared with the database's rows: see scripts/labs/faulting/invariants.py for what must hold.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from scripts.labs.faulting import invariants, scenarios
from scripts.labs.faulting.invariants import Violation
from scripts.labs.faulting.proxy import Proxy
from scripts.labs.faulting.scenarios import FAULTS, FELT, Stage
from scripts.labs.faulting.worker import KILLS, TOKENS
from scripts.local import command
from scripts.local.postgres import LocalPostgres, ignore_libpq_environment
from scripts.local.slice import DATABASE, bootstrap, reach, running_database

RECOVERY_SECONDS = 15


class Result(NamedTuple):
    """What one fault came to. `felt` counts the calls that were not carried out."""

    fault: str
    answers: int
    felt: int
    violations: list[Violation]


class Cast(NamedTuple):
    """A database, a proxy before it, and what the workers need to find both: `folder` has their notes."""

    server: LocalPostgres
    proxy: Proxy
    folder: Path
    environment: Mapping[str, str]

    def workers(self, count: int, seed: str, **environment: str) -> "list[tuple[subprocess.Popen[str], Path]]":
        """Start workers that ask through the proxy; each with the file of its notes."""
        started = []
        for number in range(count):
            log = self.folder / f"{seed}-{number}.jsonl".replace(" ", "-")
            command = [sys.executable, "-m", "scripts.labs.faulting.worker", str(log), log.stem, f"{seed}-{number}"]
            process = subprocess.Popen(
                command,
                env={
                    **self.environment,
                    "DECISION_API_TOKEN": json.dumps(TOKENS),
                    "PGHOST": "127.0.0.1",
                    "PGPORT": str(self.proxy.port),
                    "KEYS": seed.replace(" ", "-"),
                    **environment,
                },
                stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            started.append((process, log))
        return started

    def violations(self, notes: list[Mapping[str, Any]], healed_at: float | None) -> list[Violation]:
        """What doesn't hold, by the database's rows as a superuser sees them."""
        with psycopg.connect(self.server.conninfo(DATABASE), autocommit=True) as superuser:
            return invariants.check(notes, superuser, healed_at)


@contextlib.contextmanager
def cast(folder: Path, seed: str) -> Iterator[Cast]:
    """A bootstrapped database in `folder`, behind a proxy."""
    options = ("max_connections=200", "max_wal_size=64MB", "min_wal_size=32MB")
    with running_database(folder, *options) as server, tempfile.TemporaryDirectory() as notes:
        proxy = Proxy(lambda: server.port, seed)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                bootstrap(reach(server.conninfo(DATABASE)))
            yield Cast(server, proxy, Path(notes), dict(os.environ))
        finally:
            proxy.close()


def suffer(play: Cast, fault: str, seed: str, *, workers: int, seconds: float, **environment: str) -> Result:
    """One fault under load, and what holds after it."""
    if fault == "clock jumps":
        environment["JUMP"] = "1"
    started = play.workers(workers, f"{fault}-{seed}", **environment)
    _wait_for_answers(started, since=0)
    FAULTS[fault](Stage(play.server, play.proxy, random.Random(seed), seconds))  # noqa: S311
    healed_at = time.monotonic()
    _wait_for_answers(started, since=healed_at)
    notes = _end(started)
    felt = sum(note.get("status") == 503 for note in notes)
    violations = play.violations(notes, healed_at)
    if fault in FELT and not felt:
        violations.append(Violation("the fault was done", f"no call felt {fault}"))
    return Result(fault, sum("status" in note for note in notes), felt, violations)


def kill_the_function(play: Cast, step: str, seed: str) -> Result:
    """Kill -9 of the function at one step of a decision; then another one asks for everything again."""
    (killed,) = play.workers(1, f"kill-{step}-{seed}", KILL_AT=step, KEYS=f"kill-{seed}")
    killed[0].wait(timeout=60)
    notes = _read([killed[1]])
    violations = []
    if killed[0].returncode != -9:
        violations.append(Violation("the fault was done", f"the function was not killed when {step}"))
    again = play.workers(1, f"again-{step}-{seed}", KEYS=f"kill-{seed}")
    _wait_for_answers(again, since=0)
    notes += _end(again)
    violations += play.violations(notes, None)
    unanswered = sum("asked_at" in note for note in notes) - sum("status" in note for note in notes)
    return Result(f"kill -9 of the function: {step}", sum("status" in note for note in notes), unanswered, violations)


def race(play: Cast, seed: str, *, workers: int, keys: int) -> Result:
    """Racing replays: every worker asks for every key of both clients; one row and one body each."""
    started = play.workers(workers, f"race-{seed}", RACE=str(keys))
    for process, _ in started:
        process.wait()
    notes = _read([log for _, log in started])
    violations = play.violations(notes, None)
    expected = workers * keys * len(TOKENS)
    answered = sum(note.get("status") == 200 for note in notes)
    bodies = {(note["client"], note["key"]): note["body"] for note in notes if note.get("status") == 200}
    recorded = sum(note.get("status") == 200 and not note["replayed"] for note in notes)
    if answered != expected or len(set(bodies.values())) != keys * len(TOKENS) or recorded != keys * len(TOKENS):
        case = f"{answered} of {expected} answered, {len(set(bodies.values()))} bodies, {recorded} recorded"
        violations.append(Violation(invariants.ONE_ROW, case))
    return Result(f"{workers} callers race for {keys * len(TOKENS)} keys", answered, expected - answered, violations)


def _wait_for_answers(started: "list[tuple[subprocess.Popen[str], Path]]", since: float) -> None:
    """Until every worker was answered after `since`, or for as long as a recovery may take."""
    give_up = time.monotonic() + RECOVERY_SECONDS
    waiting = [log for _, log in started]
    while waiting and time.monotonic() < give_up:
        time.sleep(0.1)
        waiting = [
            log
            for log in waiting
            if not any(note.get("status") in {200, 201} and note["answered_at"] > since for note in _newest(log))
        ]


def _newest(log: Path) -> list[Mapping[str, Any]]:
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 65536))
        return [json.loads(line) for line in file.read().splitlines(keepends=True)[1:] if line.endswith(b"\n")]


def _end(started: "list[tuple[subprocess.Popen[str], Path]]") -> list[Mapping[str, Any]]:
    for process, _ in started:
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
    return _read([log for _, log in started])


def _read(logs: list[Path]) -> list[Mapping[str, Any]]:
    lines = [line for log in logs if log.exists() for line in log.read_text().splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith("\n")]


def main() -> int:
    parser = command.parser(__doc__)
    parser.add_argument("--short", action="store_true", help="a minute instead of ten")
    parser.add_argument("--seed", default="1", help="decides what is asked and when it breaks")
    parser.add_argument("--only", nargs="+", default=[], help="faults by name: " + ", ".join([*FAULTS, "kill", "race"]))
    arguments = parser.parse_args()
    ignore_libpq_environment()
    results = list(perform(arguments.seed, short=arguments.short, only=arguments.only))
    failed = sum(bool(result.violations) for result in results)
    answers = sum(result.answers for result in results)
    print(f"{len(results)} faults, {answers} answers, {failed} faults after which an invariant did not hold")
    return 1 if failed or not results else 0


def perform(seed: str, *, short: bool, only: list[str]) -> Iterator[Result]:
    """Every fault in turn, reported as it comes."""
    rounds, workers, seconds = (1, 3, 1.5) if short else (5, 6, 4.0)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        play = stack.enter_context(cast(Path(folder, "database"), seed))
        for number in range(rounds):
            case_seed = f"{seed}-{number}"
            for fault in FAULTS:
                if only and fault not in only:
                    continue
                if fault == "disk full":
                    if scenarios.may_mount():
                        with (
                            scenarios.small_disk(Path(folder, f"disk-{number}")) as disk,
                            cast(disk / "database", seed) as small,
                        ):
                            yield _reported(suffer(small, fault, case_seed, workers=workers, seconds=seconds))
                    else:
                        print("SKIPPED disk full: this user may not mount a file system in memory", flush=True)
                    continue
                yield _reported(suffer(play, fault, case_seed, workers=workers, seconds=seconds))
            for step in KILLS if not only or "kill" in only else ():
                yield _reported(kill_the_function(play, step, case_seed))
        if not only or "race" in only:
            yield _reported(
                race(play, seed, **({"workers": 16, "keys": 25} if short else {"workers": 64, "keys": 500}))
            )


def _reported(result: Result) -> Result:
    verdict = "BROKEN" if result.violations else "held"
    print(f"{verdict:6} {result.fault}: {result.answers} answers, {result.felt} not carried out", flush=True)
    for violation in result.violations[:5]:
        print(f"       {violation.invariant}: {violation.case}")
    return result


if __name__ == "__main__":
    sys.exit(main())
