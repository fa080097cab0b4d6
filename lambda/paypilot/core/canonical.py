"""Canonical JSON (RFC 8785) and digests.

What is hashed here is frozen: a changed byte changes every digest that a caller or an auditor holds.
`tests/unit/test_canonical.py` keeps a golden vector.
"""

import hashlib
import json

# RFC 8785 numbers are IEEE doubles: past this an integer has no exact double.
LARGEST_EXACT_INTEGER = 2**53 - 1

# Every value of these types has a canonical form.
WITHOUT_LIMITS = frozenset({str, bool, type(None)})

ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def canonical_json(value: object) -> bytes:
    """The RFC 8785 bytes of `value`: objects, arrays, strings, integers, booleans and null.

    Raises `ValueError` for what this project never hashes: a float, an integer with no exact double,
    a key that isn't ASCII text (so that sorting by code point is sorting by UTF-16 unit), a lone surrogate.
    """
    _check(value)
    return ENCODER.encode(value).encode("utf-8")


def digest(data: bytes) -> str:
    """`sha256:` and the 64 hex digits of `data`'s SHA-256."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _check(value: object) -> None:
    if type(value) is dict:
        for key, item in value.items():
            if not (type(key) is str and key.isascii()):
                raise ValueError("a key that is not ASCII text has no canonical form here")
            # Most values are text, and a call for each takes longer than to write it.
            if type(item) not in WITHOUT_LIMITS:
                _check(item)
    elif type(value) is list:
        for item in value:
            _check(item)
    elif type(value) is int:
        if abs(value) > LARGEST_EXACT_INTEGER:
            raise ValueError("an integer past 2^53 - 1 has no canonical form")
    elif type(value) not in WITHOUT_LIMITS:
        raise ValueError(f"{type(value).__name__} has no canonical form here")
