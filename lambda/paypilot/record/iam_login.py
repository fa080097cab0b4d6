"""An RDS login token: AWS Signature Version 4 as a presigned URL, made locally, valid 15 minutes.

botocore makes the same token; it is 30 MB and its import outlasts the whole cold start, so it stays in the tests, where
it holds this one to account. Algorithm: https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

VALID_SECONDS = 900


def database_token(host: str, port: str, user: str, environment: Mapping[str, str], now: datetime) -> str:
    """The password for `user` at `host:port`, signed with the credentials in `environment`.

    `now` is in UTC. Raises `KeyError` naming the variable if AWS_REGION or the credentials are missing.
    """
    date, region = now.strftime("%Y%m%d"), environment["AWS_REGION"]
    scope = f"{date}/{region}/rds-db/aws4_request"
    query = {
        "Action": "connect",
        "DBUser": user,
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{environment['AWS_ACCESS_KEY_ID']}/{scope}",
        "X-Amz-Date": now.strftime("%Y%m%dT%H%M%SZ"),
        "X-Amz-Expires": str(VALID_SECONDS),
        "X-Amz-SignedHeaders": "host",
    }
    if session_token := environment.get("AWS_SESSION_TOKEN"):
        query["X-Amz-Security-Token"] = session_token
    encoded = "&".join(f"{name}={quote(query[name], safe='-_.~')}" for name in sorted(query))
    empty_body = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{encoded}\nhost:{host}:{port}\n\nhost\n{empty_body}"
    to_sign = "\n".join(("AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{environment['AWS_SECRET_ACCESS_KEY']}".encode()
    for part in (date, region, "rds-db", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    return f"{host}:{port}/?{encoded}&X-Amz-Signature={signature}"
