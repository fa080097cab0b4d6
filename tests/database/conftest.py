"""The function in this process, for the tests that ask it without a host."""

import os
from collections.abc import Iterator

import pytest

from paypilot import function
from paypilot.record.database import Database
from paypilot.settings import read_settings
from scripts.local.host import Handler
from support.slice import TOKENS, TestDatabase


@pytest.fixture
def handler(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[Handler]:
    """The Lambda entry point as a start finds it: the tokens of two clients, and no connection yet."""
    monkeypatch.setenv("DECISION_API_TOKEN", TOKENS)
    monkeypatch.setattr(function, "settings", read_settings(os.environ))
    monkeypatch.setattr(function, "database", Database(iam_login=False))
    yield function.handler
    function.database.drop()
