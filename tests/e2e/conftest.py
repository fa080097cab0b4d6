"""The stage, once for the whole run, and the table at its end. Only `make e2e` collects these tests."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.stage import REGION, Stage, clone_checkout, running_database, running_emulator
from scripts.local.postgres import LocalPostgres
from support import terraform
from support.certificates import Authority

collect_ignore_glob = [] if os.environ.get("PAYPILOT_E2E") else ["test_*.py"]

_stages: list[Stage] = []


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """An emulated AWS, and a clone whose settings are this stage's.

    PAYPILOT_E2E_KEEP=1 leaves its folder, and says where.
    """
    # Not pytest's temporary folder: a run elsewhere on this machine takes the oldest of those away.
    stage = Stage(Path(tempfile.mkdtemp(prefix="paypilot-e2e-")))
    _stages.append(stage)
    clone_checkout(stage.clone)
    terraform.init(stage.infra / "deploy_identity")
    Authority(stage.folder, "ca").certify("localhost")  # the name that the emulator gives its databases
    Authority(stage.folder, "other-ca")
    stage.write_settings(
        region=REGION,
        notify_email="operations@example.com",
        database_port=stage.database_port,
        database_ca_path=str(stage.folder / "ca.pem"),
        python=str(stage.clone / ".venv" / "bin" / "python"),
        # A cold start is slow on a machine that runs the cloud as well.
        decision_timeout_seconds=25,
        # So that the schedule is seen to run within the test.
        proof_schedule="rate(1 minute)",
    )
    with running_emulator(stage):
        yield stage
        stage.used_actions = stage.actions_used()
    if os.environ.get("PAYPILOT_E2E_KEEP"):
        print(f"\nkept: {stage.folder}")
    else:
        shutil.rmtree(stage.folder)


@pytest.fixture(scope="session")
def database(stage: Stage) -> Iterator[LocalPostgres]:
    """The Postgres that the emulated RDS stands for."""
    with running_database(stage) as server:
        yield server


@pytest.fixture(scope="session")
def identity(stage: Stage) -> dict[str, str]:
    """The deploy role's credentials, made from infra/deploy_identity as root; `stage.make` uses them from here on."""
    with stage.step("terraform apply infra/deploy_identity (as root)"):
        applied = stage.run(
            ["terraform", "-chdir=infra/deploy_identity", "apply", "-auto-approve", f"-var=region={REGION}"],
            stage.environment(stage.root_identity),
        )
        assert applied.returncode == 0, applied.stdout
        output = terraform.run(stage.infra / "deploy_identity", "output", "-json").stdout
        outputs = {name: entry["value"] for name, entry in json.loads(output).items()}
        made = stage.client("sts").assume_role(RoleArn=outputs["role_arn"], RoleSessionName="operator")["Credentials"]
    stage.allowed_actions = outputs["actions"]
    stage.identity = {
        "AWS_ACCESS_KEY_ID": made["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"],
        "AWS_SESSION_TOKEN": made["SessionToken"],
    }
    return stage.identity


@pytest.fixture(scope="session")
def tokens(stage: Stage) -> dict[str, str]:
    """An API token of each of two clients, issued as the operator does it; only their digests reach the settings."""
    issued = {}
    for client in ("client-a", "client-b"):
        # Not through stage.run: this is the one place where a token is shown, so its output isn't kept.
        command = ["make", "-s", "token", f"CLIENT={client}"]
        done = subprocess.run(command, cwd=stage.clone, env=stage.environment({}), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        issued[client] = done.stdout.strip()
    return issued


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of steps and times, and what the deploy identity asked for against what it used."""
    for stage in _stages:
        write = terminalreporter.write_line
        write("")
        for step in stage.steps:
            write(f"{'ok' if step.passed else 'FAILED':7} {step.seconds:6.1f} s  {step.name}")
        write(f"        {sum(step.seconds for step in stage.steps):6.1f} s  in all")
        if stage.identity:
            used = stage.used_actions
            unused = sorted(set(stage.allowed_actions) - used)
            write(
                f"deploy identity: {len(stage.allowed_actions)} actions allowed, {len(used)} used here; not used here:"
            )
            write("  " + ", ".join(unused))
