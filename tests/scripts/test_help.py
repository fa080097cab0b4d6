"""Every script says what it is for."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from support.slice import ROOT

SCRIPTS = sorted(
    path.name
    for path in (ROOT / "scripts").glob("*.py")
    if "__main__" in path.read_text() and path.name != "bench.py"  # it has an environment of its own
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_explains_itself_by_the_readme_s_command(script: str) -> None:
    (command,) = re.findall("`([^`]*scripts/demo.py --help)`", (ROOT / "README.md").read_text())
    line = command.replace("demo.py", script).replace(".venv/bin/python", shlex.quote(sys.executable))
    newcomer = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(["bash", "-c", line], cwd=ROOT, env=newcomer, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    usage, _, explanation = run.stdout.partition("\n\n")
    assert usage.startswith(f"usage: {script}")
    assert len(explanation.split("\n\n")[0]) > 40
