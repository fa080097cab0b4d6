"""The lines that the function writes: what a decision's says, and that it is what Powertools would have written."""

import json
import subprocess
import sys
from typing import Any

import pytest
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from paypilot.http import problems
from paypilot.http.request import Request
from paypilot.http.response import Response
from paypilot.telemetry import Telemetry

TELEMETRY = Telemetry("paypilot-test", "PayPilot")
REQUEST = Request("POST", "/decide", "", {}, "", False, "request-1")
FACTS = {"decision_id": "id-1", "rule": "card_expired", "rules_table": "matched", "written": "recorded"}


def lines(
    capsys: pytest.CaptureFixture[str], facts: dict[str, str], status: int = 200, metric: str | None = None
) -> list[dict[str, Any]]:
    TELEMETRY.log_answer(REQUEST, "POST /decide", Response(status, b"{}", facts=facts, metric=metric))
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("rules_table", "counted"), [("matched", ["Decisions"]), ("fell_through", ["Decisions", "FellThrough"])]
)
def test_a_decisions_line_holds_the_metrics_that_powertools_would_write(
    rules_table: str, counted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = EphemeralMetrics(namespace="PayPilot", service="paypilot-test")
    for name in counted:
        metrics.add_metric(name, MetricUnit.Count, 1)
    metrics.flush_metrics()
    theirs = json.loads(capsys.readouterr().out)
    (ours,) = lines(capsys, FACTS | {"rules_table": rules_table})
    assert 0 <= ours["_aws"].pop("Timestamp") - theirs["_aws"].pop("Timestamp") < 60_000
    assert theirs.items() <= ours.items()
    assert ours.keys() - theirs.keys() == {"level", "message", "request_id", "status", "route", *FACTS}


def test_a_replay_is_told_and_counts_no_decision(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, FACTS | {"written": "replayed"})
    assert (line["decision_id"], line["request_id"], line["written"]) == ("id-1", "request-1", "replayed")
    assert "_aws" not in line and "Decisions" not in line


@pytest.mark.parametrize("problem", problems.ALL)
def test_an_answer_is_logged_and_counted_by_the_metric_of_its_problem(
    problem: type[problems.Problem], capsys: pytest.CaptureFixture[str]
) -> None:
    counted = [line for line in lines(capsys, {"code": problem.code}, problem.status, problem.metric) if "_aws" in line]
    assert [line[problem.metric] for line in counted if problem.metric] == ([[1.0]] if problem.metric else [])
    assert len(counted) == (problem.metric is not None)


def test_a_log_that_cannot_be_written_keeps_no_answer_from_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("builtins.print", broken)
    monkeypatch.setattr("aws_lambda_powertools.Logger", broken)
    broken_log = Telemetry("paypilot-test", "PayPilot")
    for facts in (FACTS, {"code": "unauthorized"}):
        broken_log.log_answer(REQUEST, "POST /decide", Response(200, b"{}", facts=facts))
    broken_log.log_failure(REQUEST, ValueError(), "Unforeseen")


def test_a_failure_is_told_by_its_class_and_frames_and_never_by_its_message() -> None:
    # A process of its own: Powertools keeps the standard output that its first logger found.
    program = (
        "from paypilot.http.request import Request\n"
        "from paypilot.telemetry import Telemetry\n"
        "telemetry = Telemetry('paypilot-test', 'PayPilot')\n"
        "try: int('in_1001 and a token')\n"
        "except ValueError as error:\n"
        "    telemetry.log_failure(Request('POST', '/decide', '', {}, '', False, 'id'), error, 'Unforeseen')"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    told, counted = (json.loads(line) for line in ran.stdout.splitlines())
    assert (told["level"], told["message"], told["exception"]) == ("ERROR", "Unforeseen", "ValueError")
    assert told["frames"] == ["<string>:4 <module>"]
    assert counted["Unforeseen"] == [1.0]
    assert "in_1001" not in ran.stdout + ran.stderr
