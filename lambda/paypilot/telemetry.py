"""What the function tells of its answers: log lines, and metrics in CloudWatch's embedded metric format.

No line holds a request's input, a token, SQL or a host name: an exception is told by its class, SQLSTATE and frames,
because its message may hold any of them.

Powertools writes what is seldom, and is imported when that first happens. A decision has one line for log and metrics
together, written here: Powertools' two lines cost a third of the insert, and its import a seventh of a cold start
(docs/performance.md). A test holds that line to what Powertools would have written.
"""

import json
import os
import time
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from paypilot import wire
from paypilot.core import errors

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

NAMESPACE = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "PayPilot")
SERVICE = os.environ.get("POWERTOOLS_SERVICE_NAME", "paypilot-decision")

METRIC_OF_CODE = {"unauthorized": "AuthRejected"} | {
    refusal.code: "Refusals" for refusal in errors.Refusal.__subclasses__()
}
DECISIONS, FELL_THROUGH = ({"Name": name, "Unit": "Count"} for name in ("Decisions", "FellThrough"))
COUNTED_DECISION = {"matched": [DECISIONS], "fell_through": [DECISIONS, FELL_THROUGH]}


def tell_answer(request: wire.Request, response: wire.Response) -> None:
    """One line for the answer, and its metrics."""
    facts = response.facts
    if "decision_id" in facts:
        _write_decision(request, response)
        return
    _logger().info("answered", extra={"request_id": request.request_id, "status": response.status, **facts})
    if facts.get("code") in METRIC_OF_CODE:
        _count(METRIC_OF_CODE[facts["code"]])


def tell_failure(request: wire.Request, cause: BaseException | None, metric: str) -> None:
    """One line for what kept the request from being carried out, and the metric of that name."""
    _logger().error(
        metric,
        request_id=request.request_id,
        exception=type(cause).__name__,
        sqlstate=getattr(cause, "sqlstate", None),
        frames=[
            f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(cause.__traceback__ if cause else None)
        ],
    )
    _count(metric)


def _write_decision(request: wire.Request, response: wire.Response) -> None:
    facts = response.facts
    line = {
        **(_decision_metrics(facts["rules_table"]) if facts["written"] == "recorded" else {}),
        "service": SERVICE,
        "level": "INFO",
        "message": "answered",
        "request_id": request.request_id,
        "status": response.status,
        **facts,
    }
    print(json.dumps(line) + "\n", end="", flush=True)  # noqa: T201 - Lambda's log is standard output


def _decision_metrics(rules_table: str) -> dict[str, object]:
    """https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html"""
    names = COUNTED_DECISION[rules_table]
    described = [{"Namespace": NAMESPACE, "Dimensions": [["service"]], "Metrics": names}]
    return {
        "_aws": {"Timestamp": time.time_ns() // 1_000_000, "CloudWatchMetrics": described},
        **{metric["Name"]: [1.0] for metric in names},
    }


@cache
def _logger() -> "Logger":
    from aws_lambda_powertools import Logger

    return Logger()


def _count(metric: str) -> None:
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

    metrics = EphemeralMetrics()
    metrics.add_metric(metric, MetricUnit.Count, 1)
    metrics.flush_metrics()
