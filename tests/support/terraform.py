"""Terraform for the tests: found on this machine or skipped loudly, and run with no trace in the checkout."""

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

PROVIDER = "registry.terraform.io/hashicorp/aws"
SOFTWARE = ("/opt", "/srv", "/usr/local", "/usr/share")


@functools.cache
def mirror() -> Path | None:
    """A filesystem mirror of the provider: TF_PLUGIN_DIR, or one that was installed on this machine.

    The folders of a machine's own software are looked through, because Terraform looks for a mirror in none of them,
    and a machine without a network to the registry, which CI may have, would skip every test of infra/.
    """
    if given := os.environ.get("TF_PLUGIN_DIR"):
        return Path(given)
    found = (path for folder in SOFTWARE for path in sorted(Path(folder).glob(f"*/{PROVIDER}")))
    return next((path.parents[2] for path in found), None)


def environment() -> dict[str, str]:
    """The environment for Terraform, without what makes it ask or colour, with its configuration if there is one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TF_"))}
    configuration = os.environ.get("TF_CLI_CONFIG_FILE", "")
    if Path(configuration).is_file():  # a missing one makes Terraform warn amid its output
        kept["TF_CLI_CONFIG_FILE"] = configuration
    return kept | {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "TF_CLI_ARGS": "-no-color"}


def init(root: Path) -> None:
    """`terraform init` in a copy of a root; skips where there is no Terraform or no provider to be had."""
    if shutil.which("terraform") is None:
        pytest.skip("NOT TESTED: install Terraform")
    command = ["terraform", f"-chdir={root}", "init", "-backend=false"]
    if mirror():
        command.append(f"-plugin-dir={mirror()}")
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"NOT TESTED: set TF_PLUGIN_DIR to a mirror of the provider, or connect: {done.stderr}")


def run(root: Path, *arguments: str, extra: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run Terraform in `root` and return what it said, whatever its status."""
    return subprocess.run(
        ["terraform", f"-chdir={root}", *arguments],
        env=environment() | (extra or {}),
        capture_output=True,
        text=True,
    )


def shown(root: Path, *arguments: str) -> dict[str, Any]:
    """`terraform show -json` of the state, or of a plan's file."""
    done = run(root, "show", "-json", *arguments)
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value
