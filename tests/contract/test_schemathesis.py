"""schemathesis reads the document and tries to catch the server not keeping to it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contract.conftest import Target

FOLDER = Path(__file__).parent
# Per operation and phase; the whole takes about twenty seconds on two cores.
EXAMPLES = "15"
SECONDS = 120


def test_schemathesis_finds_nothing(target: Target, tmp_path: Path) -> None:
    if target.remote:
        pytest.skip("a remote gets no random requests")
    found = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "--config-file", FOLDER / "schemathesis.toml", "run"),
            *(f"{target.url}/openapi.json", "--max-examples", EXAMPLES, "--generation-deterministic", "--no-color"),
        ],
        env={
            **os.environ,
            "PAYPILOT_CONTRACT_TOKEN": target.token,
            "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
            "PYTHONPATH": str(FOLDER),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "No issues found" in found.stdout
    # It was asked something, in every phase: a schema that it can't use would find nothing either.
    assert found.stdout.count("✅") >= 12, found.stdout
