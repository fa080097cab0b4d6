"""The OpenAPI document is valid, current, and names what the code has: no more and no less."""

import json
import re
import uuid
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import TypeAdapter, ValidationError

from paypilot import decisions, invoices, refusals
from paypilot.call import Access
from paypilot.core import card_table, rail_table
from paypilot.http import body, page, problems
from paypilot.routes import ROUTES
from scripts.contract import models as contract_models
from scripts.contract import openapi

DOCUMENT: dict[str, Any] = json.loads(openapi.DOCUMENT.read_bytes())
OPERATIONS = {operation.route: operation for operation in openapi.OPERATIONS}


def documented_codes() -> set[tuple[int, str]]:
    """Each (status, code) of a problem response."""
    return {
        (schema["properties"]["status"]["const"], code)
        for response in DOCUMENT["components"]["responses"].values()
        for schema in [response["content"]["application/problem+json"]["schema"]]
        for code in schema["properties"]["code"]["enum"]
    }


def test_it_is_valid() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_its_routes_are_the_services_routes() -> None:
    documented = {f"{method.upper()} {path}" for path, item in DOCUMENT["paths"].items() for method in item}
    assert documented == set(OPERATIONS) == {route.name for route in ROUTES}


def test_a_token_is_asked_for_exactly_where_the_service_asks_for_one() -> None:
    assert {route for route, operation in OPERATIONS.items() if not operation.public} == {
        route.name for route in ROUTES if route.access is Access.CLIENT
    }


def test_its_problem_codes_are_the_error_classes_each_with_its_status() -> None:
    assert documented_codes() == {(problem.status, problem.code) for problem in problems.ALL}


def test_every_status_has_the_headers_that_it_owes() -> None:
    responses = [
        response
        for item in DOCUMENT["paths"].values()
        for operation in item.values()
        for response in operation["responses"].values()
        if "$ref" not in response
    ]
    for response in [*responses, *DOCUMENT["components"]["responses"].values()]:
        assert set(response["headers"]) >= {"cache-control", "x-content-type-options", "x-request-id"}


def test_it_says_which_question_the_table_answers() -> None:
    assert "the same payment instrument, later" in DOCUMENT["info"]["description"]


@pytest.mark.parametrize("route", OPERATIONS)
def test_its_examples_are_of_their_models(route: str) -> None:
    operation = OPERATIONS[route]
    if operation.body:
        operation.body.model_validate_json(json.dumps(operation.body_example))
    for answer in operation.answers.values():
        if answer.model and answer.example:
            answer.model.model_validate_json(json.dumps(answer.example))
    contract_models.Problem.model_validate_json(json.dumps(contract_models.PROBLEM))
    assert contract_models.PROBLEM["type"] == f"{contract_models.URN}{contract_models.PROBLEM['code']}"


def test_actions_and_tones_are_those_of_the_tables() -> None:
    properties = DOCUMENT["components"]["schemas"]["Decision"]["properties"]
    assert set(properties["action"]["enum"]) == card_table.ACTIONS | rail_table.ACTIONS
    assert set(properties["tone"]["enum"]) == card_table.TONES | rail_table.TONES


INVOICE_ID = TypeAdapter(contract_models.InvoiceId)


@given(
    st.text("ab9._:/-", max_size=12)
    | st.from_regex(contract_models.INVOICE_ID, fullmatch=True)
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


def test_its_other_patterns_and_limits_are_those_that_are_enforced() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    parameters = DOCUMENT["components"]["parameters"]
    assert schemas["DecideRequest"]["properties"]["failure_code"]["pattern"] == f"^{decisions.FAILURE_CODE.pattern}$"
    assert schemas["OutcomeReport"]["properties"]["report_key"]["pattern"] == f"^{body.PRINTABLE_KEY.pattern}$"
    limit = parameters["limit"]["schema"]
    assert (limit["default"], limit["maximum"]) == (page.LIMIT_DEFAULT, page.LIMIT_MAX)
    assert parameters["kind"]["schema"]["enum"] == [kind for kind in refusals.LISTING if kind]
    assert re.fullmatch(contract_models.CURSOR, page.write_cursor(b"h", uuid.uuid4()))
    for name in ("attempt", "prior_failures"):
        assert schemas["DecideRequest"]["properties"][name]["maximum"] == decisions.COUNT_MAX
