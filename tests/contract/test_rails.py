"""The rails: anyone may look a code up, and `POST /decide` answers by the same table."""

import hashlib

import pytest

from contract.caller import Caller, Values, canonical, new_invoice, new_key, read, refused

PUBLIC = "public, max-age=300"
LISTED = {"ach": ["R01", "R02", "R08", "R11", "R29"], "sepa": ["AM04", "AC01", "MS02", "AG02", "MD07"]}
UNLISTED = [("ach", "R00"), ("ach", "R24"), ("ach", "R99"), ("sepa", "ZZZZ"), ("sepa", "0000")]
NO_CODES = [("ach", "R1"), ("ach", "r01"), ("ach", "X01"), ("ach", "R100"), ("sepa", "am04"), ("sepa", "AM4")]


def look_up(client: Caller, rail: str, code: str) -> Values:
    return read(client.get(f"/rails/{rail}/codes/{code}", auth=False), "RailAnswer")


def test_the_rails_are_told_to_anyone(client: Caller) -> None:
    told = read(client.get("/rails", auth=False), "Rails")
    assert [(rail.rail, rail.refuses) for rail in told.rails] == [("ach", False), ("bacs", True), ("sepa", False)]


@pytest.mark.parametrize("rail", ["ach", "sepa", "bacs"])
def test_a_table_has_the_version_that_the_list_gives_it(client: Caller, rail: str) -> None:
    response = client.get(f"/rails/{rail}", auth=False)
    assert read(response, "RailTable").rail == rail
    version = f"sha256:{hashlib.sha256(response.content).hexdigest()}"
    told = read(client.get("/rails", auth=False), "Rails")
    assert {each.rail: each.version for each in told.rails}[rail] == version
    assert response.headers["etag"] == f'"{version}"'
    assert canonical(response.json()) == response.content


@pytest.mark.parametrize(("rail", "code"), [(rail, code) for rail, codes in LISTED.items() for code in codes])
def test_a_listed_code_is_answered_by_its_own_row(client: Caller, rail: str, code: str) -> None:
    answer = look_up(client, rail, code)
    assert (answer.matched, answer.row) == (True, LISTED[rail].index(code) + 1)


@pytest.mark.parametrize(("rail", "code"), UNLISTED)
def test_an_unlisted_code_falls_to_the_row_that_never_goes_again(client: Caller, rail: str, code: str) -> None:
    answer = look_up(client, rail, code)
    assert (answer.matched, answer.row, answer.goes_again, answer.family) == (False, 5, "no", None)
    assert "fell through" in answer.reason


@pytest.mark.parametrize("path", ["/rails", "/rails/ach", "/rails/ach/codes/R01"])
def test_an_answer_may_be_kept_and_is_confirmed_without_its_body(client: Caller, path: str) -> None:
    first = client.get(path, auth=False)
    assert first.headers["cache-control"] == PUBLIC
    for known in (first.headers["etag"], "*"):
        again = client.get(path, auth=False, headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    other = client.get(path, auth=False, headers={"if-none-match": '"another"'})
    assert (other.status_code, other.content) == (200, first.content)
    head = client.send("HEAD", path, auth=False)
    assert (head.status_code, head.headers["etag"]) == (200, first.headers["etag"])


@pytest.mark.parametrize(("rail", "code"), NO_CODES)
def test_what_is_no_code_is_refused_by_name_and_leaves_no_row(client: Caller, rail: str, code: str) -> None:
    last = client.newest_refusal()
    problem = refused(client.get(f"/rails/{rail}/codes/{code}", auth=False), 422, "not_a_rail_code")
    assert not hasattr(problem, "refusal_id")
    assert client.newest_refusal() == last


@pytest.mark.parametrize("path", ["/rails/fedwire", "/rails/ACH", "/rails/fedwire/codes/R01"])
def test_a_rail_that_is_not_registered_is_not_found(client: Caller, path: str) -> None:
    refused(client.get(path, auth=False), 404, "not_found")


@pytest.mark.parametrize(
    "path", ["/rails/", "/rails/ach/", "/rails/ach/R01", "/rails/ach/codes", "/rails/ach/codes/R01/"]
)
def test_another_path_is_no_route(client: Caller, path: str) -> None:
    refused(client.get(path, auth=False), 404, "not_found")


def test_the_rails_are_only_read(client: Caller) -> None:
    for path in ("/rails", "/rails/ach", "/rails/ach/codes/R01"):
        response = client.send("POST", path, content=b"{}")
        refused(response, 405, "method_not_allowed")
        assert response.headers["allow"] == "GET, HEAD"


def test_a_rail_that_refuses_says_why_and_what_would_change_it(client: Caller) -> None:
    problem = refused(client.get("/rails/bacs/codes/0", auth=False), 422, "rail_refused")
    assert problem.refusal.why and problem.refusal.what_would_change_it


@pytest.mark.parametrize(("rail", "code"), [("ach", "R01"), ("ach", "R11"), ("ach", "R99"), ("sepa", "AM04")])
def test_a_decision_says_what_the_look_up_says(client: Caller, rail: str, code: str) -> None:
    answer = look_up(client, rail, code)
    decision = client.decide(new_invoice(), failure_code=f"{rail}:{code}")
    part = decision.rail
    assert (part.row, part.goes_again, part.changes_first) == (answer.row, answer.goes_again, answer.changes_first)
    assert (decision.action, decision.tone) == (answer.policy.action, answer.policy.tone)
    assert decision.retry_in_days == answer.policy.retry_in_days
    assert decision.rules_version == answer.version
    assert decision.rule == (f"{rail}:{code}" if answer.matched else f"{rail}:default")
    assert decision.gates_checked[2].result == ("matched" if answer.matched else "fell_through")


def test_two_reinitiations_are_decided_and_a_third_never(client: Caller) -> None:
    invoice = new_invoice()
    decisions = [client.decide(invoice, failure_code="ach:R01", attempt=attempt) for attempt in (1, 2, 3, 4)]
    assert [decision.retry_in_days for decision in decisions] == [3, 3, None, None]
    assert [each.rail.limit_used_up for each in decisions] == [False, False, True, True]


def test_a_rail_decision_is_answered_again_byte_for_byte(client: Caller) -> None:
    invoice, key = new_invoice(), new_key()
    first = client.try_decide(invoice, key, failure_code="sepa:AM04")
    again = client.try_decide(invoice, key, failure_code="sepa:AM04")
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert client.get(f"/decisions/{invoice}").json()["decisions"] == [first.json()]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("bacs:0", "rail_refused"),
        ("bacs:anything", "rail_refused"),
        ("ach:xyz", "not_a_rail_code"),
        ("ach:r01", "not_a_rail_code"),
        ("ACH:R01", "not_a_rail_code"),
    ],
)
def test_a_refused_rail_code_is_on_record_and_decides_nothing(client: Caller, code: str, reason: str) -> None:
    last, invoice = client.newest_refusal(), new_invoice()
    problem = refused(client.try_decide(invoice, failure_code=code), 422, reason, "failure_code")
    (row,) = client.refusals_since(last)
    assert (row.id, row.gate, row.reason) == (problem.refusal_id, "rules_table", reason)
    refused(client.get(f"/decisions/{invoice}"), 404, "not_found")


def test_a_code_that_names_no_rail_is_the_table_s_and_has_no_rail(client: Caller) -> None:
    decision = client.decide(new_invoice(), failure_code="foo:R01")
    assert (decision.rule, hasattr(decision, "rail")) == ("default", False)
