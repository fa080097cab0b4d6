"""Host 1: an API Gateway event in, the service's answer out."""

import os
from pathlib import Path
from typing import Any

from paypilot import telemetry, wire
from paypilot.core import errors
from paypilot.database import LONGEST_WAIT_SECONDS, Database, PrivilegeDenied
from paypilot.rails import PublishedRails
from paypilot.rules import current_ruleset
from paypilot.service import Service, answer, route_name
from paypilot.settings import read_settings

# What the answer itself takes after the database has had its time.
SECONDS_TO_ANSWER = 0.5

NOT_CARRIED_OUT = "The request was not carried out. Its id tells its log line."

PACKAGE = Path(__file__).parent


def _build_commit() -> str:
    commit = PACKAGE / "COMMIT"
    return commit.read_text().strip() if commit.exists() else "unknown"


def _service() -> Service:
    settings = read_settings(os.environ)
    return Service(
        settings=settings,
        ruleset=current_ruleset(),
        rails=PublishedRails(),
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
    facts = {"route": route_name(request.method, request.path), **response.facts}
    telemetry.tell_answer(request, response._replace(facts=facts))
    return wire.write_event_response(response, request)


def _failed(request: wire.Request, problem: errors.Problem, cause: BaseException | None, metric: str) -> wire.Response:
    telemetry.tell_failure(request, cause, metric)
    return wire.problem_response(problem, request.request_id)


def _seconds_left(context: Any) -> float:
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    return LONGEST_WAIT_SECONDS if remaining is None else remaining() / 1000 - SECONDS_TO_ANSWER
