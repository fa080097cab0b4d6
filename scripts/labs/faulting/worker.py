"""A caller and its function in one process: asks the Lambda handler, and writes down what it asked and was answered.

Run as `python -m scripts.labs.faulting.worker LOG NAME SEED`; it goes on until its standard input closes. Environment:
  KEYS=word     what the keys that workers share begin with
  RACE=n        ask for each of n keys once, as every other racing worker does, and end
  JUMP=1        the wall clock jumps by up to ten years either way at every look at it
  KILL_AT=step  kill this process at that step of its 20th decision (see KILLS)
  PLANT=bug     break the slice in one way (see PLANTS): the invariants must notice
"""

import contextlib
import itertools
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import psycopg

from paypilot import decisions, function
from paypilot.core.decide import Decision, FailedPayment
from paypilot.record.database import Connection, Database, RecordUnavailable
from paypilot.record.rows import Record, new_id
from scripts.local import command
from scripts.local.events import Context, event

TOKENS = {"token-of-client-a": "client-a", "token-of-client-b": "client-b"}
SHARED_KEYS = 400
CODES = ("card_expired", "insufficient_funds", "generic_decline", "not-in-the-table", "ach:R01", "ach:R02")
KILLED_DECISION = 20


def question(key: str | None, invoice_id: str, number: int) -> dict[str, Any]:
    """What is asked under a key is always the same; without a key it is a new invoice each time."""
    invoice_id = f"in_{key}" if key else invoice_id
    return {"invoice_id": invoice_id, "failure_code": CODES[number % len(CODES)], "attempt": number % 4 + 1}


def post(token: str, path: str, body: str, headers: dict[str, str]) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json", **headers}
    return event("POST", path, headers=headers, body=body.encode())


class Caller:
    """Asks, and appends a line to `log` before and after each call."""

    def __init__(self, log: TextIO, name: str, handler: Callable[..., dict[str, Any]]) -> None:
        self._log = log
        self._name = name
        self._handler = handler

    def decide(self, token: str, key: str | None, number: int) -> dict[str, Any]:
        asked = question(key, f"in_{self._name}_{number}", number)
        headers = {"idempotency-key": key} if key else {}
        facts = {"kind": "decision", "client": TOKENS[token], "key": key, "invoice_id": asked["invoice_id"]}
        return self._call(facts, post(token, "/decide", json.dumps(asked), headers))

    def report(self, token: str, invoice_id: str, number: int) -> None:
        """One outcome for an invoice that was decided, and sometimes the same again."""
        key = f"report-{self._name}-{number // 2}"
        body = json.dumps({"outcome": "paid", "report_key": key})
        facts = {"kind": "outcome", "client": TOKENS[token], "key": key, "invoice_id": invoice_id}
        self._call(facts, post(token, f"/decisions/{invoice_id}/outcome", body, {}))

    def refused(self, token: str) -> None:
        facts = {"kind": "refusal", "client": TOKENS[token], "key": None, "invoice_id": None}
        self._call(facts, post(token, "/decide", "{", {}))

    def _call(self, facts: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
        self._write({**facts, "asked_at": time.monotonic()})
        started = time.monotonic()
        answer = self._handler(request, Context(time.time))  # as the runtime gives it: by the wall clock
        ended = time.monotonic()
        self._write(
            {
                **facts,
                "status": answer["statusCode"],
                "body": answer["body"],
                "replayed": "idempotent-replayed" in answer["headers"],
                "seconds": ended - started,
                "answered_at": ended,
            }
        )
        return answer

    def _write(self, line: dict[str, Any]) -> None:
        print(json.dumps({"worker": self._name, **line}), file=self._log, flush=True)


def main(log: str, name: str, seed: str) -> None:
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    keys = os.environ["KEYS"]
    if plant := os.environ.get("PLANT"):
        PLANTS[plant]()
    if step := os.environ.get("KILL_AT"):
        KILLS[step]()
    if os.environ.get("JUMP"):
        _jump(random.Random(seed))  # noqa: S311
    from paypilot.function import handler

    with Path(log).open("a") as lines, Path(os.devnull).open("w") as sink, contextlib.redirect_stdout(sink):
        caller = Caller(lines, name, handler)
        if race := os.environ.get("RACE"):
            for number, token in itertools.product(range(int(race)), TOKENS):
                caller.decide(token, f"{keys}-race-{number}", number)
            return
        _ask(caller, keys, random.Random(seed), ended)  # noqa: S311


def _ask(caller: Caller, keys: str, rng: random.Random, ended: threading.Event) -> None:
    decided: dict[str, str] = {}
    for number in itertools.count():
        if ended.is_set():
            return
        token = rng.choice(list(TOKENS))
        kind = rng.random()
        if kind < 0.5:
            shared = rng.randrange(SHARED_KEYS)
            caller.decide(token, f"{keys}-{shared}", shared)
        elif kind < 0.8 or token not in decided:
            answer = caller.decide(token, None, number)
            if answer["statusCode"] == 200:
                decided[token] = json.loads(answer["body"])["invoice_id"]
        elif kind < 0.95:
            caller.report(token, decided[token], number)
        else:
            caller.refused(token)


def _jump(rng: random.Random) -> None:
    real, real_ns = time.time, time.time_ns
    ten_years = 10 * 365 * 86400
    time.time = lambda: max(0.0, real() + rng.uniform(-ten_years, ten_years))
    time.time_ns = lambda: max(0, real_ns() + int(rng.uniform(-ten_years, ten_years) * 1e9))


def _around(owner: Any, name: str, replace: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    setattr(owner, name, replace(getattr(owner, name)))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_after(owner: Any, name: str) -> Callable[[], None]:
    calls = itertools.count(1)

    def replace(original: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            if next(calls) == KILLED_DECISION:
                _die()
            return result

        return called

    return lambda: _around(owner, name, replace)


def _kill_when_sent(milliseconds: float) -> Callable[[], None]:
    """Kill while the insert is with the server: some milliseconds after its last byte was sent."""
    calls = itertools.count(1)

    def replace(original: Callable[..., Any]) -> Callable[..., Any]:
        def called(connection: Connection, gen: Any, *arguments: Any, **named: Any) -> Any:
            if next(calls) < KILLED_DECISION:
                return original(connection, gen, *arguments, **named)
            threading.Timer(milliseconds / 1000, _die).start()
            return original(connection, gen, *arguments, **named)

        return called

    return lambda: _around(Connection, "wait", replace)


KILLS: dict[str, Callable[[], None]] = {
    "parsed": _kill_after(decisions, "read_failed_payment"),
    "decided": _kill_after(decisions, "decide"),
    "identified": _kill_after(decisions, "new_id"),
    "sending": _kill_when_sent(0),
    "sent": _kill_when_sent(0.2),
    "committing": _kill_when_sent(0.5),
    "committed": _kill_after(decisions, "record_decision"),
    "written out": _kill_after(decisions.StoredDecision, "body"),
    "logged": _kill_after(function.telemetry, "log_answer"),
    "answered": _kill_after(function, "write_event_response"),
}


def _plant_answers_without_a_row() -> None:
    def replace(original: Callable[..., Any]) -> Callable[..., Any]:
        def called(record: Any, decision_id: Any, payment: FailedPayment, decision: Decision, key: Any) -> Any:
            try:
                return original(record, decision_id, payment, decision, key)
            except RecordUnavailable:
                return decisions.StoredDecision(decision_id, payment, decision, datetime.now(UTC))

        return called

    _around(decisions, "record_decision", replace)


def _plant_answers_other_bytes() -> None:
    _around(decisions.StoredDecision, "body", lambda original: lambda row: original(row).replace(b"T", b"t", 1))


def _plant_forgets_the_key() -> None:
    _around(decisions, "record_decision", lambda original: lambda *arguments: original(*arguments[:-1], None))


def _plant_writes_twice() -> None:
    def replace(original: Callable[..., Any]) -> Callable[..., Any]:
        def called(record: Any, statement: str, values: Any) -> Any:
            if "decision_audit" not in statement:
                return original(record, statement, values)

            # Each try of the same insert writes a row of its own.
            def insert(connection: Connection) -> Any:
                return connection.execute(statement, (record._client_id, new_id(), *values[1:])).fetchone()

            return record._run(insert)

        return called

    _around(Record, "insert", replace)


def _plant_waits_for_ever() -> None:
    Connection.wait = psycopg.Connection.wait  # type: ignore[method-assign]


def _plant_keeps_a_dead_connection() -> None:
    Database.drop = lambda self: None  # type: ignore[method-assign]


def _plant_lets_an_error_through() -> None:
    def replace(original: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            try:
                return original(*arguments)
            except RecordUnavailable as error:
                raise RuntimeError("planted") from error

        return called

    _around(Database, "run", replace)


PLANTS: dict[str, Callable[[], None]] = {
    "answers without a row": _plant_answers_without_a_row,
    "answers other bytes": _plant_answers_other_bytes,
    "forgets the key": _plant_forgets_the_key,
    "writes twice": _plant_writes_twice,
    "waits for ever": _plant_waits_for_ever,
    "keeps a dead connection": _plant_keeps_a_dead_connection,
    "lets an error through": _plant_lets_an_error_through,
}


if __name__ == "__main__":
    main(*command.words(__doc__, "log", "name", "seed"))
