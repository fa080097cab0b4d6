"""No answer tells one client that another exists."""

from contract.caller import Caller, new_invoice, new_key, refused


def test_another_clients_invoice_is_answered_as_one_that_nobody_knows(client: Caller, other: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    client.decide(invoice)
    client.report(invoice, "paid", key)
    nobody = new_invoice()
    for path in (f"/decisions/{invoice}", f"/decisions/{invoice}?limit=1"):
        theirs, unknown = other.get(path), other.get(path.replace(invoice, nobody))
        refused(theirs, 404, "not_found")
        assert theirs.content == unknown.content
    theirs, unknown = other.try_report(invoice, "paid", new_key()), other.try_report(nobody, "paid", new_key())
    refused(theirs, 404, "not_found")
    assert theirs.content == unknown.content
    # Its report_key as well: had it been found, this were a replay.
    refused(other.try_report(invoice, "paid", key), 404, "not_found")
    assert client.history(invoice).outcome == "paid"


def test_two_clients_may_have_the_same_invoice_and_the_same_keys(client: Caller, other: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    mine = client.decide(invoice, key, failure_code="card_expired")
    theirs = other.decide(invoice, key, failure_code="insufficient_funds")
    client.report(invoice, "paid", key)
    other.report(invoice, "not_paid", key)
    for caller, decision, outcome in ((client, mine, "paid"), (other, theirs, "not_paid")):
        history = caller.history(invoice)
        assert (history.decisions, history.outcome) == ([decision], outcome)


def test_a_cursor_of_another_client_is_answered_as_one_that_was_made_up(client: Caller, other: Caller) -> None:
    invoice = new_invoice()
    for caller in (client, other):
        for _ in range(2):
            caller.decide(invoice, failure_code="not_listed")
    for path in (f"/decisions/{invoice}?limit=1", "/refusals?limit=1"):
        cursor = client.get(path).json()["next"]
        made_up = cursor[:4] + "A" * (len(cursor) - 4)
        theirs, unknown = other.get(f"{path}&cursor={cursor}"), other.get(f"{path}&cursor={made_up}")
        refused(theirs, 422, "invalid_query", "cursor")
        assert theirs.content == unknown.content


def test_refusals_and_counts_are_a_clients_own(client: Caller, other: Caller) -> None:
    last, before = other.newest_refusal(), other.summary()
    invoice = new_invoice()
    client.decide(invoice, failure_code="not_listed")
    client.report(invoice, "paid")
    refused(client.try_decide(invoice, attempt=0), 422, "invalid_value", "attempt")
    assert other.refusals_since(last) == []
    assert other.summary() == before
