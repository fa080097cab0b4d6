"""Paged listings: their query, and the cursors that lead from page to page."""

import base64
import re
import urllib.parse
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeVar

from paypilot.http.body import printable
from paypilot.http.problems import InvalidQuery
from paypilot.http.request import Request

LIMIT = re.compile(r"[0-9]{1,3}")
LIMIT_DEFAULT, LIMIT_MAX = 50, 200

Entry = TypeVar("Entry")


class Page(NamedTuple):
    """What a listing was asked for. `after` is the id of the previous page's last entry, or None on the first page.

    `kind` is the part of the listing that was asked for, or None. `mark` begins each cursor of this listing, so that
    another listing refuses it.
    """

    limit: int
    after: uuid.UUID | None
    kind: str | None
    mark: bytes


def read_page(request: Request, marks: Mapping[str | None, bytes]) -> Page:
    """The query of a listing: `limit`, `cursor`, and `kind` where it has kinds. Raises `InvalidQuery`.

    `marks` has each kind's mark, and that of the whole listing under None.
    """
    kinds = [kind for kind in marks if kind is not None]
    allowed = ("limit", "cursor", "kind") if kinds else ("limit", "cursor")
    parameters: dict[str, str] = {}
    for name, value in urllib.parse.parse_qsl(request.query, keep_blank_values=True):
        if name not in allowed:
            raise InvalidQuery(f"Allowed query parameters: {', '.join(allowed)}.", field=printable(name))
        if name in parameters:
            raise InvalidQuery("Send each query parameter once.", field=name)
        parameters[name] = value
    limit = parameters.get("limit", str(LIMIT_DEFAULT))
    if not (LIMIT.fullmatch(limit) and 1 <= int(limit) <= LIMIT_MAX):
        raise InvalidQuery(f"limit must be a whole number from 1 to {LIMIT_MAX}.", field="limit")
    kind = parameters.get("kind")
    if kind not in marks:
        raise InvalidQuery(f"kind must be {' or '.join(kinds)}.", field="kind")
    cursor = parameters.get("cursor")
    after = None if cursor is None else read_cursor(marks[kind], cursor)
    return Page(int(limit), after, kind, marks[kind])


def cut_page(
    page: Page, entries: Sequence[Entry], id_of: Callable[[Entry], uuid.UUID]
) -> tuple[Sequence[Entry], str | None]:
    """The page's own entries and its `next`, of `entries` that were read with one more than its limit."""
    own = entries[: page.limit]
    return own, write_cursor(page.mark, id_of(own[-1])) if len(entries) > page.limit else None


def write_cursor(mark: bytes, last_id: uuid.UUID) -> str:
    """The cursor that goes on after the entry `last_id`."""
    return base64.urlsafe_b64encode(mark + last_id.bytes).rstrip(b"=").decode()


def read_cursor(mark: bytes, cursor: str) -> uuid.UUID:
    """The id in a cursor. Raises `InvalidQuery` for anything that `write_cursor` doesn't write for `mark`."""
    try:
        last_id = uuid.UUID(bytes=base64.urlsafe_b64decode(cursor + "=")[1:])
    except ValueError:
        refuse_cursor()
    if write_cursor(mark, last_id) != cursor:
        refuse_cursor()
    return last_id


def refuse_cursor() -> NoReturn:
    raise InvalidQuery("cursor must be the `next` value of the previous page of this listing.", field="cursor")
