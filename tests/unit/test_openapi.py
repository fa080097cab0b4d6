"""The OpenAPI document is valid, current, and names what the code has: no more and no less."""

import json
import re
import uuid
from collections.abc import Iterator
from typing import Annotated, Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import TypeAdapter, ValidationError

from paypilot import invoices
from paypilot.call import Access
from paypilot.http import page, problems
from paypilot.routes import ROUTES
from scripts.contract import models, openapi
from scripts.contract.operations import OPERATIONS
from scripts.local.example import FAILED_PAYMENT
from support.slice import ROOT

DOCUMENT: dict[str, Any] = json.loads(openapi.DOCUMENT.read_bytes())
DOCUMENTED = {
    f"{method.upper()} {path}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}


def test_it_is_valid() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_its_routes_are_those_of_the_route_table_and_each_is_described() -> None:
    assert set(DOCUMENTED) == {route.name for route in ROUTES}
    assert set(OPERATIONS) == {route.handler for route in ROUTES}


def test_a_token_and_a_body_are_asked_for_exactly_where_the_route_table_says_so() -> None:
    for route in ROUTES:
        assert ("security" in DOCUMENTED[route.name]) == (route.access is Access.CLIENT), route.name
        assert ("requestBody" in DOCUMENTED[route.name]) == bool(route.body_bytes_max), route.name


def test_its_problem_codes_are_the_error_classes_each_with_its_status() -> None:
    documented = {
        (schema["properties"]["status"]["const"], code)
        for response in DOCUMENT["components"]["responses"].values()
        for schema in [response["content"]["application/problem+json"]["schema"]]
        for code in schema["properties"]["code"]["enum"]
    }
    assert documented == {(problem.status, problem.code) for problem in problems.ALL}


def test_every_status_has_the_headers_that_it_owes() -> None:
    responses = [
        response
        for operation in DOCUMENTED.values()
        for response in operation["responses"].values()
        if "$ref" not in response
    ]
    for response in [*responses, *DOCUMENT["components"]["responses"].values()]:
        assert set(response["headers"]) >= {"cache-control", "x-content-type-options", "x-request-id"}


def test_it_says_which_question_the_table_answers() -> None:
    assert "the same payment instrument, later" in DOCUMENT["info"]["description"]


def examples(part: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each example under `part`, with its schema."""
    if isinstance(part, dict) and "example" in part:
        # The example of a schema stands in it, that of a body or parameter beside it.
        yield part.get("schema", part), part["example"]
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from examples(each)


@pytest.mark.parametrize(("schema", "example"), list(examples(DOCUMENT)))
def test_its_examples_are_of_their_schemas(schema: dict[str, Any], example: Any) -> None:
    jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(example)


def test_its_first_request_is_the_readme_s() -> None:
    assert f"-d '{json.dumps(FAILED_PAYMENT)}'" in (ROOT / "README.md").read_text()
    [body] = DOCUMENTED["POST /decide"]["requestBody"]["content"].values()
    assert body["example"] == FAILED_PAYMENT


INVOICE_ID = TypeAdapter(Annotated[str, models.FIELDS["invoice_id"]])


@given(
    st.text("ab9._:/-", max_size=12)
    | st.from_regex(models.INVOICE_ID, fullmatch=True)
    | st.text(max_size=4)
    | st.builds("a".ljust, st.integers(250, 260), st.sampled_from("a./"))
)
@example("a/...")
@example("a/..b")
@example("a/..")
@example("a/.")
@example("a//b")
@example("a\n")
def test_its_pattern_of_an_invoice_id_is_the_one_that_is_enforced(text: str) -> None:
    try:
        INVOICE_ID.validate_python(text)
    except ValidationError:
        documented = False
    else:
        documented = text != "outcomes/summary"
    assert documented == invoices.is_invoice_id(text)


def test_its_pattern_of_a_cursor_is_that_of_a_cursor() -> None:
    assert re.fullmatch(models.CURSOR, page.write_cursor(b"h", uuid.uuid4()))
