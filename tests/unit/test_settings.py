"""Who is let in is configured, or nobody is."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paypilot.settings import InvalidTokens, read_settings, read_tokens


def sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def test_one_opaque_token_is_the_default_clients() -> None:
    assert read_tokens("s3cret") == {sha256("s3cret"): "default"}


def test_one_digest_is_the_default_clients() -> None:
    assert read_tokens("sha256:" + sha256("s3cret").hex()) == {sha256("s3cret"): "default"}


def test_clear_tokens_and_digests_may_be_mixed_and_a_client_may_have_two() -> None:
    text = json.dumps({"new": "acme", "sha256:" + sha256("old").hex().upper(): "acme", "other": "beta-2"})
    assert read_tokens(text) == {sha256("new"): "acme", sha256("old"): "acme", sha256("other"): "beta-2"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "{}",
        "{",
        "[]",
        '["a"]',
        '"a"',
        '{"a": 1}',
        '{"a": null}',
        '{"a": ["acme"]}',
        '{"a": {"b": "acme"}}',
        '{"": "acme"}',
        '{"a b": "acme"}',
        '{"a,b": "acme"}',
        '{"\\u00e9": "acme"}',
        '{"a": "Acme"}',
        '{"a": "-acme"}',
        '{"a": ""}',
        '{"a": "' + "x" * 64 + '"}',
        '{"a": "acme\\n"}',
        '{"sha256:abc": "acme"}',
        '{"a": "acme", "sha256:zz": "acme"}',
        '{"a": "acme", "a": "beta"}',
        '{"a": "acme", "sha256:' + hashlib.sha256(b"a").hexdigest() + '": "beta"}',
        '{"a": "acme"} x',
        '{"a": ' + "[" * 100_000,
        '{"a": ' + "1" * 5000 + "}",
        "two tokens",
        "sha256:abc",
        "\u00e9",
    ],
)
def test_anything_but_valid_entries_only_lets_nobody_in(text: str) -> None:
    with pytest.raises(InvalidTokens):
        read_tokens(text)
    assert read_settings({"DECISION_API_TOKEN": text}).clients == {}


def test_no_variable_lets_nobody_in() -> None:
    assert read_settings({}).clients == {}


@given(st.text())
def test_no_text_makes_a_client_id_outside_the_pattern(text: str) -> None:
    try:
        clients = read_tokens(text)
    except InvalidTokens:
        return
    assert clients
    assert all(len(digest) == 32 for digest in clients)


def test_the_message_of_a_bad_configuration_holds_no_token() -> None:
    with pytest.raises(InvalidTokens) as caught:
        read_tokens('{"s3cret-token": "Not A Client"}')
    assert "s3cret" not in str(caught.value)


def test_the_database_login_is_password_or_iam() -> None:
    assert read_settings({}).iam_login is False
    assert read_settings({"PAYPILOT_DATABASE_LOGIN": "iam"}).iam_login is True
    with pytest.raises(ValueError, match="password or iam"):
        read_settings({"PAYPILOT_DATABASE_LOGIN": "IAM"})


def test_logs_and_metrics_have_a_name_where_the_configuration_gives_none() -> None:
    settings = read_settings({"POWERTOOLS_SERVICE_NAME": ""})
    assert (settings.service, settings.metrics_namespace) == ("paypilot-decision", "PayPilot")
