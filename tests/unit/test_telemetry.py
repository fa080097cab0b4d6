"""The lines that the function writes: what a decision's says, and that it is what Powertools would have written."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from paypilot import telemetry, wire

REQUEST = wire.Request("POST", "/decide", "", {}, "", False, "request-1")
FACTS = {"decision_id": "id-1", "rule": "card_expired", "rules_table": "matched", "written": "recorded"}


def lines(capsys: pytest.CaptureFixture[str], facts: dict[str, str], status: int = 200) -> list[dict[str, Any]]:
    telemetry.tell_answer(REQUEST, wire.Response(status, b"{}", facts=facts))
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("rules_table", "counted"), [("matched", ["Decisions"]), ("fell_through", ["Decisions", "FellThrough"])]
)
def test_a_decisions_line_holds_the_metrics_that_powertools_would_write(
    rules_table: str, counted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = EphemeralMetrics(namespace=telemetry.NAMESPACE, service=telemetry.SERVICE)
    for name in counted:
        metrics.add_metric(name, MetricUnit.Count, 1)
    metrics.flush_metrics()
    theirs = json.loads(capsys.readouterr().out)
    (ours,) = lines(capsys, FACTS | {"rules_table": rules_table})
    assert 0 <= ours["_aws"].pop("Timestamp") - theirs["_aws"].pop("Timestamp") < 60_000
    assert theirs.items() <= ours.items()
    assert ours.keys() - theirs.keys() == {"level", "message", "request_id", "status", *FACTS}


def test_a_replay_is_told_and_counts_no_decision(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, FACTS | {"written": "replayed"})
    assert (line["decision_id"], line["request_id"], line["written"]) == ("id-1", "request-1", "replayed")
    assert "_aws" not in line and "Decisions" not in line


@pytest.mark.parametrize(("code", "metric"), [("unauthorized", "AuthRejected"), ("invalid_json", "Refusals")])
def test_a_refusal_is_told_and_counted(code: str, metric: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = next(line for line in lines(capsys, {"code": code}, 422) if "_aws" in line)
    assert line[metric] == [1.0]


def test_a_failure_is_told_by_its_class_and_frames_and_never_by_its_message() -> None:
    # A process of its own: Powertools keeps the standard output that its first logger found.
    program = (
        "from paypilot import telemetry, wire\n"
        "try: int('in_1001 and a token')\n"
        "except ValueError as error:\n"
        "    telemetry.tell_failure(wire.Request('POST', '/decide', '', {}, '', False, 'id'), error, 'Unforeseen')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(telemetry.__file__).parent.parent)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    told, counted = (json.loads(line) for line in ran.stdout.splitlines())
    assert (told["level"], told["message"], told["exception"]) == ("ERROR", "Unforeseen", "ValueError")
    assert told["frames"] == ["<string>:2 <module>"]
    assert counted["Unforeseen"] == [1.0]
    assert "in_1001" not in ran.stdout + ran.stderr
