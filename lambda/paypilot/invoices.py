"""Which texts name an invoice."""

import re
from collections.abc import Mapping
from typing import Any

from paypilot.http.body import read_text
from paypilot.http.problems import InvalidValue, NotFound

INVOICE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}")
# It would be the path of another route.
SUMMARY_ID = "outcomes/summary"
ALLOWED = (
    "1-255 of A-Z a-z 0-9 . _ : / -, the first a letter or digit, with no empty, . or .. path segment, "
    f"and not {SUMMARY_ID}"
)


def is_invoice_id(text: str) -> bool:
    """Whether `text` can name an invoice: the characters, no segment that a path would fold away, no route's name."""
    segments = text.split("/")
    return (
        INVOICE_ID.fullmatch(text) is not None
        and not any(segment in {"", ".", ".."} for segment in segments)
        and text != SUMMARY_ID
    )


def read_invoice_id(fields: Mapping[str, Any]) -> str:
    """A body's `invoice_id`. Raises a `Refusal`."""
    invoice_id = read_text(fields, "invoice_id", INVOICE_ID, ALLOWED)
    if not is_invoice_id(invoice_id):
        raise InvalidValue(f"invoice_id must be {ALLOWED}.", field="invoice_id")
    return invoice_id


def check_path_id(invoice_id: str) -> str:
    """A path's invoice id. Raises `NotFound` for a text that names no invoice."""
    if not is_invoice_id(invoice_id):
        raise NotFound("No such path.")
    return invoice_id


def no_such_invoice() -> NotFound:
    return NotFound("No decision is recorded for this invoice.")
