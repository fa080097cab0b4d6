"""Who is let in. A token is never shown, and a 401 leaves no row."""

import hashlib

import pytest

from contract.caller import Caller, new_invoice, not_covered, refused
from contract.conftest import Target

CLIENT_ROUTES = [
    ("POST", "/decide"),
    ("GET", "/decisions/in_1001"),
    ("POST", "/decisions/in_1001/outcome"),
    ("GET", "/decisions/outcomes/summary"),
    ("GET", "/refusals"),
]
# `T` stands for the client's own token.
REFUSED: dict[str, list[bytes]] = {
    "no header": [],
    "an empty header": [b""],
    "an empty token": [b"Bearer"],
    "no scheme": [b"T"],
    "Basic": [b"Basic T"],
    "Digest": [b"Digest T"],
    "Token": [b"Token T"],
    "no space": [b"BearerT"],
    "a colon": [b"Bearer: T"],
    "a tab for the space": [b"Bearer\tT"],
    "a space in the token": [b"Bearer T T"],
    "a comma after the token": [b"Bearer T,"],
    "a comma before the token": [b"Bearer ,T"],
    "a list in one header": [b"Bearer T, Bearer T"],
    "a parameter": [b"Bearer T realm=x"],
    "the same header twice": [b"Bearer T", b"Bearer T"],
    "a good header after a bad one": [b"Bearer wrong", b"Bearer T"],
    "a bad header after a good one": [b"Bearer T", b"Basic eDp4"],
    "a wrong token": [b"Bearer wrong"],
    "one character more": [b"Bearer Tx"],
    "quotes": [b'Bearer "T"'],
    "the digest of the token": [b"Bearer D"],
    "the digest of the token, named": [b"Bearer sha256:D"],
    "non-ASCII bytes after the token": [b"Bearer T\xe9"],
    "non-ASCII bytes in UTF-8": [b"Bearer \xc3\xa9"],
    "a non-ASCII space": [b"Bearer\xa0T"],
    "8,000 characters": [b"Bearer " + b"x" * 8000],
    "something else than text": [b"Bearer {}"],
    "null": [b"Bearer null"],
}


def headers(caller: Caller, values: list[bytes]) -> list[tuple[bytes, bytes]]:
    token = caller.token.encode()
    digest = hashlib.sha256(token).hexdigest().encode()
    return [(b"authorization", value.replace(b"T", token).replace(b"D", digest, 1)) for value in values]


@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED.keys())
def test_it_is_refused(client: Caller, values: list[bytes]) -> None:
    # "Digest" itself holds the letter that stands for the token's digest.
    sent = [(b"authorization", b"Digest " + client.token.encode())] if values == [b"Digest T"] else None
    response = client.get("/refusals", auth=False, headers=sent or headers(client, values))
    problem = refused(response, 401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"
    assert client.token not in response.text
    assert not hasattr(problem, "refusal_id")


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER ", "bEaReR ", "Bearer  ", "Bearer" + " " * 40])
@pytest.mark.parametrize("name", ["authorization", "Authorization", "AUTHORIZATION"])
def test_the_headers_name_and_scheme_compare_without_case_and_spaces_may_be_many(
    client: Caller, name: str, scheme: str
) -> None:
    assert client.get("/refusals", auth=False, headers={name: scheme + client.token}).status_code == 200


def test_a_token_in_another_case_is_another_token(client: Caller) -> None:
    swapped = client.token.swapcase()
    assert swapped != client.token
    refused(client.get("/refusals", auth=False, headers={"authorization": f"Bearer {swapped}"}), 401, "unauthorized")


def test_no_route_that_asks_for_a_token_is_missing_here(client: Caller) -> None:
    assert not_covered(client.routes("security"), CLIENT_ROUTES) == []


@pytest.mark.parametrize(("method", "path"), CLIENT_ROUTES)
def test_every_route_of_a_client_asks_for_a_token_and_a_refusal_leaves_no_row(
    client: Caller, method: str, path: str
) -> None:
    last = client.newest_refusal()
    token = client.token
    for sent in ({}, {"x-authorization": f"Bearer {token}"}, {"cookie": f"token={token}"}, {"x-api-key": token}):
        refused(client.send(method, path, auth=False, headers=sent, content=b"{"), 401, "unauthorized")
    refused(client.send(method, f"{path}?access_token={token}&token={token}", auth=False), 401, "unauthorized")
    assert client.refusals_since(last) == []


def test_a_client_is_known_by_its_token_whatever_it_says_of_itself(client: Caller, other: Caller) -> None:
    invoice = new_invoice()
    body = {"invoice_id": invoice, "failure_code": "card_expired"}
    claims = {"x-client-id": "client-b", "client-id": "client-b", "x-forwarded-user": "client-b"}
    assert client.post("/decide", body, headers=claims).status_code == 200
    assert len(client.history(invoice).decisions) == 1
    refused(other.get(f"/decisions/{invoice}"), 404, "not_found")


def test_without_a_token_configured_nobody_is_let_in(target: Target, request: pytest.FixtureRequest) -> None:
    if target.remote:
        pytest.skip("a remote's tokens are not this suite's to change")
    caller = Caller(request.getfixturevalue("slice_without_tokens"), "token")
    for method, path in CLIENT_ROUTES:
        for auth in (True, False):
            refused(caller.send(method, path, auth=auth), 503, "auth_not_configured")
    assert caller.get("/health", auth=False).status_code == 200
    refused(caller.send("PUT", "/decide"), 405, "method_not_allowed")
    refused(caller.get("/nowhere"), 404, "not_found")
    caller.http.close()
