"""One Idempotency-Key, one decision."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from contract.caller import Caller, new_invoice, new_key, read, recorded_once, refused

VALUES: dict[str, Any] = {"failure_code": "insufficient_funds", "attempt": 2, "prior_failures": 1}


def test_the_same_key_and_values_get_the_first_bytes_again_and_write_nothing(client: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    first = client.try_decide(invoice, key, **VALUES)
    client.decide(invoice, **VALUES)
    again = client.try_decide(invoice, key, **VALUES)
    assert again.content == first.content
    assert again.headers["repr-digest"] == first.headers["repr-digest"]
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert len(client.history(invoice).decisions) == 2


def test_the_default_values_are_values(client: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    first = client.decide(invoice, key)
    assert client.decide(invoice, key, attempt=1, prior_failures=0) == first


@pytest.mark.parametrize(
    "other",
    [{"invoice_id": "x"}, {"failure_code": "Insufficient_funds"}, {"attempt": 3}, {"prior_failures": 0}],
    ids=lambda other: next(iter(other)),
)
def test_the_same_key_with_another_value_is_refused_and_leaves_one_row(
    client: Caller, other: dict[str, object]
) -> None:
    invoice, key = new_invoice(), new_key()
    first = client.decide(invoice, key, **VALUES)
    last = client.newest_refusal()
    changed = {"invoice_id": invoice, **VALUES, **other}
    response = client.post("/decide", changed, headers={"idempotency-key": key})
    problem = refused(response, 422, "idempotency_key_reused")
    recorded_once(client, last, problem, "POST /decide", "idempotency_key")
    assert client.history(invoice).decisions == [first]
    assert client.decide(invoice, key, **VALUES) == first


def test_a_refused_request_does_not_use_its_key_up(client: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    refused(client.try_decide(invoice, key, attempt=0), 422, "invalid_value", "attempt")
    assert "idempotent-replayed" not in client.try_decide(invoice, key, attempt=1).headers


def test_a_replay_of_a_fall_through_is_listed_once(client: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    last = client.newest_refusal()
    decision = client.decide(invoice, key, failure_code="not_listed")
    client.decide(invoice, key, failure_code="not_listed")
    assert [entry.id for entry in client.refusals_since(last)] == [decision.decision_id]


@pytest.mark.parametrize("key", ["k", "~", "!", "with a space", '"quoted"', "{}", "k" * 255], ids=len)
def test_a_key_is_1_to_255_printable_ascii_characters(client: Caller, key: str) -> None:
    invoice = new_invoice()
    # A short key can't be fresh: on a slice that has seen it, it is refused for its other values, never as invalid.
    response = client.try_decide(invoice, key)
    assert response.status_code == 200 or response.json()["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(
    "key",
    [b"", b"k" * 256, b"k\xe9", "ké".encode(), b"a\tb", b"a,b"],
    ids=["empty", "long", "latin1", "utf8", "tab", "comma"],
)
def test_any_other_key_is_refused_and_leaves_one_row(client: Caller, key: bytes) -> None:
    last = client.newest_refusal()
    response = client.send("POST", "/decide", headers=[(b"idempotency-key", key)], content=b"{")
    problem = refused(response, 422, "idempotency_key_invalid")
    recorded_once(client, last, problem, "POST /decide", "idempotency_key")


def test_the_other_routes_do_not_read_the_header(client: Caller) -> None:
    assert client.get("/refusals", headers={"idempotency-key": ""}).status_code == 200
    invoice = new_invoice()
    client.decide(invoice)
    body = {"outcome": "paid", "report_key": new_key()}
    path = f"/decisions/{invoice}/outcome"
    assert client.post(path, body, headers={"idempotency-key": "k" * 300}).status_code == 201


def test_keys_compare_with_case(client: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    assert client.decide(invoice, key).decision_id != client.decide(invoice, key.upper()).decision_id


def test_a_hundred_concurrent_calls_with_one_key_give_one_row_and_one_body(crowd: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    with ThreadPoolExecutor(100) as threads:
        answers = list(threads.map(lambda _: crowd.try_decide(invoice, key, **VALUES), range(100)))
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert crowd.history(invoice).decisions == [read(answers[0], "Decision")]


def test_a_hundred_concurrent_calls_with_one_key_and_two_requests_decide_one_of_them(crowd: Caller) -> None:
    key = new_key()
    invoices = [new_invoice(), new_invoice()]
    with ThreadPoolExecutor(100) as threads:
        answers = list(threads.map(lambda n: crowd.try_decide(invoices[n % 2], key), range(100)))
    decided = {answer.content for answer in answers if answer.status_code == 200}
    assert len(decided) == 1
    refusals = [answer for answer in answers if answer.status_code != 200]
    assert len(refusals) == 50
    for answer in refusals:
        refused(answer, 422, "idempotency_key_reused")
    assert sum(crowd.get(f"/decisions/{invoice}").status_code == 200 for invoice in invoices) == 1
