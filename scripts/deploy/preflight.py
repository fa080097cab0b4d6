"""Check what a deployment still lacks, before anything is made: one line each, and exit 1 if one of them stops it.

Reads infra/*.auto.tfvars.json (`infra/examples/settings.json` shows the first) and asks AWS who is calling, and what
the account's concurrency limit is. Makes nothing.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from scripts.local import command

INFRA = Path(__file__).resolve().parents[2] / "infra"
OLDEST_TERRAFORM = (1, 11)
# AWS leaves at least this much to the account's other functions, and refuses a reservation that goes below.
UNRESERVED_AT_LEAST = 100

# (what was looked at, whether it lets a deployment go on, what was found or what to do)
Finding = tuple[str, bool, str]


def settings(folder: Path) -> dict[str, Any]:
    """The variables in *.auto.tfvars.json, as Terraform would merge them."""
    merged: dict[str, Any] = {}
    for path in sorted(folder.glob("*.auto.tfvars.json")):
        try:
            document = json.loads(path.read_text())
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            sys.exit(f"preflight: {path.name} is not a JSON object of settings: fix or remove it")
        merged |= document
    return merged


def check_terraform() -> Finding:
    """Terraform is there, and knows write-only arguments and ephemeral resources."""
    if shutil.which("terraform") is None:
        return "Terraform", False, "not on the PATH: install 1.11 or later"
    output = subprocess.run(["terraform", "version", "-json"], capture_output=True, text=True, check=True).stdout
    version = json.loads(output[output.index("{") :])["terraform_version"]
    enough = tuple(int(part) for part in version.split("-")[0].split(".")[:2]) >= OLDEST_TERRAFORM
    return "Terraform", enough, version if enough else f"{version}: 1.11 or later is needed"


def check_settings(found: dict[str, Any]) -> Iterator[Finding]:
    """The variables that have no default, and the tokens without which the slice answers nobody."""
    remedy = "missing: cp infra/examples/settings.json infra/settings.auto.tfvars.json, and edit that"
    for name in ("region", "notify_email"):
        yield name, name in found, found.get(name, remedy)
    digests = found.get("token_digests", {})
    if not isinstance(digests, dict):
        yield "API tokens", False, "token_digests is an object of digests to client ids (make token writes it)"
        return
    tokens = len(digests)
    # Not a stop: the first deployment may come before the first client.
    yield "API tokens", True, f"{tokens}" if tokens else "none yet: every route that needs one answers 503 (make token)"


def check_account(session: boto3.Session, found: dict[str, Any]) -> Iterator[Finding]:
    """Who is calling, and whether the account's concurrency admits what is asked for."""
    try:
        caller = session.client("sts").get_caller_identity()["Arn"]
    except (BotoCoreError, ClientError) as error:
        yield "credentials", False, f"{error}: assume the deploy role first (docs/operations.md)"
        return
    is_deploy_role = f"role/{found.get('name', 'paypilot')}-deploy/" in caller
    yield "credentials", True, caller if is_deploy_role else f"{caller}: not the deploy role, so its limits don't bind"
    try:
        limits = session.client("lambda").get_account_settings()["AccountLimit"]
    except (BotoCoreError, ClientError) as error:
        yield "Lambda concurrency", False, str(error)
        return
    total, wanted = limits["ConcurrentExecutions"], found.get("decision_reserved_concurrency") or 0
    fits = wanted == 0 or total - wanted >= UNRESERVED_AT_LEAST
    amounts = f"{total} in the account, {wanted} to be reserved"
    remedy = "" if fits else f": AWS keeps {UNRESERVED_AT_LEAST} unreserved; leave decision_reserved_concurrency out"
    yield "Lambda concurrency", fits, amounts + remedy


def findings() -> Iterator[Finding]:
    """Every check, cheapest first."""
    yield check_terraform()
    found = settings(INFRA)
    yield from check_settings(found)
    if region := found.get("region"):
        yield from check_account(boto3.Session(region_name=region), found)


def main() -> int:
    command.parser(__doc__).parse_args()
    passed = True
    for name, good, found in findings():
        print(f"{'ok' if good else 'NO':3} {name}: {found}")
        passed = passed and good
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
