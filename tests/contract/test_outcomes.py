"""What became of an invoice: each report is a row, the newest is the outcome."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from contract.caller import Caller, canonical, new_invoice, new_key, read, recorded_once, refused


@pytest.fixture
def invoice(client: Caller) -> str:
    """An invoice with one decision and no report."""
    invoice = new_invoice()
    client.decide(invoice)
    return invoice


def test_nobody_having_told_us_is_unknown(client: Caller, invoice: str) -> None:
    assert client.history(invoice).outcome == "unknown"


@pytest.mark.parametrize("outcome", ["paid", "not_paid"])
def test_a_report_is_recorded_and_is_the_invoices_outcome(client: Caller, invoice: str, outcome: str) -> None:
    key = new_key()
    response = client.try_report(invoice, outcome, key)
    report = read(response, "Outcome", 201)
    assert (report.invoice_id, report.outcome, report.report_key) == (invoice, outcome, key)
    assert response.content == canonical(response.json())
    assert response.headers["repr-digest"]
    assert "idempotent-replayed" not in response.headers
    assert client.history(invoice).outcome == outcome


def test_a_banks_late_truth_is_a_new_report_and_the_newest_counts(client: Caller, invoice: str) -> None:
    for outcome in ("paid", "not_paid", "paid", "not_paid"):
        client.report(invoice, outcome)
        assert client.history(invoice).outcome == outcome


def test_the_same_report_again_is_the_first_one_byte_for_byte_and_changes_nothing(client: Caller, invoice: str) -> None:
    key = new_key()
    first = client.try_report(invoice, "paid", key)
    client.report(invoice, "not_paid")
    again = client.try_report(invoice, "paid", key)
    assert again.status_code == 200
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["repr-digest"] == first.headers["repr-digest"]
    assert client.history(invoice).outcome == "not_paid"


def test_a_key_that_reported_something_else_is_refused_and_leaves_one_row(client: Caller, invoice: str) -> None:
    key, second = new_key(), new_invoice()
    client.decide(second)
    client.report(invoice, "paid", key)
    for path_invoice, outcome in ((invoice, "not_paid"), (second, "paid"), (new_invoice(), "paid")):
        last = client.newest_refusal()
        problem = refused(client.try_report(path_invoice, outcome, key), 409, "report_key_reused")
        recorded_once(client, last, problem, "POST /decisions/{invoice_id}/outcome", "report_key")
    assert (client.history(invoice).outcome, client.history(second).outcome) == ("paid", "unknown")


def test_an_invoice_with_no_decision_is_not_found_and_nothing_is_recorded(client: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    last = client.newest_refusal()
    response = client.try_report(invoice, "paid", key)
    refused(response, 404, "not_found")
    assert response.content == client.get(f"/decisions/{invoice}").content
    assert client.refusals_since(last) == []
    client.decide(invoice)
    assert client.history(invoice).outcome == "unknown"
    client.report(invoice, "paid", key)


def test_a_refused_report_leaves_the_outcome_and_its_key_alone(client: Caller, invoice: str) -> None:
    key = new_key()
    refused(client.try_report(invoice, "unknown", key), 422, "invalid_value", "outcome")
    assert client.history(invoice).outcome == "unknown"
    client.report(invoice, "paid", key)


def test_a_decision_after_the_report_keeps_the_outcome(client: Caller, invoice: str) -> None:
    client.report(invoice, "paid")
    client.decide(invoice, attempt=2)
    assert client.history(invoice).outcome == "paid"


def test_a_report_key_is_printable_ascii_and_is_not_trimmed(client: Caller, invoice: str) -> None:
    # Spaces at the ends are part of it: it stands in the body, not in a header.
    key = new_key()
    reports = [client.report(invoice, "paid", each) for each in (key, f" {key}", f"{key} ", key.ljust(255, "~"))]
    assert len({report.outcome_id for report in reports}) == 4


def test_an_idempotency_key_and_a_report_key_have_nothing_to_do_with_each_other(client: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    client.decide(invoice, key)
    client.report(invoice, "paid", key)


def test_a_hundred_concurrent_reports_with_one_key_give_one_row_and_one_body(crowd: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    crowd.decide(invoice)
    before = crowd.summary()
    with ThreadPoolExecutor(100) as threads:
        answers = list(threads.map(lambda _: crowd.try_report(invoice, "paid", key), range(100)))
    assert sorted(answer.status_code for answer in answers) == [200] * 99 + [201]
    assert all((answer.status_code == 200) == ("idempotent-replayed" in answer.headers) for answer in answers)
    assert len({answer.content for answer in answers}) == 1
    assert crowd.summary().paid == before.paid + 1


def test_of_a_hundred_concurrent_reports_with_one_key_one_is_recorded(crowd: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    crowd.decide(invoice)
    outcomes = list(itertools.islice(itertools.cycle(["paid", "not_paid"]), 100))
    with ThreadPoolExecutor(100) as threads:
        answers = list(threads.map(lambda outcome: crowd.try_report(invoice, outcome, key), outcomes))
    assert len({answer.content for answer in answers if answer.status_code < 400}) == 1
    assert sorted({answer.status_code for answer in answers}) == [200, 201, 409]
    assert [answer.status_code for answer in answers].count(409) == 50
