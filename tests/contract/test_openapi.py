"""The OpenAPI document that a slice serves."""

from openapi_spec_validator import OpenAPIV31SpecValidator

from contract.caller import Caller


def test_a_valid_document_is_served_to_anybody(client: Caller) -> None:
    document = client.get("/openapi.json", auth=False).json()
    OpenAPIV31SpecValidator(document).validate()
    assert document["info"]["version"] == client.get("/health", auth=False).json()["version"]
