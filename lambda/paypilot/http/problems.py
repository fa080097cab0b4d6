"""What the service answers instead of what was asked, as RFC 9457 problem details.

Problem                         never raised itself
├── NotFound                    404  not_found
├── MethodNotAllowed            405  method_not_allowed
├── AuthNotConfigured           503  auth_not_configured
├── Unauthorized                401  unauthorized
├── InvalidQuery                422  invalid_query
├── AuditUnavailable            503  audit_unavailable       the one worth retrying
├── Internal                    500  internal
└── Refusal                     never raised itself; leaves a row in decision_refusals
    ├── IdempotencyKeyInvalid   422  idempotency_key_invalid
    ├── IdempotencyKeyReused    422  idempotency_key_reused
    ├── ReportKeyReused         409  report_key_reused
    ├── BodyTooLarge            413  body_too_large
    ├── InvalidJson             422  invalid_json
    ├── NotAnObject             422  not_an_object
    ├── DuplicateField          422  duplicate_field
    ├── UnknownField            422  unknown_field
    ├── ClientIdInBody          422  client_id_in_body
    ├── MissingField            422  missing_field
    ├── InvalidType             422  invalid_type
    ├── InvalidValue            422  invalid_value
    ├── NotARailCode            422  not_a_rail_code
    └── RailRefused             422  rail_refused
"""

from collections.abc import Mapping
from typing import ClassVar

from paypilot.http.response import NO_HEADERS, Response, json_body

PROBLEM_JSON = "application/problem+json"


class Problem(Exception):
    """An answer that is not the one asked for. `code`, `status`, `title`, `headers` and `metric` are the class's.

    `detail` says what is allowed and never repeats what was sent. `members` are the body's further members (`field`
    names a field or query parameter); one that is None is left out.
    """

    code: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    metric: ClassVar[str | None] = None
    headers: Mapping[str, str] = NO_HEADERS

    def __init__(self, detail: str, **members: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.members = members


class NotFound(Problem):
    code, status, title = "not_found", 404, "Not found"


class MethodNotAllowed(Problem):
    """`allowed` is the value of the `Allow` header."""

    code, status, title = "method_not_allowed", 405, "Method not allowed"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"Allowed methods: {allowed}.")
        self.headers = {"allow": allowed}


class AuthNotConfigured(Problem):
    code, status, title = "auth_not_configured", 503, "Authentication is not configured"


class Unauthorized(Problem):
    code, status, title = "unauthorized", 401, "Unauthorized"
    metric = "AuthRejected"
    headers: Mapping[str, str] = {"www-authenticate": "Bearer"}


class InvalidQuery(Problem):
    code, status, title = "invalid_query", 422, "Invalid query parameter"


class AuditUnavailable(Problem):
    code, status, title = "audit_unavailable", 503, "The record cannot be reached"
    headers: Mapping[str, str] = {"retry-after": "5"}


class Internal(Problem):
    code, status, title = "internal", 500, "Internal error"


class Refusal(Problem):
    """A 4xx that is recorded. `gate` is where it was refused; the member `refusal_id` is its row."""

    gate: ClassVar[str] = "body"
    metric = "Refusals"


class IdempotencyKeyInvalid(Refusal):
    code, status, title = "idempotency_key_invalid", 422, "Invalid Idempotency-Key"
    gate = "idempotency_key"


class IdempotencyKeyReused(Refusal):
    code, status, title = "idempotency_key_reused", 422, "Idempotency-Key reused with another request"
    gate = "idempotency_key"


class ReportKeyReused(Refusal):
    code, status, title = "report_key_reused", 409, "Report key reused with another report"
    gate = "report_key"


class BodyTooLarge(Refusal):
    code, status, title = "body_too_large", 413, "Body too large"


class InvalidJson(Refusal):
    code, status, title = "invalid_json", 422, "Invalid JSON"


class NotAnObject(Refusal):
    code, status, title = "not_an_object", 422, "Not a JSON object"


class DuplicateField(Refusal):
    code, status, title = "duplicate_field", 422, "Duplicate field"


class UnknownField(Refusal):
    code, status, title = "unknown_field", 422, "Unknown field"


class ClientIdInBody(Refusal):
    code, status, title = "client_id_in_body", 422, "The client is known by its token"


class MissingField(Refusal):
    code, status, title = "missing_field", 422, "Missing field"


class InvalidType(Refusal):
    code, status, title = "invalid_type", 422, "Invalid type"


class InvalidValue(Refusal):
    code, status, title = "invalid_value", 422, "Invalid value"


class NotARailCode(Refusal):
    """The rail is known and the code isn't one of its form: refused, so that a typing error can't fall through."""

    code, status, title = "not_a_rail_code", 422, "Not a code of this rail"
    gate = "rules_table"


class RailRefused(Refusal):
    """The rail is registered and answers nothing. The member `refusal` is what its table publishes about that."""

    code, status, title = "rail_refused", 422, "This rail refuses every lookup"
    gate = "rules_table"


ALL: tuple[type[Problem], ...] = (
    *(NotFound, MethodNotAllowed, AuthNotConfigured, Unauthorized, InvalidQuery, AuditUnavailable, Internal),
    *(IdempotencyKeyInvalid, IdempotencyKeyReused, ReportKeyReused, BodyTooLarge, InvalidJson, NotAnObject),
    *(DuplicateField, UnknownField, ClientIdInBody, MissingField, InvalidType, InvalidValue, NotARailCode, RailRefused),
)


def problem_response(problem: Problem) -> Response:
    """`problem` as RFC 9457 problem details."""
    body = {
        "type": f"urn:paypilot:problem:{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
        **{name: value for name, value in problem.members.items() if value is not None},
    }
    facts = {"code": problem.code}
    return Response(problem.status, json_body(body), PROBLEM_JSON, problem.headers, facts, problem.metric)
