"""The rails as data: every code reaches one row, and nothing that isn't listed ever goes again."""

import copy
import string
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paypilot.core import card_table
from paypilot.core.rail_table import ACTIONS, CHANGES_FIRST, TONES, RailTable, a_person_acts_first, policy_at
from paypilot.core.rule import InvalidTable, NotACode, TableRefuses
from paypilot.tables import published_tables

RAILS = {rail.name: rail for rail in published_tables().rails}
ACH, BACS, SEPA = RAILS["ach"], RAILS["bacs"], RAILS["sepa"]
LISTED_SEPA = [row["code"] for row in SEPA.document["codes"]]

# The table as it was asked for: row, goes again, what has to change first, a person acts first, codes.
THE_TABLE = [
    (1, "yes", "nothing", False, "R01 R09"),
    (2, "not_on_this_entry", "account_details", False, "R02 R03 R04 R13 R20 R28"),
    (3, "not_until_they_ask", "their_instruction", False, "R08"),
    (4, "corrected_only", "our_own_entry", False, "R11"),
    (5, "no", "nothing_will", True, "R05 R07 R10 R14 R15 R16 R29"),
]


@pytest.mark.parametrize(("row", "goes_again", "changes_first", "person", "codes"), THE_TABLE)
def test_each_ach_row_decides_for_exactly_its_codes(
    row: int, goes_again: str, changes_first: str, person: bool, codes: str
) -> None:
    disposition = ACH.dispositions()[row - 1]
    said = [disposition["row"], disposition["goes_again"], disposition["changes_first"]]
    assert said == [row, goes_again, changes_first]
    assert disposition["a_person_acts_first"] is person
    assert disposition["codes"] == codes.split()
    for code in codes.split():
        answer = ACH.answer(code)
        assert (answer["matched"], answer["row"], answer["goes_again"]) == (True, row, goes_again)
        assert (answer["changes_first"], answer["a_person_acts_first"]) == (changes_first, person)
        assert answer["sources"], "a listed code without a source"


def test_every_ach_code_hits_one_row_and_only_two_go_again_as_they_are() -> None:
    answers = [ACH.answer(f"R{number:02}") for number in range(100)]
    listed = {code for _, _, _, _, codes in THE_TABLE for code in codes.split()}
    assert {answer["code"] for answer in answers if answer["matched"]} == listed
    assert {answer["row"] for answer in answers} == {1, 2, 3, 4, 5}
    assert [answer["code"] for answer in answers if answer["goes_again"] == "yes"] == ["R01", "R09"]
    for answer in answers:
        if not answer["matched"]:
            assert (answer["row"], answer["goes_again"], answer["a_person_acts_first"]) == (5, "no", True)
            assert "fell through" in answer["reason"]
            assert answer["family"] is None


@pytest.mark.parametrize(
    ("rail", "code"),
    [
        *(
            (ACH, code)
            for code in ("", "R1", "r01", "X01", "R100", " R01", "R01\n", "R0\u0661", "ach:R01", "R01' OR '1")
        ),
        *((SEPA, code) for code in ("", "am04", "AM4", "AM004", "AM04 ", "ÄM04", "AM0\n")),
    ],
)
def test_what_is_no_code_is_refused_and_says_what_one_is(rail: RailTable, code: str) -> None:
    answer = rail.look_up(code)
    assert isinstance(answer, NotACode)
    assert {ACH: "R00 to R99", SEPA: "four upper-case letters or digits"}[rail] in answer.detail


@given(st.text())
def test_no_text_without_a_match_ever_goes_again(text: str) -> None:
    for rail in (ACH, SEPA):
        answer = rail.look_up(text)
        if not isinstance(answer, NotACode | TableRefuses):
            assert answer["matched"] or (answer["goes_again"], answer["policy"]["retry_in_days"]) == ("no", None)


@given(st.text(alphabet=string.ascii_uppercase + string.digits, min_size=4, max_size=4))
def test_a_sepa_code_that_is_not_listed_falls_through_to_a_person(code: str) -> None:
    assume(code not in LISTED_SEPA)
    answer = SEPA.answer(code)
    assert (answer["matched"], answer["row"], answer["goes_again"]) == (False, 5, "no")
    assert answer["policy"] == {"action": "refer_to_person", "tone": "plain_no_blame", "retry_in_days": None}


def test_every_listed_sepa_code_hits_one_row_and_only_am04_goes_again_as_it_is() -> None:
    rows = SEPA.dispositions()
    for code in LISTED_SEPA:
        assert [row["row"] for row in rows if code in row["codes"]] == [SEPA.answer(code)["row"]]
    assert all(row["codes"] for row in rows)
    assert [code for code in LISTED_SEPA if SEPA.answer(code)["goes_again"] == "yes"] == ["AM04"]


def test_sepa_states_its_refund_windows_and_invents_no_limit() -> None:
    assert str(SEPA.answer("MD06")["refund_window"]).startswith("8 weeks")
    assert str(SEPA.answer("MD01")["refund_window"]).startswith("13 months")
    assert SEPA.answer("MD01")["r_types"] == ["reject", "return", "refund"]
    assert all(row["limit"] is None for row in SEPA.dispositions())


def test_a_code_that_may_hide_a_death_is_not_retried_though_a_provider_does() -> None:
    answer = SEPA.answer("MS03")
    assert (answer["goes_again"], answer["a_person_acts_first"]) == ("no", True)
    assert {source for side in answer["disagreements"][0]["sides"] for source in side["sources"]} >= {"adyen"}


def test_only_r01_and_r09_carry_the_reinitiation_limit_and_it_names_its_sources() -> None:
    limited = [code for code in (f"R{n:02}" for n in range(100)) if ACH.answer(code)["limit"]]
    assert limited == ["R01", "R09"]
    limit = ACH.answer("R01")["limit"]
    assert limit is not None
    assert (limit["reinitiations"], limit["within_days"]) == (2, 180)
    assert "settlement date" in limit["counted_from"]
    assert ACH.cite(limit["sources"])


@pytest.mark.parametrize("code", ["R01", "R09"])
def test_two_reinitiations_are_allowed_and_a_third_never(code: str) -> None:
    answer = ACH.answer(code)
    assert [policy_at(answer, attempt)["retry_in_days"] for attempt in (1, 2, 3, 1000)] == [3, 3, None, None]
    assert policy_at(answer, 3)["action"] == "request_manual_payment"


def test_a_family_is_reported_only_where_a_source_states_it() -> None:
    families = {row["code"]: row["family"] for row in ACH.document["codes"] if row["family"]}
    unauthorized = dict.fromkeys(["R05", "R07", "R10", "R11", "R29"], "unauthorized")
    assert families == unauthorized | dict.fromkeys(["R02", "R03", "R04"], "administrative")
    assert all("thr" in row["sources"] for row in ACH.document["codes"] if row["family"])


@pytest.mark.parametrize("code", ["0", "2", "B", "anything", ""])
def test_bacs_refuses_every_lookup_and_says_why_and_what_would_change_it(code: str) -> None:
    refused = BACS.look_up(code)
    assert isinstance(refused, TableRefuses)
    assert refused.why["why"] in refused.detail and refused.why["what_would_change_it"]
    assert all(citation["second_hand"] for citation in refused.why["may_be_cited"])
    assert BACS.dispositions() == []


def contradicted(path: list[str | int], value: object) -> dict[str, Any]:
    """The ACH document with the value at `path` replaced."""
    document = copy.deepcopy(dict(ACH.document))
    *parents, last = path
    node: Any = document
    for key in parents:
        node = node[key]
    node[last] = value
    return document


R29 = next(i for i, row in enumerate(ACH.document["codes"]) if row["code"] == "R29")


def test_whether_a_person_acts_first_is_derived_from_the_row_and_from_nothing_else() -> None:
    for goes_again in CHANGES_FIRST:
        assert a_person_acts_first(goes_again) is (goes_again == "no")
    for rail in (ACH, SEPA):
        for row in rail.document["codes"]:
            derived = rail.answer(row["code"])["a_person_acts_first"]
            assert row["source_says_person_first"] in (None, derived), f"{row['code']}: a source says otherwise"
    assert ACH.document["codes"][R29]["source_says_person_first"] is True


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["codes", R29, "source_says_person_first"], False, "code R29: a source contradicts"),
        (["codes", 0, "source_says_person_first"], True, "code R01: a source contradicts"),
        (["codes", 0, "row"], 6, "code R01: there is no row 6"),
        (["codes", 0, "code"], "R1", "code R1: not a code"),
        (["codes", 1, "code"], "R01", "listed twice"),
        (["unlisted", 0, "code"], "R01", "listed twice"),
        (["codes", 0, "sources"], [], "code R01: no source"),
        (["codes", 0, "sources"], ["hearsay"], "code R01: no source"),
        (["codes", 6, "row"], 5, r"no code reaches rows \[3\]"),
        (["decisions", 0, "sources"], [], "row 1: no source"),
        (["decisions", 0, "policy", "retry_in_days"], None, "row 1: a debit is retried exactly"),
        (["decisions", 4, "policy", "retry_in_days"], 3, "row 5: a debit is retried exactly"),
        (["decisions", 4, "policy", "action"], "wait_and_retry", "row 5: a debit is retried exactly"),
        (["decisions", 0, "policy", "retry_in_days"], 0, "row 1"),
        (["decisions", 1, "policy", "retry_in_days"], 0, "row 2"),
        (["decisions", 0, "policy", "retry_in_days"], True, "row 1"),
        (["decisions", 1, "policy", "tone"], "stern", "row 2: unknown action or tone"),
        (["decisions", 0, "limit", "when_used_up", "retry_in_days"], 1, "row 1: a limit ends a retry"),
        (["decisions", 3, "changes_first"], "nothing", "row 4: goes_again and changes_first"),
        (["fall_through_row"], 1, "must land on a row that never goes again"),
        (["fall_through_row"], None, "must land on a row that never goes again"),
        (["refusal"], BACS.document["refusal"], "refuses, and yet has rows"),
        (["note"], "one key more", "exactly the keys"),
    ],
)
def test_a_table_that_contradicts_itself_does_not_load(path: list[str | int], value: object, message: str) -> None:
    with pytest.raises(InvalidTable, match=message):
        RailTable(contradicted(path, value))


def test_a_rail_uses_the_card_table_s_words_and_four_that_only_a_bank_debit_needs() -> None:
    assert TONES <= card_table.TONES
    assert {
        "request_bank_details_update",
        "request_customer_instruction",
        "correct_and_resubmit",
        "refer_to_person",
    } == ACTIONS - card_table.ACTIONS
