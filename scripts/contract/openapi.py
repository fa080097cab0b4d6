"""Write lambda/paypilot/openapi.json from scripts/contract/models.py and the table of operations below.

A new route is one more row of OPERATIONS. tests/unit/test_openapi.py compares the document with the service's routes
and problem classes, and schemathesis the running server with the document.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from paypilot import __version__
from paypilot.core.rail_table import PERSON_RULE
from paypilot.http import problems as errors
from paypilot.rails import CACHE_SECONDS
from paypilot.tables import published_tables
from scripts.contract import models
from scripts.contract import rails as rail_models
from scripts.contract.wire import Wire
from scripts.local import command

DOCUMENT = Path(__file__).parents[2] / "lambda" / "paypilot" / "openapi.json"
WIDTH = 120

Schema = dict[str, Any]
ProblemClass = type[errors.Problem]

DESCRIPTION = """\
What to do after a failed subscription payment, decided by a published table and put on record before it is answered.

**The table answers one question: the same payment instrument, later.** A table for another processor, right now, reads
differently.

**Order.** The first failure answers: route, method, token configuration, token, query, `Idempotency-Key`, body size,
body, fields in the order of their schema, then fields that the schema doesn't list, in the order sent. Then whether a
`failure_code` that names a rail is a code of it, and last whether a key is used and whether a path's invoice is known.

**Routes.** A path that is no route is 404 `not_found`; a route with another method is 405 `method_not_allowed` with
`Allow`. `HEAD` works where `GET` does. A trailing slash is another path. Only the listings read their query: there a
parameter that is not known, or is given twice, is 422. Slashes in an invoice id may stand as they are or as `%2F`.

**Bodies.** One JSON object in UTF-8, at most 16 KiB, without a BOM; `Content-Type` is not checked. A field given twice,
at any depth, is refused. Field names and strings are compared after JSON's own escapes are undone, and `-0` is 0.

**Refusals.** A request that is refused for its body, its `Idempotency-Key` or its `report_key` leaves one row, whose id
is the answer's `refusal_id`. 401, 404, 405 and `invalid_query` leave none.

**Rails.** A failed bank debit is asked for as `<rail>:<code>`, such as `ach:R01`: that rail's table decides, and `rail`
says what it holds of the code. `GET /rails` and what is below it show the tables to anyone, without the record, and are
the only answers that may be kept: ask again by `If-None-Match`. A refusal there leaves no row.

**Errors** are problem details (RFC 9457). An answer of API Gateway's own (429, 5xx) is `{"message": ...}` instead and
carries none of these headers: nothing can be concluded from it, except that a retry with the same key is safe.
"""

DECIDE_DESCRIPTION = """\
With an `Idempotency-Key`, the same four values (defaults counted) answer the first decision again, byte for byte,
whatever table is current by then, and write nothing. A refused request doesn't use its key up. Keys belong to a client
and don't expire. Without the header each call is a new decision.
"""

HISTORY_DESCRIPTION = """\
The id is everything after `/decisions/`, so that `GET /decisions/a/outcome` asks for the invoice `a/outcome`;
`/decisions/outcomes/summary` is always the summary. An id outside the pattern is 404, as is an invoice that only other
clients know: the same body.
"""

OUTCOME_DESCRIPTION = """\
A bank's late truth is a new report under a new `report_key`: the newest report is the invoice's outcome, and earlier
ones stay on record. A `report_key` that this client used for another report is 409 even where the path's invoice is not
known.
"""

SUMMARY_DESCRIPTION = "Counts are exact as of the last commit. A rate over fewer than 30 reported invoices is withheld."

REFUSALS_DESCRIPTION = "Fall-throughs are decisions that the table's default answered: listed, not refused."

DECISION = {
    "decision_id": "019ad3c0-8f0e-7cc2-b9a5-0c3f5d9e2a11",
    "invoice_id": "in_1001",
    "failure_code": "card_expired",
    "attempt": 1,
    "prior_failures": 0,
    "rule": "card_expired",
    "action": "request_card_update",
    "tone": "friendly_routine",
    "retry": True,
    "retry_in_days": 1,
    "next_retry_at": "2026-12-01T09:00:00.123456Z",
    "churn_risk": "low",
    "escalated": False,
    "gates_checked": [
        {"gate": "authentication", "result": "passed"},
        {"gate": "body", "result": "passed"},
        {"gate": "rules_table", "result": "matched"},
        {"gate": "audit", "result": "recorded"},
    ],
    "rules_version": published_tables().card.version,
    "decided_at": "2026-11-30T09:00:00.123456Z",
}
OUTCOME = {
    "outcome_id": "019ad3c1-2b4f-7a31-8c55-7f0e6d1b9c20",
    "invoice_id": "in_1001",
    "outcome": "paid",
    "report_key": "report-1",
    "reported_at": "2026-12-01T10:15:00.654321Z",
}
COUNTS = {"invoices": 40, "paid": 24, "not_paid": 8, "unknown": 8}
SUMMARY = {
    **COUNTS,
    "recovery_rate": 0.75,
    "recovery_rate_withheld": None,
    "by_rule": [{"rule": "card_expired", **COUNTS}],
}
REFUSAL = {
    "id": "019ad3c1-77aa-7d02-a1f0-3b9c2e5d8f44",
    "kind": "refusal",
    "route": "POST /decide",
    "gate": "body",
    "reason": "missing_field",
    "at": "2026-11-30T09:01:00.000001Z",
}


@dataclass(frozen=True)
class Answer:
    """A success: `model` None is a JSON object of no model of ours; `headers` are names of HEADERS.

    `links` are the operations that can be asked next about the invoice in the body. With `no_body` there is none.
    """

    description: str
    model: type[Wire] | None
    example: Mapping[str, Any] | None
    headers: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    no_body: bool = False


@dataclass(frozen=True)
class Operation:
    """One route, as paypilot.service names it. `problems` are what it may answer beside those of every such route."""

    route: str
    name: str
    summary: str
    answers: Mapping[int, Answer]
    description: str = ""
    parameters: tuple[str, ...] = ()
    body: type[Wire] | None = None
    body_example: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[ProblemClass, ...] = ()
    public: bool = False

    def problems_by_status(self) -> dict[int, list[ProblemClass]]:
        """All its problem classes."""
        found: set[ProblemClass] = {errors.Internal, *self.problems}
        if not self.public:
            found |= {errors.AuthNotConfigured, errors.Unauthorized, errors.AuditUnavailable}
        if self.body:
            found |= BODY_PROBLEMS
        by_status: dict[int, list[ProblemClass]] = {}
        for problem in sorted(found, key=lambda problem: (problem.status, problem.code)):
            by_status.setdefault(problem.status, []).append(problem)
        return by_status


BODY_PROBLEMS: set[ProblemClass] = {
    errors.BodyTooLarge,
    errors.InvalidJson,
    errors.NotAnObject,
    errors.DuplicateField,
    errors.UnknownField,
    errors.ClientIdInBody,
    errors.MissingField,
    errors.InvalidType,
    errors.InvalidValue,
}
# What no operation lists, because a client that keeps to this document never meets them.
OFF_THE_MAP: tuple[ProblemClass, ...] = (errors.NotFound, errors.MethodNotAllowed)

TABLES = published_tables()
ACH = next(rail for rail in TABLES.rails if rail.name == "ach")
RAIL = {
    "rail": "ach",
    "name": "ACH",
    "scope": ACH.document["scope"],
    "published": ACH.document["published"],
    "version": ACH.version,
    "codes": len(ACH.document["codes"]),
    "refuses": False,
}
CODE_DESCRIPTION = """\
A code that the rail doesn't list falls through: `matched` is false, and it never goes again. What is no code of the
rail is 422 `not_a_rail_code`; a rail that is registered and answers nothing is 422 `rail_refused` and says why.
"""
KEPT = ("etag", "public-cache-control")


def kept(answer: Answer) -> Mapping[int, Answer]:
    """An answer that a cache may keep and ask for again."""
    return {200: answer, 304: Answer("As the ETag that was sent.", None, None, KEPT, no_body=True)}


OPERATIONS = (
    Operation(
        "GET /health",
        "health",
        "Whether the function runs, and which build",
        {200: Answer("It runs.", models.Health, {"status": "ok", "version": __version__, "commit": "unknown"})},
        public=True,
    ),
    Operation(
        "GET /openapi.json",
        "document",
        "This document",
        {200: Answer("This document.", None, None)},
        public=True,
    ),
    Operation(
        "POST /decide",
        "decide",
        "Decide what happens next with the same payment instrument",
        {
            200: Answer(
                "The decision, on record.",
                models.Decision,
                DECISION,
                headers=("repr-digest", "idempotent-replayed"),
                links=("history", "report"),
            )
        },
        description=DECIDE_DESCRIPTION,
        parameters=("Idempotency-Key",),
        body=models.DecideRequest,
        body_example={"invoice_id": "in_1001", "failure_code": "card_expired", "attempt": 1, "prior_failures": 0},
        problems=(
            errors.IdempotencyKeyInvalid,
            errors.IdempotencyKeyReused,
            errors.NotARailCode,
            errors.RailRefused,
        ),
    ),
    Operation(
        "GET /decisions/{invoice_id}",
        "history",
        "What was decided for an invoice",
        {
            200: Answer(
                "A page of its decisions.",
                models.History,
                {"invoice_id": "in_1001", "outcome": "paid", "decisions": [DECISION], "next": None},
            )
        },
        description=HISTORY_DESCRIPTION,
        parameters=("invoice_id", "limit", "cursor"),
        problems=(errors.NotFound, errors.InvalidQuery),
    ),
    Operation(
        "POST /decisions/{invoice_id}/outcome",
        "report",
        "Report what became of an invoice",
        {
            201: Answer("Recorded.", models.Outcome, OUTCOME, headers=("repr-digest",), links=("history",)),
            200: Answer(
                "Recorded before, under the same key.",
                models.Outcome,
                OUTCOME,
                headers=("repr-digest", "idempotent-replayed"),
            ),
        },
        description=OUTCOME_DESCRIPTION,
        parameters=("invoice_id",),
        body=models.OutcomeReport,
        body_example={"outcome": "paid", "report_key": "report-1"},
        problems=(errors.NotFound, errors.ReportKeyReused),
    ),
    Operation(
        "GET /decisions/outcomes/summary",
        "summary",
        "What became of all invoices, by rule",
        {200: Answer("This client's counts.", models.Summary, SUMMARY)},
        description=SUMMARY_DESCRIPTION,
    ),
    Operation(
        "GET /refusals",
        "refusals",
        "What was refused, and what fell through the table",
        {200: Answer("A page of them.", models.Refusals, {"refusals": [REFUSAL], "next": None})},
        description=REFUSALS_DESCRIPTION,
        parameters=("limit", "cursor", "kind"),
        problems=(errors.InvalidQuery,),
    ),
    Operation(
        "GET /rails",
        "rails",
        "The rails, each with its version",
        kept(
            Answer("All of them.", rail_models.Rails, {"rails": [RAIL], "person_rule": PERSON_RULE}, KEPT),
        ),
        parameters=("If-None-Match",),
        public=True,
    ),
    Operation(
        "GET /rails/{rail}",
        "rail",
        "A rail's published table",
        kept(Answer("Its canonical bytes, which the ETag is the digest of.", rail_models.RailTable, None, KEPT)),
        parameters=("rail", "If-None-Match"),
        problems=(errors.NotFound,),
        public=True,
    ),
    Operation(
        "GET /rails/{rail}/codes/{code}",
        "return_code",
        "What may happen next to a debit that came back with this code",
        kept(Answer("The table's answer.", rail_models.RailAnswer, ACH.answer("R11"), KEPT)),
        description=CODE_DESCRIPTION,
        parameters=("rail", "code", "If-None-Match"),
        problems=(errors.NotFound, errors.NotARailCode, errors.RailRefused),
        public=True,
    ),
)

TEXT: Schema = {"type": "string"}
PARAMETERS: Mapping[str, Schema] = {
    "invoice_id": {
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": models.INVOICE_ID, "maxLength": 255},
        "example": "in_1001",
    },
    "limit": {
        "in": "query",
        "description": "Entries of a page: one to three ASCII digits.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
    },
    "cursor": {
        "in": "query",
        "description": "The `next` of the same listing's page before. Opaque; any other text is 422, and so is the "
        "cursor of another invoice, client or kind. Whether it is one of the invoice's is asked after the invoice.",
        "schema": {"type": "string", "pattern": models.CURSOR},
    },
    "rail": {"in": "path", "required": True, "schema": {"enum": TABLES.rail_names}, "example": "ach"},
    "code": {
        "in": "path",
        "required": True,
        "description": "Of ACH `R` and two digits, of SEPA four upper-case letters or digits.",
        "schema": {"type": "string", "pattern": "^[^/]+$"},
        "example": "R11",
    },
    "If-None-Match": {"in": "header", "description": "ETags that the caller has, or `*`.", "schema": TEXT},
    "kind": {"in": "query", "schema": {"enum": ["refusal", "fell_through"]}},
    "Idempotency-Key": {
        "in": "header",
        "description": "1-255 printable ASCII characters without a comma; else 422, and so is a key with other values "
        "than its first. "
        "Send one such header: two arrive as one with a comma, which is refused.",
        "schema": {"type": "string", "pattern": models.HEADER_KEY},
        "example": "attempt-1-of-in_1001",
    },
}

EVERY_ANSWER = ("cache-control", "x-content-type-options", "x-request-id")
HEADERS: Mapping[str, Schema] = {
    "cache-control": {"required": True, "schema": {"const": "no-store"}},
    "x-content-type-options": {"required": True, "schema": {"const": "nosniff"}},
    "x-request-id": {"required": True, "description": "API Gateway's id, or the host's.", "schema": TEXT},
    "public-cache-control": {"required": True, "schema": {"const": f"public, max-age={CACHE_SECONDS}"}},
    "etag": {
        "required": True,
        "description": "The digest of the table that answers, quoted.",
        "schema": {"type": "string", "pattern": '^"sha256:[0-9a-f]{64}"$'},
    },
    "repr-digest": {
        "required": True,
        "description": "SHA-256 of the body (RFC 9530).",
        "schema": {"type": "string", "pattern": "^sha-256=:[A-Za-z0-9+/]{43}=:$"},
    },
    "idempotent-replayed": {"description": "There when nothing was written.", "schema": {"const": "true"}},
    "www-authenticate": {"required": True, "schema": {"const": "Bearer"}},
    "allow": {"required": True, "description": "The methods of this path.", "schema": TEXT},
    "retry-after": {"description": "Seconds, with `audit_unavailable`.", "schema": {"type": "string"}},
}
HEADER_OF_STATUS = {401: "www-authenticate", 405: "allow", 503: "retry-after"}


class PlainSchema(GenerateJsonSchema):
    """No title that only repeats a name."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Never."""
        return False


def document() -> Schema:
    """The OpenAPI 3.1 document."""
    paths: Schema = {}
    for operation in OPERATIONS:
        method, path = operation.route.split(" ")
        paths.setdefault(path, {})[method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "PayPilot decision slice", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "parameters": {name: {"name": name, **parameter} for name, parameter in PARAMETERS.items()},
            "headers": HEADERS,
            "responses": _problem_responses(),
            "schemas": _schemas(),
        },
    }


def _operation(operation: Operation) -> Schema:
    described: Schema = {"operationId": operation.name, "summary": operation.summary}
    if operation.description:
        described["description"] = operation.description
    if not operation.public:
        described["security"] = [{"bearer": []}]
    if operation.parameters:
        described["parameters"] = [_ref("parameters", name) for name in operation.parameters]
    if operation.body:
        content = {"schema": _ref("schemas", operation.body.__name__), "example": operation.body_example}
        described["requestBody"] = {"required": True, "content": {"application/json": content}}
    described["responses"] = {str(status): _answer(answer) for status, answer in operation.answers.items()}
    for status, problems in operation.problems_by_status().items():
        described["responses"][str(status)] = _ref("responses", _response_name(operation, problems))
    return described


def _answer(answer: Answer) -> Schema:
    content: Schema = {"schema": _ref("schemas", answer.model.__name__) if answer.model else {"type": "object"}}
    if answer.example:
        content["example"] = answer.example
    described: Schema = {"description": answer.description, "headers": _headers(answer.headers)}
    if not answer.no_body:
        described["content"] = {"application/json": content}
    if answer.links:
        invoice = {"invoice_id": "$response.body#/invoice_id"}
        described["links"] = {name: {"operationId": name, "parameters": invoice} for name in answer.links}
    return described


def _problem_responses() -> Schema:
    responses = {problem.code: _problem_response([problem]) for problem in OFF_THE_MAP}
    for operation in OPERATIONS:
        for problems in operation.problems_by_status().values():
            responses[_response_name(operation, problems)] = _problem_response(problems)
    return responses


def _response_name(operation: Operation, problems: Sequence[ProblemClass]) -> str:
    if len(problems) == 1:
        return problems[0].code
    return "unavailable" if problems[0].status == 503 else f"{operation.name}_refused"


def _problem_response(problems: Sequence[ProblemClass]) -> Schema:
    first = problems[0]
    codes = [problem.code for problem in problems]
    schema: Schema = {
        "allOf": [_ref("schemas", "Problem")],
        "properties": {"status": {"const": first.status}, "code": {"enum": codes}},
    }
    return {
        "description": "; ".join(problem.title for problem in problems) + ".",
        "headers": _headers((HEADER_OF_STATUS[first.status],) if first.status in HEADER_OF_STATUS else ()),
        "content": {"application/problem+json": {"schema": schema}},
    }


def _headers(names: Sequence[str]) -> Schema:
    return {name.removeprefix("public-"): _ref("headers", name) for name in (*EVERY_ANSWER, *names)}


def _ref(kind: str, name: str) -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


def _schemas() -> Schema:
    used: list[tuple[type[BaseModel], JsonSchemaMode]] = [(models.Problem, "validation")]
    for operation in OPERATIONS:
        used += [(answer.model, "validation") for answer in operation.answers.values() if answer.model]
        used += [(operation.body, "validation")] if operation.body else []
    _, made = models_json_schema(used, ref_template="#/components/schemas/{model}", schema_generator=PlainSchema)
    schemas: Schema = made["$defs"]
    for schema in schemas.values():
        schema.pop("title", None)
    return schemas


def text(value: object, indent: int = 0, taken: int = 0) -> str:
    """JSON for people: what fits on a line stands on one. `taken` characters of the line are used already."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent + taken <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {text(item, indent + 2, len(key) + 5)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner + row for row in rows) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(inner + text(item, indent + 2, 1) for item in value) + "\n" + " " * indent + "]"


def main() -> None:
    command.parser(__doc__).parse_args()
    DOCUMENT.write_text(text(document()) + "\n", encoding="utf-8")
    print(f"wrote {DOCUMENT.relative_to(Path.cwd()) if DOCUMENT.is_relative_to(Path.cwd()) else DOCUMENT}")


if __name__ == "__main__":
    main()
