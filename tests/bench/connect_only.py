"""The cold start's floor: a function that imports psycopg, connects, and answers."""

from typing import Any

import psycopg

connection = None


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """200 once the database has let the service in; the connection stays open, as a function's does."""
    global connection
    connection = psycopg.connect(autocommit=True)
    return {"statusCode": 200, "headers": {}, "body": "{}", "isBase64Encoded": False}
