"""Refusals: recorded 4xx answers, listed together with the decisions whose code fell through."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from paypilot.call import Call
from paypilot.http.page import Page, cut_page, read_page, refuse_cursor
from paypilot.http.problems import Refusal
from paypilot.http.response import Response, json_response
from paypilot.record.rows import Record, insert_statement, new_id, timestamp

LISTING: Mapping[str | None, bytes] = {None: b"a", "refusal": b"r", "fell_through": b"f"}


class RefusalEntry(NamedTuple):
    """A refusal, or a decision whose code fell through the table."""

    id: uuid.UUID
    kind: str
    route: str
    gate: str
    reason: str
    at: datetime


INSERT_REFUSAL = insert_statement(
    "decision_refusals", ("refusal_id", "route", "gate", "reason"), returning=("refusal_id",)
)

SELECT_CURSOR = """
SELECT refused_at FROM paypilot.decision_refusals
WHERE client_id = %(client)s AND refusal_id = %(after)s AND %(kind)s::text IS DISTINCT FROM 'fell_through'
UNION ALL
SELECT decided_at FROM paypilot.decision_audit
WHERE client_id = %(client)s AND decision_id = %(after)s AND NOT matched
  AND %(kind)s::text IS DISTINCT FROM 'refusal'
"""

SELECT_REFUSALS = f"""
WITH bound AS MATERIALIZED (
    SELECT coalesce(({SELECT_CURSOR}), 'infinity') AS at,
           coalesce(%(after)s, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) AS id)
(SELECT refusal_id AS id, 'refusal' AS kind, route, gate, reason, refused_at AS at
 FROM paypilot.decision_refusals
 WHERE client_id = %(client)s AND %(kind)s::text IS DISTINCT FROM 'fell_through'
   AND (refused_at, refusal_id) < ((SELECT at FROM bound), (SELECT id FROM bound))
 ORDER BY refused_at DESC, refusal_id DESC LIMIT %(limit)s)
UNION ALL
(SELECT decision_id, 'fell_through', 'POST /decide', 'rules_table', 'fell_through', decided_at
 FROM paypilot.decision_audit
 WHERE client_id = %(client)s AND NOT matched AND %(kind)s::text IS DISTINCT FROM 'refusal'
   AND (decided_at, decision_id) < ((SELECT at FROM bound), (SELECT id FROM bound))
 ORDER BY decided_at DESC, decision_id DESC LIMIT %(limit)s)
ORDER BY at DESC, id DESC LIMIT %(limit)s
"""  # noqa: S608


def record_refusal(record: Record, route: str, refusal: Refusal) -> None:
    """Commit the refusal and put its id on it: names of our own, never any part of what was refused."""
    refusal_id = new_id()
    record.insert(INSERT_REFUSAL, (refusal_id, route, refusal.gate, refusal.code))
    refusal.members["refusal_id"] = str(refusal_id)


def show_refusals(call: Call) -> Response:
    """`GET /refusals`. Raises `InvalidQuery`."""
    page = read_page(call.request, LISTING)
    shown, following = cut_page(page, read_refusals(call.record, page), lambda entry: entry.id)
    entries = [{**entry._asdict(), "id": str(entry.id), "at": timestamp(entry.at)} for entry in shown]
    return json_response({"refusals": entries, "next": following})


def read_refusals(record: Record, page: Page) -> list[RefusalEntry]:
    """The entries for `page`, newest first, with one more if there is. Raises `InvalidQuery` for another's cursor."""
    cursor_row, rows = record.query(
        SELECT_CURSOR, SELECT_REFUSALS, after=page.after, kind=page.kind, limit=page.limit + 1
    )
    if page.after is not None and not cursor_row:
        refuse_cursor()
    return [RefusalEntry(*row) for row in rows]
