"""An auditor asks why: the record is decided again by the table that it names."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from paypilot.core.decide import FailedPayment, decide
from paypilot.rails import load_registry
from paypilot.record import StoredDecision, new_id
from paypilot.rules import current_ruleset
from slice import ROOT


def recorded(failure_code: str, attempt: int = 1, **changes: Any) -> dict[str, Any]:
    payment = FailedPayment("in_1", failure_code, attempt)
    decision = decide(payment, current_ruleset(), load_registry())
    return StoredDecision(new_id(), *payment, *decision, datetime(2026, 12, 1, tzinfo=UTC)).fields() | changes


def explain(document: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "explain.py"], input=json.dumps(document), capture_output=True, text=True
    )


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
    assert "agrees with the record" in result.stdout


def test_a_page_is_explained_whole() -> None:
    result = explain({"invoice_id": "in_1", "decisions": [recorded("card_expired"), recorded("generic_decline")]})
    assert result.returncode == 0
    assert result.stdout.count("agrees with the record") == 2


def test_a_record_that_its_table_would_not_have_written_is_told() -> None:
    result = explain(recorded("card_expired", retry_in_days=9, tone="calm_helpful"))
    assert result.returncode == 1
    assert "DIFFERS in tone, retry_in_days" in result.stdout


def test_a_version_that_was_never_published_is_refused() -> None:
    result = explain(recorded("card_expired", rules_version="sha256:" + "0" * 64))
    assert result.returncode == 1
    assert "no published table" in result.stderr


@pytest.mark.parametrize("document", [[], 1, {}, {"decisions": [1]}, {"decisions": 1}])
def test_what_is_no_decision_is_refused_without_a_traceback(document: object) -> None:
    result = explain(document)
    assert result.returncode == 1
    assert result.stderr.startswith("explain: ")
    assert "Traceback" not in result.stderr


def test_a_missing_file_is_refused_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "explain.py", tmp_path / "none.json"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, "Traceback" in result.stderr) == (1, False)
