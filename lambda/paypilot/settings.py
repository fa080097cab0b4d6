"""The environment, read once and frozen. What it doesn't understand it refuses, and then nobody is let in."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import NamedTuple

CLIENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
DIGEST_ENTRY = re.compile(r"sha256:([0-9a-fA-F]{64})")
# What a header can carry after "Bearer ": visible ASCII without the comma that joins two headers.
TOKEN = re.compile(r"[!-+\--~]+")

DEFAULT_CLIENT = "default"


class InvalidTokens(ValueError):
    """`DECISION_API_TOKEN` is not one token or an object of valid entries only. Shows none of its content."""


class Settings(NamedTuple):
    """`clients` maps the SHA-256 digest (32 bytes) of each token to its client id; empty means that nobody may in.

    Logs carry the name `service`; metrics are in the CloudWatch namespace `metrics_namespace`.
    """

    clients: Mapping[bytes, str]
    iam_login: bool
    service: str
    metrics_namespace: str


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Settings from environment variables.

    Bad tokens leave `clients` empty, so that every authenticated route answers 503 and health still answers.
    Raises `ValueError` for a `PAYPILOT_DATABASE_LOGIN` that is neither `password` nor `iam`.
    """
    login = environment.get("PAYPILOT_DATABASE_LOGIN", "password")
    if login not in {"password", "iam"}:
        raise ValueError("PAYPILOT_DATABASE_LOGIN is either password or iam")
    try:
        clients = read_tokens(environment.get("DECISION_API_TOKEN", ""))
    except InvalidTokens:
        clients = {}
    return Settings(
        clients=clients,
        iam_login=login == "iam",
        service=environment.get("POWERTOOLS_SERVICE_NAME") or "paypilot-decision",
        metrics_namespace=environment.get("POWERTOOLS_METRICS_NAMESPACE") or "PayPilot",
    )


def read_tokens(text: str) -> dict[bytes, str]:
    """The clients by the digest of their tokens.

    `text` is one opaque token (client `default`), or a JSON object of tokens to client ids; a token is in the
    clear or as `sha256:<64 hex digits>`. Raises `InvalidTokens` if any entry is not valid, or if one token is
    given to two clients.
    """
    text = text.strip()
    if not text.startswith(("{", "[", '"')):
        return {_token_digest(text): DEFAULT_CLIENT}
    try:
        entries = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise InvalidTokens("DECISION_API_TOKEN is not valid JSON") from error
    clients: dict[bytes, str] = {}
    if not (text.startswith("{") and entries):
        raise InvalidTokens("DECISION_API_TOKEN is one token, or a JSON object of tokens to client ids")
    for token, client_id in entries:
        if not (isinstance(client_id, str) and CLIENT_ID.fullmatch(client_id)):
            raise InvalidTokens(f"a client id matches {CLIENT_ID.pattern}")
        if clients.setdefault(_token_digest(token), client_id) != client_id:
            raise InvalidTokens("one token belongs to one client")
    return clients


def _token_digest(token: str) -> bytes:
    if entry := DIGEST_ENTRY.fullmatch(token):
        return bytes.fromhex(entry[1])
    if token.startswith("sha256:") or not TOKEN.fullmatch(token):
        raise InvalidTokens("a token is visible ASCII with no space or comma, or sha256: and 64 hex digits")
    return hashlib.sha256(token.encode()).digest()
