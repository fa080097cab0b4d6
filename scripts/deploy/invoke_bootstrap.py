"""Invoke the bootstrap function from the operator's machine, by the credentials that boto3 finds.

invoke  sets the master password and hands it to the function, in the payload of one invocation. Terraform starts this
        in the apply (infra/bootstrap.tf) and hides its output, since its environment holds a secret, so the answer goes
        into a file. Its environment: PAYPILOT_REGION, PAYPILOT_DATABASE, PAYPILOT_FUNCTION, PAYPILOT_MASTER_PASSWORD.
report  shows that file, and fails if the function did. Started next, with no secret, so it may speak.
prove   has it prove again what the service's database role can't do (`make prove`).
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from scripts.local import command

ANSWER_FILE = Path(__file__).resolve().parents[2] / "dist" / "bootstrap-answer.json"

# A new master password takes effect late, and bootstrap waits for it: longer than its time limit is long enough.
READ_SECONDS = 330
SETTLE_SECONDS, PAUSE_SECONDS = 900, 5


def call(region: str | None, function: str, event: dict[str, str]) -> dict[str, Any]:
    """The function's answer, or {"errorType", "errorMessage"}: its own error, or why it couldn't be called."""
    # Never twice: what a lost answer leaves behind is for the operator to look at.
    config = Config(read_timeout=READ_SECONDS, retries={"total_max_attempts": 1})
    try:
        client = boto3.client("lambda", region_name=region, config=config)
        answer = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
        found: dict[str, Any] = json.load(answer["Payload"])
    except (BotoCoreError, ClientError) as error:
        return {"errorType": type(error).__name__, "errorMessage": str(error)}
    return found


def bootstrap(region: str, database: str, function: str, password: str) -> dict[str, Any]:
    """The function's answer to the new master password, as `call` gives it."""
    rds = boto3.client("rds", region_name=region)
    try:
        settle(rds, database)
        rds.modify_db_instance(DBInstanceIdentifier=database, MasterUserPassword=password, ApplyImmediately=True)
        settle(rds, database)
    except (BotoCoreError, ClientError, TimeoutError) as error:
        return {"errorType": type(error).__name__, "errorMessage": f"the master password can't be set: {error}"}
    return call(region, function, {"action": "bootstrap", "master_password": password})


def settle(rds: Any, database: str) -> None:
    """Wait until the database has nothing under way. Raises `TimeoutError`."""
    give_up = time.monotonic() + SETTLE_SECONDS
    while True:
        (instance,) = rds.describe_db_instances(DBInstanceIdentifier=database)["DBInstances"]
        pending = "MasterUserPassword" in instance.get("PendingModifiedValues", {})
        if instance["DBInstanceStatus"] == "available" and not pending:
            return
        if time.monotonic() > give_up:
            raise TimeoutError(f"{database} is still {instance['DBInstanceStatus']} after {SETTLE_SECONDS} s")
        time.sleep(PAUSE_SECONDS)


def show(answer: dict[str, Any]) -> int:
    """Print what was proved, or what went wrong. 0 if everything was proved."""
    if "errorType" in answer or not answer.get("proved"):
        print(f"bootstrap failed: {answer.get('errorType')}: {answer.get('errorMessage')}", file=sys.stderr)
        return 1
    for proof in answer["proofs"]:
        print(f"  {proof['name']}: {proof['got']}")
    print(f"{len(answer['proofs'])} proofs passed")
    return 0


def main() -> int:
    """The exit status: `invoke` always 0, so that `report` can speak; the others 1 where something isn't proved."""
    parser = command.parser(__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("invoke")
    steps.add_parser("report")
    prove = steps.add_parser("prove")
    prove.add_argument("--function", required=True, help="the bootstrap function's name (terraform output)")
    prove.add_argument("--region", help="its region, if not the one that boto3 finds")
    arguments = parser.parse_args()

    if arguments.step == "prove":
        return show(call(arguments.region, arguments.function, {"action": "prove"}))
    if arguments.step == "report":
        return show(json.loads(ANSWER_FILE.read_text()))
    ANSWER_FILE.parent.mkdir(exist_ok=True)
    ANSWER_FILE.unlink(missing_ok=True)
    region, database, function, password = (
        os.environ[f"PAYPILOT_{name}"] for name in ("REGION", "DATABASE", "FUNCTION", "MASTER_PASSWORD")
    )
    answer = json.dumps(bootstrap(region, database, function, password))
    ANSWER_FILE.write_text(answer.replace(password, "***"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
