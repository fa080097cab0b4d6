"""Who asks: the client of a request's bearer token."""

import hashlib
import hmac
import re
from collections.abc import Mapping

from paypilot.http.problems import AuthNotConfigured, Unauthorized
from paypilot.http.request import Request

BEARER = re.compile(r"bearer +([^ ,]+)", re.IGNORECASE)
HOW_TO_SEND = "Send one header Authorization: Bearer <token>, with a token issued to you."


def authenticate(clients: Mapping[bytes, str], request: Request) -> str:
    """The client id of the request's token. `clients` is by SHA-256 digest of the token.

    Raises `AuthNotConfigured` and `Unauthorized`.
    """
    if not clients:
        raise AuthNotConfigured("DECISION_API_TOKEN holds no valid tokens, so no request is authenticated.")
    presented = hashlib.sha256(read_bearer_token(request).encode()).digest()
    found = None
    # Every configured token is compared, each in constant time, so that time says nothing about them.
    for token_digest, client_id in clients.items():
        if hmac.compare_digest(token_digest, presented):
            found = client_id
    if found is None:
        raise Unauthorized(HOW_TO_SEND)
    return found


def read_bearer_token(request: Request) -> str:
    """The token of the Authorization header. Raises `Unauthorized`."""
    header = request.headers.get("authorization", "")
    if (match := BEARER.fullmatch(header)) and header.isascii():
        return match[1]
    raise Unauthorized(HOW_TO_SEND)
