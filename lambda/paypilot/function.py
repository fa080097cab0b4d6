"""Host 1: an API Gateway event in, the service's answer out. The one Logger, and the metrics.

No log line holds a request's input, a token, SQL or a host name: an exception is told by its class, SQLSTATE and
frames, because its message may hold any of them.
"""

import os
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from paypilot import wire
from paypilot.core import errors
from paypilot.database import LONGEST_WAIT_SECONDS, Database, PrivilegeDenied
from paypilot.rails import load_registry
from paypilot.rules import current_ruleset
from paypilot.service import Service, answer
from paypilot.settings import read_settings

# What the answer itself takes after the database has had its time.
SECONDS_TO_ANSWER = 0.5

NOT_CARRIED_OUT = "The request was not carried out. Its id tells its log line."

METRIC_OF_CODE = {"unauthorized": "AuthRejected"} | {
    refusal.code: "Refusals" for refusal in errors.Refusal.__subclasses__()
}

PACKAGE = Path(__file__).parent

logger = Logger()


def _build_commit() -> str:
    commit = PACKAGE / "COMMIT"
    return commit.read_text().strip() if commit.exists() else "unknown"


def _service() -> Service:
    settings = read_settings(os.environ)
    return Service(
        settings=settings,
        ruleset=current_ruleset(),
        rails=load_registry(),
        database=Database(iam_login=settings.iam_login),
        commit=_build_commit(),
        openapi=(PACKAGE / "openapi.json").read_bytes(),
    )


service = _service()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """The Lambda entry point, for HTTP API events of payload format 2.0."""
    request = wire.read_event(event)
    try:
        response = answer(service, request, _seconds_left(context))
    except errors.AuditUnavailable as problem:
        response = _failed(request, problem, problem.__cause__, "AuditUnavailable")
    except errors.Problem as problem:
        response = wire.problem_response(problem, request.request_id)
    except PrivilegeDenied as error:
        response = _failed(request, errors.Internal(NOT_CARRIED_OUT), error.__cause__, "PrivilegeDenied")
    except Exception as error:
        response = _failed(request, errors.Internal(NOT_CARRIED_OUT), error, "Unforeseen")
    _observe(request, response)
    return wire.write_event_response(response, request)


def _failed(request: wire.Request, problem: errors.Problem, cause: BaseException | None, metric: str) -> wire.Response:
    logger.error(
        metric,
        request_id=request.request_id,
        exception=type(cause).__name__,
        sqlstate=getattr(cause, "sqlstate", None),
        frames=[
            f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(cause.__traceback__ if cause else None)
        ],
    )
    response = wire.problem_response(problem, request.request_id)
    return replace(response, facts={**response.facts, "metric": metric})


def _observe(request: wire.Request, response: wire.Response) -> None:
    facts = response.facts
    logger.info("answered", extra={"request_id": request.request_id, "status": response.status, **facts})
    names = [METRIC_OF_CODE[facts["code"]]] if facts.get("code") in METRIC_OF_CODE else []
    names += [facts["metric"]] if "metric" in facts else []
    if facts.get("written") == "recorded" and "rule" in facts:
        names += ["Decisions", *(["FellThrough"] if facts["rules_table"] == "fell_through" else [])]
    if names:
        metrics = EphemeralMetrics()
        for name in names:
            metrics.add_metric(name, MetricUnit.Count, 1)
        metrics.flush_metrics()


def _seconds_left(context: Any) -> float:
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    return LONGEST_WAIT_SECONDS if remaining is None else remaining() / 1000 - SECONDS_TO_ANSWER
