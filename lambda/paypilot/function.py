"""The Lambda entry point: an API Gateway event in, an answer out."""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from paypilot.call import Access, Call, Published
from paypilot.http.auth import authenticate
from paypilot.http.problems import AuditUnavailable, Internal, Problem, Refusal, problem_response
from paypilot.http.request import read_event
from paypilot.http.response import Response, write_event_response
from paypilot.record.database import WAIT_SECONDS_MAX, Database, PrivilegeDenied, RecordUnavailable
from paypilot.record.rows import Record
from paypilot.refusals import record_refusal
from paypilot.routes import match_route
from paypilot.settings import read_settings
from paypilot.tables import published_tables
from paypilot.telemetry import Telemetry

# What the answer itself takes after the database has had its time.
SECONDS_TO_ANSWER = 0.5

TRY_AGAIN = (
    "The record cannot be written or read now, so there is no answer. Try again: with the same Idempotency-Key or "
    "report_key nothing is done twice."
)
NOT_CARRIED_OUT = "The request failed. Quote request_id to find it in the logs."

PACKAGE = Path(__file__).parent


def _published() -> Published:
    commit = PACKAGE / "COMMIT"
    published = Published(
        tables=published_tables(),
        commit=commit.read_text().strip() if commit.exists() else "unknown",
        openapi=(PACKAGE / "openapi.json").read_bytes(),
    )
    # No function starts without a table that decides.
    _ = published.tables.card
    return published


settings = read_settings(os.environ)
telemetry = Telemetry(settings.service, settings.metrics_namespace)
published = _published()
database = Database(iam_login=settings.iam_login)


def handler(event: Any, context: Any) -> dict[str, Any]:
    """Answer an HTTP API event of payload format 2.0."""
    request = read_event(event)
    route_name = "none"
    try:
        route, parameters = match_route(request.method, request.path)
        route_name = route.name
        deadline = time.monotonic() + min(_seconds_left(context), WAIT_SECONDS_MAX)
        response = answer(Call(route, request, parameters, published, Record(_no_client, "")), deadline)
    except Problem as problem:
        response = problem_response(problem)
    except RecordUnavailable as error:
        telemetry.log_failure(request, error.__cause__, "AuditUnavailable")
        response = problem_response(AuditUnavailable(TRY_AGAIN))
    except Exception as error:
        denied = isinstance(error, PrivilegeDenied)
        cause, metric = (error.__cause__, "PrivilegeDenied") if denied else (error, "Unforeseen")
        telemetry.log_failure(request, cause, metric)
        response = problem_response(Internal(NOT_CARRIED_OUT, request_id=request.request_id))
    telemetry.log_answer(request, route_name, response)
    return write_event_response(response, request)


def answer(call: Call, deadline: float) -> Response:
    """The answer at a route, after the route's own access check. Raises a `Problem`.

    `deadline` is in seconds of `time.monotonic`. What a client's request is refused for is recorded.
    """
    if call.route.access is Access.PUBLIC:
        return call.route.handler(call)
    client_id = authenticate(settings.clients, call.request)
    call = call._replace(record=Record(partial(database.run, deadline=deadline), client_id))
    try:
        return call.route.handler(call)
    except Refusal as refusal:
        record_refusal(call.record, call.route.name, refusal)
        raise


def _no_client(work: object) -> NoReturn:
    raise LookupError("a public route has no client, and so no record")


def _seconds_left(context: Any) -> float:
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    return WAIT_SECONDS_MAX if remaining is None else remaining() / 1000 - SECONDS_TO_ANSWER
