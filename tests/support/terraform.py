"""Terraform for the tests: found on this machine or skipped loudly, and run with no trace in the checkout."""

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MIRROR_SUFFIX = "registry.terraform.io/hashicorp/aws"


@functools.cache
def mirror() -> Path | None:
    """A filesystem mirror of the provider: TF_PLUGIN_DIR, or one that lies on this machine."""
    if given := os.environ.get("TF_PLUGIN_DIR"):
        return Path(given)
    found = subprocess.run(
        ["find", "/", "-xdev", "-maxdepth", "8", "-type", "d", "-path", f"*/{MIRROR_SUFFIX}",
         "-not", "-path", "*/.terraform/*", "-not", "-path", "*/providers/*", "-not", "-path", "/tmp/*"],
        capture_output=True,
        text=True,
    )  # fmt: skip
    folders = sorted(found.stdout.split("\n"))
    return Path(folders[-1].removesuffix(MIRROR_SUFFIX)) if folders[-1] else None


def environment() -> dict[str, str]:
    """The environment for Terraform, without what would make it ask, colour or read somebody's configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TF_"))}
    return kept | {
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "TF_CLI_ARGS": "-no-color",
        "TF_CLI_CONFIG_FILE": os.devnull,
    }


def init(root: Path) -> None:
    """`terraform init` in a copy of a root; skips where there is no Terraform or no provider to be had."""
    if shutil.which("terraform") is None:
        pytest.skip("NOT TESTED: there is no Terraform on this machine")
    command = ["terraform", f"-chdir={root}", "init", "-backend=false"]
    if mirror():
        command.append(f"-plugin-dir={mirror()}")
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"NOT TESTED: no provider in a mirror (TF_PLUGIN_DIR) or on the network: {done.stderr}")


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
