"""Where the suite runs: the local host, or the slice at PAYPILOT_CONTRACT_BASE_URL with PAYPILOT_CONTRACT_TOKEN.

PAYPILOT_CONTRACT_OTHER_TOKEN, of another client, turns the cases of isolation on. A remote is left with rows of these
clients under fresh invoice ids, and nothing else.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

pytest.register_assert_rewrite("contract.caller")

from contract.caller import Caller, Document  # noqa: E402


@dataclass(frozen=True)
class Target:
    """A running slice: `url`, the token of a client, and of another one if there is one."""

    url: str
    token: str
    other_token: str | None
    remote: bool


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> Target:
    """What this run is held to the contract. Its own document says what a body may be."""
    found = find_target(request)
    caller = Caller(found.url, found.token)
    Document.components = caller.get("/openapi.json", auth=False).json()["components"]
    caller.http.close()
    return found


def find_target(request: pytest.FixtureRequest) -> Target:
    """The slice of the environment, or else the one that the checkout starts."""
    if url := os.environ.get("PAYPILOT_CONTRACT_BASE_URL"):
        token = os.environ.get("PAYPILOT_CONTRACT_TOKEN")
        if not token:
            pytest.exit("PAYPILOT_CONTRACT_BASE_URL needs PAYPILOT_CONTRACT_TOKEN beside it", returncode=2)
        return Target(url.rstrip("/"), token, os.environ.get("PAYPILOT_CONTRACT_OTHER_TOKEN") or None, remote=True)
    url, token, other_token = request.getfixturevalue("local_slice")
    return Target(url, token, other_token, remote=False)


@pytest.fixture(scope="session")
def client(target: Target) -> Iterator[Caller]:
    """A client with a token."""
    caller = Caller(target.url, target.token)
    yield caller
    caller.http.close()


@pytest.fixture(scope="session")
def crowd(target: Target) -> Iterator[Caller]:
    """The same client, a hundred connections at once."""
    caller = Caller(target.url, target.token, concurrent=100)
    yield caller
    caller.http.close()


@pytest.fixture(scope="session")
def other(target: Target) -> Iterator[Caller]:
    """Another client of the same slice."""
    if target.other_token is None:
        pytest.skip("set PAYPILOT_CONTRACT_OTHER_TOKEN to check that clients are kept apart")
    caller = Caller(target.url, target.other_token)
    yield caller
    caller.http.close()
