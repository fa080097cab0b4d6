"""The demo walks every gate, and says so with its exit status only where the database holds exactly what it should."""

import os
import re
import signal
import subprocess
import sys

import pytest

from scripts import demo
from support.slice import ROOT

# A refusal of one kind is answered and lost; a decision by one rule leaves a refusal as well.
SABOTAGE = """
CREATE FUNCTION public.lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER lose BEFORE INSERT ON paypilot.decision_refusals
    FOR EACH ROW WHEN (NEW.reason = 'duplicate_field') EXECUTE FUNCTION public.lose();
CREATE FUNCTION public.add() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO paypilot.decision_refusals (refusal_id, client_id, route, gate, reason)
    VALUES (NEW.decision_id, NEW.client_id, 'POST /decide', 'body', 'added');
    RETURN NULL;
END $$;
CREATE TRIGGER add AFTER INSERT ON paypilot.decision_audit
    FOR EACH ROW WHEN (NEW.rule = 'card_expired') EXECUTE FUNCTION public.add();
"""


def test_the_demo_finds_what_it_expects_at_every_gate_in_lines_that_fit() -> None:
    # Of the shell's own database nothing is taken.
    shell = os.environ | {"PGHOST": "database.invalid", "PGSERVICE": "no-such-service", "PGOPTIONS": "-c nonsense=1"}
    run = subprocess.run([sys.executable, ROOT / "scripts" / "demo.py"], env=shell, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^\d+ steps, \d+ rows, as expected; neither control is listed as a refusal\.$", run.stdout, re.M)
    assert max(len(line) for line in run.stdout.splitlines()) <= 100


def test_a_reader_that_has_gone_ends_it_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    demo_run = [sys.executable, str(ROOT / "scripts" / "demo.py")]
    result = subprocess.run(demo_run, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (result.returncode, result.stderr) == (128 + signal.SIGPIPE, "")


def test_the_demo_names_a_missing_row_an_unexpected_row_and_a_failed_control(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walk_every_gate = demo.walk_every_gate

    def walk_a_sabotaged_database(walk: demo.Walk) -> None:
        with walk.database() as connection:
            connection.execute(SABOTAGE)
        walk_every_gate(walk)

    monkeypatch.setattr(demo, "walk_every_gate", walk_a_sabotaged_database)
    with pytest.raises(SystemExit) as exit_:
        demo.main([])
    assert isinstance(exit_.value.code, str)  # a message: printed to standard error, exit status 1
    faults = exit_.value.code.splitlines()[2:]
    assert len(faults) == 3
    assert "missing row: acme: refusal at gate body, duplicate_field" in faults[0]
    assert "unexpected row: acme: refusal at gate body, added" in faults[1]
    assert "a control is listed as a refusal: " in faults[2]
