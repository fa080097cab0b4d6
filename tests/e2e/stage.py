"""The stage of `make e2e`: an emulated AWS with IAM enforced, a real Postgres behind RDS's logins, and an operator.

Everything lives in one temporary folder: a clone of the checkout, in which the operator types the same `make` commands
as on AWS, and the servers' files and logs.
"""

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import psycopg

from e2e.database_front import DatabaseFront, Refused, check_token
from scripts.local.checkout import ROOT
from scripts.local.postgres import LocalPostgres, free_port, running_postgres
from support import terraform
from support.slice import until

REGION, ACCOUNT, NAME = "eu-west-1", "000000000000", "paypilot"
MAKE_VARIABLES = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
MASTER = "paypilot_master"

# What an RDS Postgres has that the slice's SQL meets. The master is no superuser there, and owns the first databases.
RDS_SERVER = f"""
CREATE ROLE rdsadmin SUPERUSER;
CREATE ROLE rds_superuser;
CREATE ROLE rds_iam;
GRANT rds_iam TO rds_superuser WITH ADMIN OPTION;
CREATE ROLE {MASTER} LOGIN CREATEROLE CREATEDB IN ROLE rds_superuser;
ALTER DATABASE postgres OWNER TO {MASTER};
ALTER DATABASE template1 OWNER TO {MASTER};
CREATE DATABASE paypilot OWNER {MASTER};
CREATE DATABASE rdsadmin OWNER rdsadmin;
REVOKE ALL ON DATABASE rdsadmin FROM PUBLIC;
"""


@dataclass
class Step:
    """One line of the table that `make e2e` prints."""

    name: str
    seconds: float
    passed: bool


@dataclass
class Stage:
    """Where everything is. `identity` are the deploy role's credentials, as environment variables."""

    folder: Path
    aws_port: int = field(default_factory=free_port)
    api_port: int = field(default_factory=free_port)
    database_port: int = field(default_factory=free_port)
    identity: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    allowed_actions: list[str] = field(default_factory=list)
    used_actions: set[str] = field(default_factory=set)

    @property
    def clone(self) -> Path:
        return self.folder / "clone"

    @property
    def infra(self) -> Path:
        return self.clone / "infra"

    @property
    def url(self) -> str:
        """Where the HTTP API answers. Its own name, {id}.execute-api…, is the emulator's business."""
        return f"http://127.0.0.1:{self.api_port}"

    @property
    def root_identity(self) -> dict[str, str]:
        """The emulated account's root, which no policy binds: for what the operator does before the deploy role."""
        return {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step for the table."""
        started, passed = time.monotonic(), False
        try:
            yield
            passed = True
        finally:
            self.steps.append(Step(name, time.monotonic() - started, passed))

    def environment(self, identity: dict[str, str]) -> dict[str, str]:
        """The environment of an operator with these credentials, on this stage's AWS."""
        mirror = terraform.mirror()
        # An operator's shell has no `make` above it, whose flags would print folders beside the token.
        shell = {name: value for name, value in terraform.environment().items() if name not in MAKE_VARIABLES}
        return {
            **shell,
            **identity,
            # The clone's .venv is this checkout's own, in which the product is installed: the clone's comes before it.
            "PYTHONPATH": os.pathsep.join(str(self.clone / folder) for folder in (".", "lambda", "bootstrap")),
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.aws_port}",
            "AWS_REGION": REGION,
            **({"TF_PLUGIN_DIR": str(mirror)} if mirror else {}),
        }

    def client(self, service: str, identity: dict[str, str] | None = None) -> Any:
        """boto3's client of a service; as root if no identity is given."""
        who = identity or self.root_identity
        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=f"http://127.0.0.1:{self.aws_port}",
            aws_access_key_id=who["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=who["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=who.get("AWS_SESSION_TOKEN"),
        )

    def make(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A `make` command as the operator types it in the clone, as the deploy identity."""
        return self.run(["make", *words], self.environment(self.identity))

    def run(self, command: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
        """Run a command in the clone; all that it says goes to commands.log as well, for the canaries' search."""
        done = subprocess.run(
            command, cwd=self.clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        with (self.folder / "commands.log").open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}\n")
        return done

    def decisions(self) -> list[dict[str, Any]]:
        """What the emulator's IAM decided, in order."""
        return [json.loads(line) for line in (self.folder / "iam.jsonl").read_text().splitlines()]

    def actions_used(self) -> set[str]:
        """The IAM actions that the deploy identity was allowed."""
        key = self.identity["AWS_ACCESS_KEY_ID"]
        return {line["action"] for line in self.decisions() if line["key"] == key and line["allowed"]}

    def write_settings(self, **changed: Any) -> None:
        """The operator's settings file, over what the emulator needs otherwise than AWS."""
        file = self.infra / "settings.auto.tfvars.json"
        settings = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(settings | changed, indent=2))


def clone_checkout(target: Path) -> None:
    """The checkout as it is, committed to a repository of its own, so that the packages carry a commit."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    # The clone's `make` finds the environment that this run has: the locks are the same, with the same times.
    (target / ".venv").symlink_to(ROOT / ".venv")
    commit_clone(target)


def commit_clone(target: Path) -> str:
    """Commit all that is in the clone, and return the commit."""
    git = ["git", "-C", str(target), "-c", "user.name=e2e", "-c", "user.email=e2e@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "As it is"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def running_database(stage: Stage) -> Iterator[LocalPostgres]:
    """A Postgres with RDS's roles, and the front before it on the stage's database port."""
    with running_postgres(stage.folder / "database") as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for statement in filter(str.strip, RDS_SERVER.split(";")):
                connection.execute(statement)
            # Whoever comes from loopback was let in by the front.
            (server.data / "pg_hba.conf").write_text("host all all 127.0.0.1/32 trust\n")
            connection.execute("SELECT pg_reload_conf()")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(stage.folder / "server.pem")
        front = DatabaseFront(
            stage.database_port, server.port, tls, lambda user, password: judge(stage, user, password)
        )
        front.start()
        try:
            yield server
        finally:
            front.stop()


def judge(stage: Stage, user: str, password: str) -> None:
    """RDS's decision on a login. Raises `Refused`."""
    if user == MASTER:
        known = stage.folder / "master-passwords"
        if not known.exists() or password != known.read_text().splitlines()[-1]:
            raise Refused("not the master password that the last RDS call set")
        return
    credentials = json.loads((stage.folder / "credentials.json").read_text())
    role = check_token(password, "localhost", stage.database_port, user, credentials)
    resource = stage.client("rds").describe_db_instances()["DBInstances"][0]["DbiResourceId"]
    evaluated = stage.client("iam").simulate_principal_policy(
        PolicySourceArn=role,
        ActionNames=["rds-db:connect"],
        ResourceArns=[f"arn:aws:rds-db:{REGION}:{ACCOUNT}:dbuser:{resource}/{user}"],
    )
    if evaluated["EvaluationResults"][0]["EvalDecision"] != "allowed":
        raise Refused(f"the policies of {role} don't let it connect as {user}")


@contextmanager
def running_emulator(stage: Stage) -> Iterator[None]:
    """ministack with IAM enforced, on the stage's ports."""
    python = ROOT / ".venv-e2e" / "bin" / "python"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
    temporary = stage.folder / "emulator"
    temporary.mkdir()
    with (stage.folder / "emulator.log").open("w") as log:
        process = subprocess.Popen(
            [python, Path(__file__).parent / "emulator.py"],
            cwd=temporary,
            env={
                **kept,
                **stage.root_identity,
                "AUTH": "true",
                "E2E_API_PORT": str(stage.api_port),
                "E2E_AWS_PORT": str(stage.aws_port),
                "E2E_FOLDER": str(stage.folder),
                "GATEWAY_PORT": str(stage.aws_port),
                # A new account's limit; and each is a process on this machine.
                "LAMBDA_ACCOUNT_CONCURRENCY": "10",
                "MINISTACK_REGION": REGION,
                "TMPDIR": str(temporary),
            },
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: listens(stage.aws_port, process), seconds=30)
        yield
    finally:
        process.terminate()
        process.wait()


def listens(port: int, process: "subprocess.Popen[bytes]") -> bool:
    """Whether something listens on `port`. Fails if `process` ended."""
    assert process.poll() is None, "the emulator ended: see its log"
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
