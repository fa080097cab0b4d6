"""A request's body and headers, read strictly. What is refused is named, and never repeated."""

import base64
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from paypilot.http import problems
from paypilot.http.request import Request

PRINTABLE_KEY = re.compile(r"[ -~]{1,255}")
PRINTABLE_KEY_FORM = "1-255 printable ASCII characters"
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


def read_idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key, or None without the header. Raises `IdempotencyKeyInvalid`.

    Two such headers arrive as one with a comma, so a key has none.
    """
    key = request.headers.get("idempotency-key")
    if key is not None and ("," in key or not PRINTABLE_KEY.fullmatch(key)):
        raise problems.IdempotencyKeyInvalid(
            f"Send one Idempotency-Key of {PRINTABLE_KEY_FORM} with no comma, which would be two keys."
        )
    return key


def read_object(request: Request, body_bytes_max: int) -> dict[str, Any]:
    """The fields of the body, one JSON object of at most `body_bytes_max` bytes. Raises a `Refusal`."""
    body = _read_bytes(request, body_bytes_max)
    try:
        fields = STRICT_JSON.decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise problems.InvalidJson(f"The body must be UTF-8: byte {error.start + 1} is not.") from error
    except json.JSONDecodeError as error:
        raise problems.InvalidJson(_why_invalid(request, body, error)) from error
    except RecursionError as error:
        raise problems.InvalidJson("The body is nested too deeply.") from error
    if not isinstance(fields, dict):
        raise problems.NotAnObject("The body must be a JSON object.")
    return fields


def read_text(fields: Mapping[str, Any], name: str, pattern: re.Pattern[str], allowed: str) -> str:
    """The required string `name`. `allowed` says in words what `pattern` matches. Raises a `Refusal`."""
    if name not in fields:
        raise problems.MissingField(f"{name} is required: {allowed}.", field=name)
    value = fields[name]
    if not isinstance(value, str):
        raise problems.InvalidType(f"{name} must be a string: {allowed}.", field=name)
    if not pattern.fullmatch(value):
        raise problems.InvalidValue(f"{name} must be {allowed}.", field=name)
    return value


def read_integer(fields: Mapping[str, Any], name: str, *, default: int, least: int, most: int) -> int:
    """The integer `name`, or its default. `true`, `1.0` and `"1"` are not integers. Raises a `Refusal`."""
    value = fields.get(name, default)
    if type(value) is not int:
        raise problems.InvalidType(f"{name} must be an integer from {least} to {most}.", field=name)
    if not least <= value <= most:
        raise problems.InvalidValue(f"{name} must be an integer from {least} to {most}.", field=name)
    return value


def refuse_other_fields(fields: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise `ClientIdInBody` or `UnknownField` for the first field that isn't one of `known`."""
    for name in fields:
        if name == "client_id":
            raise problems.ClientIdInBody("Do not send client_id: the token identifies the client.", field=name)
        if name not in known:
            raise problems.UnknownField(f"Allowed fields: {', '.join(sorted(known))}.", field=printable(name))


def printable(name: str) -> str:
    """A field's name as it may be echoed: ASCII escapes for the rest, cut to 64 characters."""
    return json.dumps(name)[1:-1][:64]


def _read_bytes(request: Request, body_bytes_max: int) -> bytes:
    if not request.body_is_base64:
        body = request.body.encode("utf-8", "surrogatepass")
    elif len(request.body) <= (body_bytes_max + 2) // 3 * 4:
        body = _decode_base64(request.body)
    else:
        raise _too_large(body_bytes_max)
    if len(body) > body_bytes_max:
        raise _too_large(body_bytes_max)
    return body


def _too_large(body_bytes_max: int) -> problems.BodyTooLarge:
    return problems.BodyTooLarge(f"A body may have at most {body_bytes_max} bytes.")


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise problems.InvalidJson("The body is not valid base64.") from error


def _why_invalid(request: Request, body: bytes, error: json.JSONDecodeError) -> str:
    if not body.strip():
        return "The body is empty: send a JSON object."
    if body.startswith(b"\xef\xbb\xbf"):
        return "The body starts with a byte order mark: send UTF-8 without one."
    where = f"The body is not valid JSON at line {error.lineno}, column {error.colno}."
    form = request.headers.get("content-type", "").lower().startswith(FORM_TYPES)
    return f"{where} Send JSON, not a form." if form and not body.lstrip().startswith(b"{") else where


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise problems.DuplicateField("Send each field once.", field=printable(name))
        fields[name] = value
    return fields


def _refuse_constant(_: str) -> NoReturn:
    raise problems.InvalidJson("NaN and Infinity are not JSON.")


def _bounded_integer(digits: str) -> int:
    # An integer of thousands of digits costs quadratic time to read, and forty are out of any range just as well.
    return int(digits[:40])


STRICT_JSON = json.JSONDecoder(
    object_pairs_hook=_unique_fields, parse_constant=_refuse_constant, parse_int=_bounded_integer
)
