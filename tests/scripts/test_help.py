"""Every program under scripts says what it is for and which version it is, wherever it is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paypilot import __version__
from support.slice import ROOT

PROGRAMS = sorted(
    path.relative_to(ROOT / "scripts").as_posix()
    for path in (ROOT / "scripts").rglob("*.py")
    if '__name__ == "__main__"' in path.read_text()
)
NEWCOMER = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(program: str, argument: str, folder: Path) -> str:
    command = [sys.executable, str(ROOT / "scripts" / program), argument]
    done = subprocess.run(command, cwd=folder, env=NEWCOMER, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(folder.iterdir()) == []
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_explains_itself_in_any_folder(program: str, tmp_path: Path) -> None:
    usage, _, explanation = run(program, "--help", tmp_path).partition("\n\n")
    assert usage.startswith("usage: ") and "[--version]" in usage
    assert len(explanation.split("\n\n")[0]) > 40


def test_a_program_prints_the_version(tmp_path: Path) -> None:
    for program in ("serve.py", "mcp_server/paypilot_rails_mcp.py"):  # the one parser of scripts, and the wheel's own
        assert run(program, "--version", tmp_path) == f"PayPilot {__version__}\n"
