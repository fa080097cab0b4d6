"""Run ministack with what its IAM leaves out put in, and with every decision that it takes written down.

A program of its own, started in the environment of requirements/e2e.lock. What is put in, each because AWS does it and
the deploy identity's policies depend on it: the ARN of the resource where ministack says "*"; the action's name where
IAM's isn't the API's; tags and tag conditions of EC2; iam:PermissionsBoundary; and the further checks of a call that
hands a role to a service (iam:PassRole), tags what it makes, or makes something inside a VPC.

It listens on two ports: ministack's own, and one where the stack's HTTP API answers at the root: the API's own name
doesn't resolve everywhere, and ministack answers /health of any host itself.

Environment: E2E_FOLDER, where it leaves iam.jsonl (the decisions, one JSON object a line), credentials.json (those of
each function's role, for the database's front to check signatures with) and master-passwords (each that was set, for
the front to ask for, and for the tests to look for where it must not be); E2E_AWS_PORT and E2E_API_PORT.
"""

import asyncio
import contextlib
import json
import os
import re
import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import emulator_memory
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app
from ministack.core import iam_actions, iam_evaluator, lambda_runtime
from ministack.services import apigateway, ec2, iam

FOLDER = Path(os.environ["E2E_FOLDER"])
AWS_PORT, API_PORT = int(os.environ["E2E_AWS_PORT"]), int(os.environ["E2E_API_PORT"])

EC2_MAKES = {
    "CreateFlowLogs": "vpc-flow-log",
    "CreateSecurityGroup": "security-group",
    "CreateSubnet": "subnet",
    "CreateVpc": "vpc",
}
EC2_KINDS = {
    "fl": "vpc-flow-log",
    "sg": "security-group",
    "sgr": "security-group-rule",
    "subnet": "subnet",
    "vpc": "vpc",
}
EC2_ID = re.compile(r"(fl|sgr|sg|subnet|vpc)-[0-9a-f]+")
RDS_NAMES = {"DBInstanceIdentifier": "db", "DBParameterGroupName": "pg", "DBSubnetGroupName": "subgrp"}


@dataclass
class Request:
    """One API request as ministack has parsed it; `members` holds the members of its body or query, by name."""

    region: str
    account: str
    members: dict[str, Any]


@dataclass
class Check:
    """One question to the policies, as AWS would put it."""

    action: str
    resource: str
    keys: dict[str, Any] = field(default_factory=dict)


_request: ContextVar[Request | None] = ContextVar("request", default=None)

_credentials: dict[str, dict[str, str]] = {}
_credentials_lock = threading.Lock()

original_resource_arn = iam_actions.extract_resource_arn
original_enforce = iam_evaluator.enforce
original_credentials = lambda_runtime.execution_credentials


def resource_arn(
    service: str, method: str, path: str, headers: Any, body: bytes, params: dict[str, Any], region: str, account: str
) -> Any:
    """Keep the request for `enforce`, which ministack calls next, without its body."""
    members = {name: value[0] if isinstance(value, list) and value else value for name, value in params.items()}
    with contextlib.suppress(ValueError):  # a query, which params holds already, or a package's bytes
        members |= json.loads(body or b"{}")
    _request.set(Request(region, account, members))
    return original_resource_arn(service, method, path, headers, body, params, region, account)


def checks(service: str, asked: Check, request: Request) -> list[Check]:
    """The questions that AWS would put for this request, in place of ministack's one."""
    members = request.members
    operation = asked.action.split(":")[1]
    arn = f"arn:aws:{service}:{request.region}:{request.account}"
    if service == "ec2":
        return ec2_checks(asked, operation, request, arn)
    resource = asked.resource
    if resource == "*":
        resource = members.get("ResourceArn") or members.get("ResourceARN") or members.get("ResourceName") or "*"
    if service == "lambda":
        if "FunctionName" in members and resource == "*":
            resource = f"{arn}:function:{members['FunctionName']}"
        if members.get("Role"):
            handed = Check("iam:PassRole", members["Role"], {"iam:PassedToService": "lambda.amazonaws.com"})
            return [Check(asked.action, resource, asked.keys), handed]
    elif service == "iam" and members.get("RoleName"):
        # On a creation the one that is asked for, afterwards the one that the role has.
        role = members if operation == "CreateRole" else iam._roles.get(members["RoleName"]) or {}
        boundary = role.get("PermissionsBoundary")
        return [Check(asked.action, resource, asked.keys | {"iam:PermissionsBoundary": boundary})]
    elif service == "rds" and resource == "*":
        named = [f"{arn}:{kind}:{members[name]}" for name, kind in RDS_NAMES.items() if members.get(name)]
        resource = (named or [f"{arn}:db:*"])[0]
    elif service == "events" and (rule := members.get("Rule") or members.get("Name")):
        resource = f"{arn}:rule/{rule}"
    elif service == "monitoring" and (name := members.get("DashboardName") or members.get("DashboardNames.member.1")):
        resource = f"arn:aws:cloudwatch::{request.account}:dashboard/{name}"
    elif service == "monitoring" and resource == "*" and (name := members.get("AlarmNames.member.1")):
        resource = f"arn:aws:cloudwatch:{request.region}:{request.account}:alarm:{name}"
    elif service == "budgets" and "Tag" not in operation:
        budget = members.get("BudgetName") or members["Budget"]["BudgetName"]
        action = "budgets:ViewBudget" if operation.startswith("Describe") else "budgets:ModifyBudget"
        return [Check(action, f"arn:aws:budgets::{request.account}:budget/{budget}", asked.keys)]
    return [Check(asked.action, resource, asked.keys)]


def ec2_checks(asked: Check, operation: str, request: Request, arn: str) -> list[Check]:
    """EC2 asks about each resource that a call names, with its tags, and about what the call makes, with its tags."""
    tags = {
        f"aws:RequestTag/{value}": request.members.get(name.removesuffix("Key") + "Value", "")
        for name, value in request.members.items()
        if re.search(r"Tag\.\d+\.Key$", name)
    }
    named = {value for value in request.members.values() if isinstance(value, str) and EC2_ID.fullmatch(value)}
    if operation.startswith("Describe") or not (named or operation in EC2_MAKES):
        return [asked]
    if operation.startswith(("Authorize", "Revoke", "Modify")):
        # A rule names another group as its source; the call is about the first.
        named = {request.members[name] for name in ("GroupId", "SubnetId", "VpcId") if name in request.members} & named
    found = []
    for identifier in sorted(named):
        owned = {f"aws:ResourceTag/{tag['Key']}": tag["Value"] for tag in ec2._tags.get(identifier, [])}
        found.append(Check(asked.action, f"{arn}:{EC2_KINDS[identifier.split('-')[0]]}/{identifier}", owned | tags))
    made = EC2_MAKES.get(operation)
    if made:
        # What a VPC's resource says of its own tags doesn't count for what is made in it.
        found = [
            Check(check.action, check.resource, {k: v for k, v in check.keys.items() if "Resource" in k})
            for check in found
        ]
        found.append(Check(asked.action, f"{arn}:{made}/new", tags))
    if tags and operation != "CreateTags":
        target = made or "security-group-rule"
        found.append(Check("ec2:CreateTags", f"{arn}:{target}/new", tags | {"ec2:CreateAction": operation}))
    if role := request.members.get("DeliverLogsPermissionArn"):
        found.append(Check("iam:PassRole", role, {"iam:PassedToService": "vpc-flow-logs.amazonaws.com"}))
    return found


def enforce(
    access_key: str,
    action: str,
    service: str,
    region: str,
    resource_arn: str = "*",
    service_context: dict[str, Any] | None = None,
) -> Any:
    """ministack's own evaluation, put to each of AWS's questions; the first refusal answers. All are written down."""
    request, _ = _request.get(), _request.set(None)
    asked = Check(action, resource_arn, service_context or {})
    for check in checks(service, asked, request) if request else [asked]:
        refused = original_enforce(access_key, check.action, service, region, check.resource, check.keys)
        line = {"key": access_key, "action": check.action, "resource": check.resource, "allowed": refused is None}
        with (FOLDER / "iam.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        if refused:
            return refused
    if request and service == "rds":
        emulator_memory.remember_database_logs(request.members)
    if request and (password := request.members.get("MasterUserPassword")):
        with (FOLDER / "master-passwords").open("a") as passwords:
            passwords.write(password + "\n")
    return None


def credentials(config: dict[str, Any]) -> dict[str, str]:
    """A function's credentials, as AWS would put them in its environment; the database's front is told of them."""
    made: dict[str, str] = original_credentials(config)
    file, partial = FOLDER / "credentials.json", FOLDER / "credentials.partial"
    with _credentials_lock:  # each worker starts in a thread of its own
        _credentials[made["AWS_ACCESS_KEY_ID"]] = {
            "secret": made["AWS_SECRET_ACCESS_KEY"],
            "token": made["AWS_SESSION_TOKEN"],
            "role": config["Role"],
        }
        partial.write_text(json.dumps(_credentials))
        partial.replace(file)
    return made


async def two_ports(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """ministack; and on the API's port, the stack's HTTP API at the path by which ministack knows it."""
    if scope["type"] == "http" and scope["server"][1] == API_PORT:
        api_ids = [key[-1] for key in apigateway._apis._data]
        prefix = f"/_aws/execute-api/{api_ids[0] if api_ids else 'none'}/$default"
        scope["path"] = prefix + scope["path"]
        scope["raw_path"] = prefix.encode() + scope["raw_path"]
    await app.app(scope, receive, send)


if __name__ == "__main__":
    iam_actions.extract_resource_arn = resource_arn
    iam_evaluator.enforce = enforce
    lambda_runtime.execution_credentials = credentials
    emulator_memory.install()
    config = Config()
    config.bind = [f"127.0.0.1:{AWS_PORT}", f"127.0.0.1:{API_PORT}"]
    config.keep_alive_timeout = 75
    asyncio.run(serve(two_ports, config))
