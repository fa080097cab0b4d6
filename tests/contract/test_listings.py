"""The two listings and their pages."""

import json
import uuid

import pytest

from contract.caller import Caller, Values, new_invoice, refused


def leave_entries(client: Caller, kinds: str) -> list[Values]:
    """One refusal (r) or fall-through (f) after the other; what is listed of them, newest first."""
    last = client.newest_refusal()
    for kind in kinds:
        if kind == "f":
            client.decide(new_invoice(), failure_code="not_listed")
        else:
            refused(client.try_decide(new_invoice(), attempt=0), 422, "invalid_value", "attempt")
    entries = client.refusals_since(last)
    assert "".join(entry.kind[0] for entry in entries) == kinds[::-1]
    return entries


def listed(client: Caller, query: str, count: int) -> list[Values]:
    """The first `count` entries, taken page by page."""
    seen: list[Values] = []
    for page in client.pages(f"/refusals?{query}", "Refusals"):
        seen += page.refusals
        if len(seen) >= count:
            break
    return seen[:count]


@pytest.fixture(scope="module")
def decided(client: Caller) -> tuple[str, list[Values]]:
    """An invoice with seven decisions, newest first."""
    invoice = new_invoice()
    return invoice, [client.decide(invoice, attempt=attempt) for attempt in range(1, 8)][::-1]


@pytest.mark.parametrize("limit", range(1, 9))
def test_the_pages_of_a_history_hold_each_decision_once_newest_first(
    client: Caller, decided: tuple[str, list[Values]], limit: int
) -> None:
    invoice, decisions = decided
    pages = list(client.pages(f"/decisions/{invoice}?limit={limit}", "History"))
    assert [decision for page in pages for decision in page.decisions] == decisions
    assert [len(page.decisions) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert len(pages) == -(-7 // limit)
    assert {(page.invoice_id, page.outcome) for page in pages} == {(invoice, "unknown")}


def test_a_page_is_fifty_entries_unless_asked_otherwise(client: Caller) -> None:
    invoice = new_invoice()
    for _ in range(51):
        client.decide(invoice, failure_code="not_listed")
    first = client.history(invoice)
    assert len(first.decisions) == 50
    assert first.next
    assert len(client.history(invoice, f"?cursor={first.next}").decisions) == 1
    assert client.history(invoice, "?limit=51").next is None
    refusals = client.refusals()
    assert len(refusals.refusals) == 50
    assert refusals.next


def test_a_cursor_goes_on_where_its_page_ended_whatever_came_since(client: Caller) -> None:
    invoice = new_invoice()
    old = [client.decide(invoice) for _ in range(3)][::-1]
    page = client.history(invoice, "?limit=1")
    client.decide(invoice)
    rest = client.history(invoice, f"?cursor={page.next}&limit=200")
    assert [*page.decisions, *rest.decisions] == old


def test_the_pages_of_refusals_hold_each_entry_once_newest_first(client: Caller) -> None:
    entries = leave_entries(client, "rfrrffr")
    for limit in (1, 2, 3, 7):
        assert listed(client, f"limit={limit}", len(entries)) == entries


@pytest.mark.parametrize("kind", ["refusal", "fell_through"])
def test_refusals_are_listed_by_kind(client: Caller, kind: str) -> None:
    entries = [entry for entry in leave_entries(client, "frffrrf") if entry.kind == kind]
    assert listed(client, f"limit=2&kind={kind}", len(entries)) == entries


def test_the_last_page_of_refusals_leads_nowhere(client: Caller) -> None:
    leave_entries(client, "rf")
    *before, last = client.pages("/refusals?limit=200", "Refusals")
    assert all(len(page.refusals) == 200 for page in before)
    assert last.refusals


def test_a_last_page_that_is_just_full_leads_nowhere(other: Caller) -> None:
    # `other` leaves few entries elsewhere in this suite, so that one page holds all of a fresh slice's.
    leave_entries(other, "rfr")
    everything = other.refusals("?limit=200")
    if everything.next is None:
        assert other.refusals(f"?limit={len(everything.refusals)}") == everything


def test_times_and_ids_agree_with_the_order(client: Caller) -> None:
    entries = client.refusals("?limit=200").refusals
    assert [(entry.at, entry.id) for entry in entries] == sorted(
        ((entry.at, entry.id) for entry in entries), reverse=True
    )
    assert len({entry.id for entry in entries}) == len(entries)


def test_a_cursor_of_another_listing_invoice_or_kind_is_refused(
    client: Caller, decided: tuple[str, list[Values]]
) -> None:
    invoice, _ = decided
    second = new_invoice()
    for _ in range(2):
        client.decide(second)
    leave_entries(client, "rfrf")
    of_history = client.history(invoice, "?limit=1").next
    of_second = client.history(second, "?limit=1").next
    of_fell_through = client.refusals("?limit=1&kind=fell_through").next
    of_refusal = client.refusals("?limit=1&kind=refusal").next
    for path in (
        f"/refusals?cursor={of_history}",
        f"/decisions/{invoice}?cursor={of_second}",
        f"/decisions/{invoice}?cursor={of_refusal}",
        f"/decisions/{invoice}?cursor={of_fell_through}",
        f"/refusals?kind=refusal&cursor={of_fell_through}",
        f"/refusals?kind=fell_through&cursor={of_refusal}",
    ):
        refused(client.get(path), 422, "invalid_query", "cursor")


def test_a_cursor_of_the_fall_throughs_is_refused_by_their_invoices_history(client: Caller) -> None:
    invoice = new_invoice()
    for _ in range(2):
        client.decide(invoice, failure_code="unheard_of")
    cursor = client.get("/refusals?kind=fell_through&limit=1").json()["next"]
    for path in (f"/decisions/{invoice}?cursor={cursor}", f"/refusals?cursor={cursor}"):
        refused(client.get(path), 422, "invalid_query", "cursor")


def test_a_cursor_that_was_changed_is_refused(client: Caller, decided: tuple[str, list[Values]]) -> None:
    invoice, _ = decided
    cursor = client.history(invoice, "?limit=1").next
    assert cursor
    made_up = cursor[:4] + "A" * (len(cursor) - 4)
    for changed in (cursor[:-1], cursor[1:], cursor + "A", cursor + "=", cursor.swapcase(), f"%20{cursor}", made_up):
        refused(client.get(f"/decisions/{invoice}?cursor={changed}"), 422, "invalid_query", "cursor")
        refused(client.get(f"/refusals?cursor={changed}"), 422, "invalid_query", "cursor")


def test_a_cursor_for_an_invoice_that_nobody_knows_is_not_found(
    client: Caller, decided: tuple[str, list[Values]]
) -> None:
    cursor = client.history(decided[0], "?limit=1").next
    refused(client.get(f"/decisions/{new_invoice()}?cursor={cursor}"), 404, "not_found")


def test_nothing_of_a_refused_input_is_listed(client: Caller) -> None:
    canary = f"canary{uuid.uuid4().hex}"
    for body in ({canary: 1}, {"invoice_id": canary, "failure_code": canary, canary: canary}, [canary]):
        client.post("/decide", body, headers={"user-agent": canary, "x-request-id": canary})
    client.try_decide(canary, canary * 9)
    assert canary not in json.dumps(client.get("/refusals?limit=10").json())
