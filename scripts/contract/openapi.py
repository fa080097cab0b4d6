"""Write lambda/paypilot/openapi.json from the route table, and from what models.py and operations.py add to it.

tests/unit/test_openapi.py compares the
document with the service's routes and problem classes, and schemathesis the running server with the document.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from paypilot import __version__
from paypilot.call import Access, Route
from paypilot.http import problems as errors
from paypilot.http.page import LIMIT_DEFAULT, LIMIT_MAX
from paypilot.rails import CACHE_SECONDS
from paypilot.routes import KIB, ROUTES
from scripts.contract import models
from scripts.contract.models import REFUSALS, TABLES
from scripts.contract.operations import OPERATIONS, PROBLEM, Answer
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
parameter that is not known, or is given twice, is 422. Slashes in an invoice id may be sent as they are or as `%2F`.

**Bodies.** One JSON object in UTF-8, as long as its operation allows, without a BOM; `Content-Type` is not checked. A
field given twice, at any depth, is refused. Field names and strings are compared after JSON's own escapes are undone,
and `-0` is 0.

**Refusals.** A request that is refused for its body, its `Idempotency-Key` or its `report_key` leaves one row, whose id
is the answer's `refusal_id`. 401, 404, 405 and `invalid_query` leave none.

**Rails.** A failed bank debit is asked for as `<rail>:<code>`, such as `ach:R01`: that rail's table decides, and `rail`
says what it holds of the code. `GET /rails` and what is below it show the tables to anyone, without the record, and are
the only answers that may be kept: ask again by `If-None-Match`. A refusal there leaves no row.

**Errors** are problem details (RFC 9457). An answer of API Gateway's own (429, 5xx) is `{"message": ...}` instead and
carries none of these headers: nothing can be concluded from it, except that a retry with the same key is safe.
"""

# What no operation lists, because a client that keeps to this document never meets them.
OFF_THE_MAP: tuple[ProblemClass, ...] = (errors.NotFound, errors.MethodNotAllowed)

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
        "schema": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
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
        "description": "; ".join(
            f"{rail.document['name']}: {rail.document['code_form']}" for rail in TABLES.rails if not rail.refusal
        )
        + ".",
        "schema": {"type": "string", "pattern": "^[^/]+$"},
        "example": "R11",
    },
    "If-None-Match": {"in": "header", "description": "ETags that the caller has, or `*`.", "schema": TEXT},
    "kind": {"in": "query", "schema": {"enum": models.KINDS}},
    "Idempotency-Key": {
        "in": "header",
        "description": "1-255 printable ASCII characters without a comma; else 422, and so is a key with other values "
        "than its first. Send one such header: two arrive as one with a comma, which is refused.",
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
    "retry-after": {"description": "Seconds, with `audit_unavailable`.", "schema": TEXT},
}
HEADER_OF_STATUS = {401: "www-authenticate", 405: "allow", 503: "retry-after"}


def document() -> Schema:
    paths: Schema = {}
    for route in ROUTES:
        method, path = route.name.split(" ")
        paths.setdefault(path, {})[method.lower()] = _operation(route)
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


def _operation(route: Route) -> Schema:
    operation = OPERATIONS[route.handler]
    described: Schema = {"operationId": operation.name, "summary": operation.summary}
    if operation.description:
        described["description"] = operation.description
    if route.access is Access.CLIENT:
        described["security"] = [{"bearer": []}]
    names = [*_path_parameters(route), *operation.parameters, *(["If-None-Match"] if operation.kept else [])]
    if names:
        described["parameters"] = [_ref("parameters", name) for name in names]
    if operation.body:
        content = {"schema": _schema_ref(operation.body), "example": operation.body_example}
        described["requestBody"] = {
            "description": f"At most {route.body_bytes_max // KIB} KiB.",
            "required": True,
            "content": {"application/json": content},
        }
    kept = ("etag", "public-cache-control") if operation.kept else ()
    responses = {status: _answer(answer, kept) for status, answer in operation.answers.items()}
    if operation.kept:
        responses[304] = {"description": "As the ETag that was sent.", "headers": _headers(kept)}
    for status, problems in _problems(route).items():
        responses[status] = _ref("responses", _response_name(route, problems))
    described["responses"] = {str(status): response for status, response in responses.items()}
    return described


def _path_parameters(route: Route) -> list[str]:
    return re.findall(r"\{(\w+)", route.path)


def _answer(answer: Answer, kept: tuple[str, ...]) -> Schema:
    content: Schema = {"schema": _schema_ref(answer.shape) if answer.shape else {"type": "object"}}
    if answer.example:
        content["example"] = answer.example
    described: Schema = {
        "description": answer.description,
        "headers": _headers((*answer.headers, *kept)),
        "content": {"application/json": content},
    }
    if answer.links:
        invoice = {"invoice_id": "$response.body#/invoice_id"}
        described["links"] = {name: {"operationId": name, "parameters": invoice} for name in answer.links}
    return described


def _problems(route: Route) -> dict[int, list[ProblemClass]]:
    """What a route may answer instead, by status."""
    operation = OPERATIONS[route.handler]
    gates = {*operation.gates, *(["body"] if route.body_bytes_max else [])}
    found: set[ProblemClass] = {errors.Internal, *(refusal for refusal in REFUSALS if refusal.gate in gates)}
    if route.access is Access.CLIENT:
        found |= {errors.AuthNotConfigured, errors.Unauthorized, errors.AuditUnavailable}
    if _path_parameters(route):
        found.add(errors.NotFound)
    if "cursor" in operation.parameters:
        found.add(errors.InvalidQuery)
    by_status: dict[int, list[ProblemClass]] = {}
    for problem in sorted(found, key=lambda problem: (problem.status, problem.code)):
        by_status.setdefault(problem.status, []).append(problem)
    return by_status


def _problem_responses() -> Schema:
    responses = {problem.code: _problem_response([problem]) for problem in OFF_THE_MAP}
    for route in ROUTES:
        for problems in _problems(route).values():
            responses[_response_name(route, problems)] = _problem_response(problems)
    return responses


def _response_name(route: Route, problems: list[ProblemClass]) -> str:
    if len(problems) == 1:
        return problems[0].code
    return "unavailable" if problems[0].status == 503 else f"{OPERATIONS[route.handler].name}_refused"


def _problem_response(problems: list[ProblemClass]) -> Schema:
    status = problems[0].status
    properties = {"status": {"const": status}, "code": {"enum": [problem.code for problem in problems]}}
    schema: Schema = {"allOf": [_schema_ref(models.Problem)], "properties": properties}
    return {
        "description": "; ".join(problem.title for problem in problems) + ".",
        "headers": _headers((HEADER_OF_STATUS[status],) if status in HEADER_OF_STATUS else ()),
        "content": {"application/problem+json": {"schema": schema}},
    }


def _headers(names: Iterable[str]) -> Schema:
    return {name.removeprefix("public-"): _ref("headers", name) for name in (*EVERY_ANSWER, *names)}


def _ref(kind: str, name: str) -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


def _schema_ref(shape: type) -> Schema:
    return _ref("schemas", models.schema_name(shape))


class PlainSchema(GenerateJsonSchema):
    """No title that only repeats a name."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def _schemas() -> Schema:
    shapes: list[type] = [models.Problem]
    for operation in OPERATIONS.values():
        shapes += [answer.shape for answer in operation.answers.values() if answer.shape]
        shapes += [operation.body] if operation.body else []
    _, made = models_json_schema(
        [(models.model(shape), "validation") for shape in dict.fromkeys(shapes)],
        ref_template="#/components/schemas/{model}",
        schema_generator=PlainSchema,
    )
    schemas: Schema = made["$defs"]
    for schema in schemas.values():
        schema.pop("title", None)
    schemas["Problem"]["example"] = PROBLEM
    return schemas


def text(value: object, indent: int = 0, taken: int = 0) -> str:
    """JSON for people: what fits on a line is on one. `taken` characters of the line are used already."""
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
