"""An auditor asks why: the record is decided again by the table that it names."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from paypilot.core.decide import Decision, FailedPayment, decide
from paypilot.decisions import StoredDecision
from paypilot.record.rows import new_id
from paypilot.tables import published_tables
from scripts import explain as explain_script
from support.slice import ROOT, TOKEN, Host

EXPLAIN = [sys.executable, str(ROOT / "scripts" / "explain.py")]


def recorded(failure_code: str, attempt: int = 1, **changes: Any) -> dict[str, Any]:
    payment = FailedPayment("in_1", failure_code, attempt)
    decision = decide(payment, published_tables())
    assert isinstance(decision, Decision)
    return StoredDecision(new_id(), payment, decision, datetime(2026, 12, 1, tzinfo=UTC)).fields() | changes


def explain(document: object, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The script's run on `document`, which is text as it stands, or written as JSON."""
    text = document if isinstance(document, str) else json.dumps(document)
    return subprocess.run([*EXPLAIN, *arguments], input=text, capture_output=True, text=True)


def refused(document: object, *arguments: str) -> str:
    """What the script says where there is nothing that it can decide again."""
    result = explain(document, *arguments)
    assert result.returncode == 1
    assert result.stderr.startswith("explain: ")
    assert "agrees" not in result.stdout
    # One line, with no word of Python's.
    assert len(result.stderr.splitlines()) == 1
    assert not re.search(r"Traceback|Error\b|NotARail|RailRefused", result.stderr)
    return result.stderr


@pytest.mark.parametrize(
    ("code", "attempt", "words"),
    [
        ("card_expired", 1, "Nothing is wrong between the customer and the merchant"),
        ("unheard_of", 3, "the code fell through"),
        ("ach:R01", 1, "R01 is listed"),
        ("ach:R77", 1, "fell through"),
        ("sepa:MD07", 1, "never retried"),
    ],
)
def test_a_decision_is_explained_and_replayed(code: str, attempt: int, words: str) -> None:
    result = explain(recorded(code, attempt))
    assert result.returncode == 0, result.stderr
    assert words in " ".join(result.stdout.split())
    assert "agrees with the table of digest sha256:" in result.stdout


def test_a_history_as_the_service_lists_it_agrees(host: Host) -> None:
    with httpx.Client(base_url=host.url, headers={"authorization": f"Bearer {TOKEN}"}) as client:
        for code in ("card_expired", "ach:R01", "unheard_of"):
            answer = client.post("/decide", json={"invoice_id": "in_explained", "failure_code": code, "attempt": 3})
            assert explain(answer.text).returncode == 0
        listed = explain(client.get("/decisions/in_explained").text)
    assert (listed.returncode, listed.stdout.count("agrees with the table of digest sha256:")) == (0, 3), listed.stdout


def otherwise(value: object) -> object:
    """A value of the same type, or as JSON tells it almost the same."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return float(value)
    return {**value, "row": 2.0} if isinstance(value, dict) else [*value][:-1] if isinstance(value, list) else "other"


# The others are what the decision is found by: the table, and the request that it is taken for.
COMPARED = sorted(
    recorded("ach:R01").keys()
    - {"decision_id", "decided_at", "rules_version", "invoice_id", "failure_code", "attempt", "prior_failures"}
)


@pytest.mark.parametrize("field", COMPARED)
def test_every_field_of_a_decision_is_compared_and_so_is_its_absence(field: str) -> None:
    whole = recorded("ach:R01")
    result = explain({"decisions": [whole | {field: otherwise(whole[field])}, {**whole, field: None}]})
    assert result.returncode == 1
    assert result.stdout.count(f"DIFFERS in {field}\n") == 2, result.stdout
    del whole[field]
    assert f"DIFFERS in {field}\n" in explain(whole).stdout


def test_a_time_in_another_form_differs_and_an_additional_field_is_named() -> None:
    result = explain(recorded("card_expired", decided_at="2026-12-01T00:00:00Z", churn_rist="low"))
    assert result.returncode == 1
    assert 'DIFFERS in decided_at, "churn_rist"\n' in result.stdout
    assert (
        "DIFFERS in next_retry_at" in explain(recorded("card_expired", decided_at="2026-12-02T00:00:00.000000Z")).stdout
    )


def test_every_decision_of_a_page_is_looked_at_whatever_is_wrong_with_one() -> None:
    result = explain({"decisions": [recorded("card_expired") | {"attempt": 1.5}, recorded("card_expired")]})
    assert result.returncode == 1
    assert result.stdout.count("agrees with the table of digest sha256:") == 1
    assert result.stderr.startswith("explain: decision 1 of 2: ")


def test_a_used_up_limit_is_explained_before_what_the_table_says_of_the_code() -> None:
    said = explain(recorded("ach:R01", 3)).stdout
    assert "reinitiations are used up" in said
    assert said.index("used up") < said.index("It may go again")
    assert "used up" not in explain(recorded("ach:R01", 2)).stdout


VERSIONS = {rail.name: rail.version for rail in published_tables().rails}
ACH, BACS, SEPA = VERSIONS["ach"], VERSIONS["bacs"], VERSIONS["sepa"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rules_version": "sha256:" + "0" * 64}, "no published table"),
        ({"rules_version": ["sha256:"]}, "no published table"),
        ({"rules_version": ACH}, "doesn't answer for its failure code"),
        ({"rules_version": BACS}, "doesn't answer for its failure code"),
        ({"failure_code": "ach:R01"}, "doesn't answer for its failure code"),
        ({"failure_code": "ach:R01", "rules_version": SEPA}, "doesn't answer for its failure code"),
        ({"failure_code": "ach:xyz", "rules_version": ACH}, "refused, and never decided. A code of"),
        ({"failure_code": "bacs:0", "rules_version": BACS}, "refused, and never decided."),
        ({"failure_code": "ACH:R01"}, "refused, and never decided. Write the rail's name in lower case"),
        ({"attempt": 1.5}, "attempt must be an integer from 1"),
        ({"attempt": True}, "attempt must be an integer from 1"),
        ({"prior_failures": "0"}, "prior_failures must be an integer from 0"),
        ({"invoice_id": 1}, "invoice_id must be a string"),
        ({"decision_id": 7}, "decision_id and decided_at"),
        ({"decision_id": "canary"}, "decision_id and decided_at"),
        ({"decided_at": None}, "decision_id and decided_at"),
        ({"decided_at": "2026-12-01T00:00:00"}, "decision_id and decided_at"),
        ({"decided_at": "9999-12-31T23:59:59.000000Z"}, "decision_id and decided_at"),
    ],
)
def test_what_no_table_decided_is_refused_and_says_why(changes: dict[str, object], why: str) -> None:
    said = refused(recorded("card_expired") | changes)
    assert why in said
    assert "canary" not in said


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "neither a decision nor a page"),
        ("1", "neither a decision nor a page"),
        ({"decisions": 1}, "neither a decision nor a page"),
        ({"decisions": []}, "there is nothing to explain"),
        ({}, "invoice_id is required"),
        ({"decisions": [1]}, "it is not a JSON object"),
        ("", "standard input is empty: send a decision as JSON, or name a file"),
        ("[" * 100_000, "not valid JSON"),
        ('{"attempt": 1, "attempt": 1}', "not valid JSON: Send each field once."),
    ],
)
def test_what_is_no_decision_is_refused_and_says_why(document: object, why: str) -> None:
    assert why in refused(document)


@pytest.mark.parametrize("depth", range(700, 1000, 20))
def test_a_decision_that_is_nested_deeply_ends_in_no_traceback(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(recorded("card_expired"))[:-1] + ', "more": ' + "[" * depth + "]" * depth + "}"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    monkeypatch.setattr(sys, "argv", ["explain.py"])
    with pytest.raises(SystemExit) as exit_:
        explain_script.main()
    assert exit_.value.code == 1 or "not valid JSON" in str(exit_.value.code)


def test_a_file_is_named_where_it_can_not_be_read(tmp_path: Path) -> None:
    assert "none.json can't be read: No such file" in refused("", f"{tmp_path}/none.json")
    assert f"{tmp_path} can't be read: Is a directory" in refused("", str(tmp_path))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_taken_and_a_hyphen_is_standard_input(encoding: str) -> None:
    text = json.dumps(recorded("card_expired")).encode(encoding)
    result = subprocess.run([*EXPLAIN, "-"], input=text, capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")


def test_what_was_compared_is_told_and_that_no_record_was_read() -> None:
    said = " ".join(explain(recorded("card_expired")).stdout.split())
    table = published_tables().card.version
    assert f" table {table} " in said
    assert said.endswith(f"replay agrees with the table of digest {table[:19]}...; no record was read")


def test_without_a_file_on_a_terminal_it_prints_its_help() -> None:
    terminal, other_end = pty.openpty()
    result = subprocess.run(EXPLAIN, stdin=other_end, capture_output=True, text=True, timeout=30)
    os.close(terminal)
    os.close(other_end)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: explain.py")


def test_a_reader_that_has_gone_is_no_error_of_ours() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    text = json.dumps(recorded("card_expired"))
    result = subprocess.run(EXPLAIN, input=text, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (result.returncode, result.stderr) == (-signal.SIGPIPE, "")


def test_make_takes_a_file_with_a_space_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "a decision.json").write_text(json.dumps(recorded("card_expired")))
    command = ["make", "explain", f"FILE={tmp_path}/a decision.json"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (result.returncode, "agrees with the table of digest sha256:" in result.stdout) == (0, True), result.stderr
