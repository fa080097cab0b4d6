"""Every script says what it is for."""

import subprocess
import sys

import pytest

from slice import ROOT

SCRIPTS = sorted(
    path.name
    for path in (ROOT / "scripts").glob("*.py")
    if "__main__" in path.read_text() and path.name != "bench.py"  # it has an environment of its own
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_explains_itself(script: str) -> None:
    run = subprocess.run([sys.executable, ROOT / "scripts" / script, "--help"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    usage, _, explanation = run.stdout.partition("\n\n")
    assert usage.startswith(f"usage: {script}")
    assert len(explanation.split("\n\n")[0]) > 40
