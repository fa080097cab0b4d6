"""What no schema can say, so that schemathesis takes it for good input and a refusal for a fault."""

import re
import uuid
from typing import Any

import schemathesis

CURSOR = r"[A-Za-z0-9_-]{23}"
HEADER_KEY = r"[!-+\--~]([ -+\--~]{0,253}[!-+\--~])?"


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Of what is well formed: a key is a fresh one, a cursor is left out, and an integer is written without a point."""
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch(HEADER_KEY, key):
        # A key that was used is refused for its other values.
        case.headers["Idempotency-Key"] = f"{key[:200]} {uuid.uuid4()}"
    cursor = (case.query or {}).get("cursor")
    if isinstance(cursor, str) and re.fullmatch(CURSOR, cursor):
        # This server never gave it.
        del case.query["cursor"]
    if isinstance(case.body, dict):
        # JSON Schema takes 1.0 for an integer, and the contract doesn't.
        whole = {n: int(v) for n, v in case.body.items() if isinstance(v, float) and v.is_integer()}
        case.body = {**case.body, **whole}
