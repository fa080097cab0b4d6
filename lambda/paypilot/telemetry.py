"""Logs and metrics for each answer, in CloudWatch's embedded metric format.

No line holds a request's input, a token, SQL or a host name: an exception is logged by its class, SQLSTATE and frames,
because its message may hold any of them. Nothing here keeps an answer from its caller.

Powertools writes what is seldom, and is imported when that first happens. A decision has one line for log and metrics
together, written here: Powertools' two lines cost a third of the insert, and its import a seventh of a cold start
(docs/performance.md). A test compares that line with what Powertools would have written.
"""

import contextlib
import json
import time
import traceback
from collections.abc import Callable
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from paypilot.http.request import Request
from paypilot.http.response import Response

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

Arguments = ParamSpec("Arguments")

DECISIONS, FELL_THROUGH = ({"Name": name, "Unit": "Count"} for name in ("Decisions", "FellThrough"))
COUNTED_DECISION = {"matched": [DECISIONS], "fell_through": [DECISIONS, FELL_THROUGH]}


def _never_raises(log: Callable[Arguments, None]) -> Callable[Arguments, None]:
    @wraps(log)
    def logged(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        with contextlib.suppress(Exception):
            log(*arguments, **named)

    return logged


class Telemetry:
    """The log of the function named `service`, and its metrics in `namespace`."""

    def __init__(self, service: str, namespace: str) -> None:
        self._service, self._namespace = service, namespace

    @_never_raises
    def log_answer(self, request: Request, route: str, response: Response) -> None:
        """One line for the answer, and its metrics."""
        if "decision_id" in response.facts:
            self._write_decision(request, route, response)
            return
        facts = {"request_id": request.request_id, "status": response.status, "route": route, **response.facts}
        self._logger.info("answered", extra=facts)
        if response.metric:
            self._count(response.metric)

    @_never_raises
    def log_failure(self, request: Request, cause: BaseException | None, metric: str) -> None:
        """One line for what kept the request from being carried out, and the metric of that name."""
        self._logger.error(
            metric,
            request_id=request.request_id,
            exception=type(cause).__name__,
            sqlstate=getattr(cause, "sqlstate", None),
            frames=[
                f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
                for frame in traceback.extract_tb(cause.__traceback__ if cause else None)
            ],
        )
        self._count(metric)

    def _write_decision(self, request: Request, route: str, response: Response) -> None:
        facts = response.facts
        line = {
            **(self._decision_metrics(facts["rules_table"]) if facts["written"] == "recorded" else {}),
            "service": self._service,
            "level": "INFO",
            "message": "answered",
            "request_id": request.request_id,
            "status": response.status,
            "route": route,
            **facts,
        }
        print(json.dumps(line) + "\n", end="", flush=True)  # noqa: T201 - Lambda's log is standard output

    def _decision_metrics(self, rules_table: str) -> dict[str, object]:
        """https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html"""
        names = COUNTED_DECISION[rules_table]
        described = [{"Namespace": self._namespace, "Dimensions": [["service"]], "Metrics": names}]
        return {
            "_aws": {"Timestamp": time.time_ns() // 1_000_000, "CloudWatchMetrics": described},
            **{metric["Name"]: [1.0] for metric in names},
        }

    @cached_property
    def _logger(self) -> "Logger":
        from aws_lambda_powertools import Logger

        return Logger(service=self._service)

    def _count(self, metric: str) -> None:
        from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

        metrics = EphemeralMetrics(namespace=self._namespace, service=self._service)
        metrics.add_metric(metric, MetricUnit.Count, 1)
        metrics.flush_metrics()
