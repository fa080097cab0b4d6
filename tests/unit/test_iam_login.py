"""The database token is the one that botocore makes."""

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import botocore.session
import pytest

from paypilot.iam_login import database_token

HOST, PORT, USER, REGION = "record.abc123.eu-west-1.rds.amazonaws.com", "5432", "paypilot_service", "eu-west-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a/secret+with=signs"}
SESSION = {"AWS_SESSION_TOKEN": "a session+token/with=signs that must be escaped~"}


@pytest.mark.parametrize("session", [{}, SESSION], ids=["keys of a user", "keys of a role"])
def test_the_token_is_botocore_s_for_the_same_time_and_credentials(session: dict[str, str]) -> None:
    client = botocore.session.Session().create_client(
        "rds",
        region_name=REGION,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=session.get("AWS_SESSION_TOKEN"),
    )
    theirs = client.generate_db_auth_token(HOST, int(PORT), USER)
    signed_at = parse_qs(urlsplit(f"https://{theirs}").query)["X-Amz-Date"][0]
    now = datetime.strptime(signed_at, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    ours = database_token(HOST, PORT, USER, {**CREDENTIALS, **session, "AWS_REGION": REGION}, now)
    assert _parts(ours) == _parts(theirs)


def _parts(token: str) -> tuple[str, dict[str, list[str]]]:
    url = urlsplit(f"https://{token}")
    return f"{url.netloc}{url.path}", parse_qs(url.query, strict_parsing=True)


def test_a_missing_credential_is_named() -> None:
    with pytest.raises(KeyError, match="AWS_SECRET_ACCESS_KEY"):
        database_token(HOST, PORT, USER, {"AWS_REGION": REGION, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE"}, datetime.now(UTC))
