"""The slice's life on an emulated AWS, as the deploy identity, by the operator's own commands.

The tests are one story in the order of this file: a stack takes minutes to make, so each goes on with what the one
before left. The first failure ends it (`failed_before`).
"""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from botocore.exceptions import ClientError

from e2e.stage import ACCOUNT, MASTER, NAME, REGION, Stage, commit_clone
from paypilot import __version__
from scripts.local.postgres import LocalPostgres
from support import terraform

pytestmark = pytest.mark.usefixtures("database", "identity")

# What the contract suite asks that the emulator answers in the API's place, or passes on changed.
EMULATORS_OWN = {
    "OPTIONS-": "it answers OPTIONS itself; an HTTP API without CORS passes it on to the function",
    "latin1-as_text": "it replaces what isn't UTF-8 in a text body before the function sees it",
    "utf8-as_text": "likewise",
}

# The emulator has no Access Analyzer, no EBS default, and no S3 Control where the provider asks for it, so these are
# the guardrails that it can show; infra/account_guardrails/tests checks all of them. The bucket's life cycle is left
# out too, for the minute that the provider waits for it to settle.
GUARDRAILS_OF_THE_EMULATOR = [
    "aws_cloudtrail.account",
    "aws_iam_account_password_policy.account",
    "aws_s3_bucket_server_side_encryption_configuration.trail",
    "aws_s3_bucket_versioning.trail",
]


@pytest.fixture(autouse=True)
def failed_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test goes on from the one before, so after a failure the rest would only repeat it."""
    if request.session.testsfailed and not os.environ.get("PAYPILOT_E2E_KEEP"):
        pytest.skip("an earlier step failed")
    yield


def deploy(stage: Stage, *words: str) -> "subprocess.CompletedProcess[str]":
    """`make deploy`, with the packages built for the Python that the emulator runs."""
    return stage.make("deploy", "PACKAGE=--local", *words)


def decide(stage: Stage, token: str, invoice_id: str) -> httpx.Response:
    return httpx.post(
        f"{stage.url}/decide",
        json={"invoice_id": invoice_id, "failure_code": "card_expired"},
        headers={"authorization": f"Bearer {token}"},
        timeout=60,
    )


def superuser(database: LocalPostgres) -> "psycopg.Connection[Any]":
    return psycopg.connect(database.conninfo("paypilot"), autocommit=True)


def changes(stage: Stage, plan: str) -> dict[str, set[str]]:
    """The attributes that a plan would change, by the address of the resource; "create" or "delete" for a whole one."""
    found = {}
    for resource in terraform.shown(stage.infra, plan)["resource_changes"]:
        change = resource["change"]
        if change["actions"] in (["no-op"], ["read"]):
            continue
        before, after, unknown = change["before"] or {}, change["after"] or {}, change["after_unknown"]
        names = before.keys() | after.keys() | unknown.keys()
        changed = {name for name in names if unknown.get(name) or before.get(name) != after.get(name)}
        found[resource["address"]] = changed if before and after else {change["actions"][0]}
    return found


def log_events(stage: Stage, group: str) -> list[str]:
    """Every message in a log group."""
    logs = stage.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
    return [event["message"] for page in pages for event in page["events"]]


def proofs_passed(stage: Stage) -> int:
    """How often bootstrap's log counted a proof that passed."""
    return sum("ProofPassed" in message for message in log_events(stage, f"/aws/lambda/{NAME}-bootstrap"))


def invoke(stage: Stage, function: str, event: dict[str, str]) -> dict[str, Any]:
    answer = stage.client("lambda").invoke(FunctionName=f"{NAME}-{function}", Payload=json.dumps(event).encode())
    found: dict[str, Any] = json.load(answer["Payload"])
    return found


def test_the_account_guardrails_apply(stage: Stage) -> None:
    terraform.init(stage.infra / "account_guardrails")
    with stage.step("terraform apply infra/account_guardrails (as root)"):
        targets = [f"-target={address}" for address in GUARDRAILS_OF_THE_EMULATOR]
        applied = stage.run(
            [
                "terraform",
                "-chdir=infra/account_guardrails",
                "apply",
                "-auto-approve",
                f"-var=region={REGION}",
                *targets,
            ],
            stage.environment(stage.root_identity),
        )
    assert applied.returncode == 0, applied.stdout[-5000:]
    assert stage.client("cloudtrail").get_trail_status(Name="account")["IsLogging"]


def test_a_deployment_without_settings_is_stopped_before_anything_is_made(stage: Stage) -> None:
    settings = stage.infra / "settings.auto.tfvars.json"
    kept = settings.read_text()
    settings.write_text("{}")
    try:
        stopped = deploy(stage)
    finally:
        settings.write_text(kept)
    assert stopped.returncode != 0
    assert "NO  notify_email: missing" in stopped.stdout
    assert not stage.client("rds").describe_db_instances()["DBInstances"]


def test_make_deploy_makes_the_slice_as_the_deploy_identity(stage: Stage, tokens: dict[str, str]) -> None:
    with stage.step("make deploy, from nothing"):
        deployed = deploy(stage)
    assert deployed.returncode == 0, deployed.stdout[-5000:]
    refused = [line for line in stage.decisions() if not line["allowed"]]
    assert not refused, "the deploy identity lacks something"


def test_health_carries_the_commit_that_was_deployed(stage: Stage) -> None:
    head = subprocess.run(
        ["git", "-C", stage.clone, "rev-parse", "HEAD"], capture_output=True, check=True, text=True
    ).stdout.strip()
    assert httpx.get(f"{stage.url}/health", timeout=30).json() == {
        "status": "ok",
        "version": __version__,
        "commit": head,
    }


def test_a_decision_is_recorded_and_shown(stage: Stage, tokens: dict[str, str]) -> None:
    headers = {"authorization": f"Bearer {tokens['client-a']}"}
    decided = decide(stage, tokens["client-a"], "in_e2e/1")
    assert decided.status_code == 200, decided.text
    shown = httpx.get(f"{stage.url}/decisions/in_e2e/1", headers=headers, timeout=30)
    assert shown.json()["decisions"] == [decided.json()]
    assert decide(stage, "not-a-token", "in_e2e/1").status_code == 401


def contract(stage: Stage, tokens: dict[str, str], *options: str) -> "subprocess.CompletedProcess[str]":
    """`make contract` against the API. Not through stage.run: it holds tokens, and may show them when it fails."""
    asked = ["-k", f"'not ({' or '.join(EMULATORS_OWN)})'", *options]
    return subprocess.run(
        ["make", "contract", f"URL={stage.url}"],
        cwd=stage.clone,
        env=stage.environment({})
        | {
            # Against a gateway the suite may skip what the gateway refuses itself.
            "CI": "",
            "PAYPILOT_CONTRACT_TOKEN": tokens["client-a"],
            "PAYPILOT_CONTRACT_OTHER_TOKEN": tokens["client-b"],
            "PYTEST_ADDOPTS": " ".join(asked),
        },
        capture_output=True,
        text=True,
    )


def test_the_contract_suite_passes_over_the_apis_url(stage: Stage, tokens: dict[str, str]) -> None:
    with stage.step("make contract, over HTTP"):
        suite = contract(stage, tokens)
    if suite.returncode:
        # Each of the emulator's ten functions is a process beside the database and the suite: on a busy machine one may
        # be too slow. What fails twice is no matter of time.
        print(suite.stdout[-10_000:])
        with stage.step("make contract, what failed once more"):
            suite = contract(stage, tokens, "--last-failed")
    assert suite.returncode == 0, suite.stdout[-10_000:]
    assert re.search(r"\d+ passed", suite.stdout)


def test_the_proof_can_be_run_again_alone(stage: Stage) -> None:
    with stage.step("make prove"):
        proved = stage.make("prove")
    assert proved.returncode == 0, proved.stdout
    assert "UPDATE decision_audit: 42501" in proved.stdout


def test_a_second_plan_shows_no_change(stage: Stage) -> None:
    with stage.step("terraform plan, again"):
        planned = stage.make("plan", "PACKAGE=--local")
    assert planned.returncode == 0, planned.stdout[-5000:]
    assert changes(stage, "deploy.tfplan") == {}
    assert "No changes. Your infrastructure matches the configuration." in planned.stdout


def test_a_refresh_only_plan_shows_no_change_outside(stage: Stage) -> None:
    with stage.step("terraform plan -refresh-only"):
        environment = stage.environment(stage.identity)
        planned = stage.run(["terraform", "-chdir=infra", "plan", "-refresh-only"], environment)
    assert planned.returncode == 0, planned.stdout[-5000:]
    assert "No changes. Your infrastructure still matches the configuration." in planned.stdout


def test_the_network_has_no_way_out(stage: Stage) -> None:
    network = stage.client("ec2")
    (vpc,) = [vpc["VpcId"] for vpc in network.describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")]
    within = [{"Name": "vpc-id", "Values": [vpc]}]
    assert network.describe_nat_gateways()["NatGateways"] == []
    assert network.describe_vpc_endpoints()["VpcEndpoints"] == []
    attached = network.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [vpc]}])
    assert attached["InternetGateways"] == []
    for table in network.describe_route_tables(Filters=within)["RouteTables"]:
        assert [route["GatewayId"] for route in table["Routes"]] == ["local"]
    groups = {group["GroupName"]: group for group in network.describe_security_groups(Filters=within)["SecurityGroups"]}
    assert groups.keys() == {"default", f"{NAME}-function", f"{NAME}-database"}
    rules = {name: (len(group["IpPermissions"]), len(group["IpPermissionsEgress"])) for name, group in groups.items()}
    assert rules == {"default": (0, 0), f"{NAME}-function": (0, 1), f"{NAME}-database": (1, 0)}


def test_the_bootstrap_is_reachable_from_no_route(stage: Stage) -> None:
    api = stage.client("apigatewayv2")
    (only,) = api.get_apis()["Items"]
    routes = api.get_routes(ApiId=only["ApiId"])["Items"]
    assert [route["RouteKey"] for route in routes] == ["$default"]
    integrations = api.get_integrations(ApiId=only["ApiId"])["Items"]
    assert [f"{NAME}-decision" in integration["IntegrationUri"] for integration in integrations] == [True]
    policy = json.loads(stage.client("lambda").get_policy(FunctionName=f"{NAME}-bootstrap")["Policy"])
    assert [statement["Principal"]["Service"] for statement in policy["Statement"]] == ["events.amazonaws.com"]


def test_the_schedule_runs_the_proof(stage: Stage) -> None:
    with stage.step("the schedule's own proof (every minute here)"):
        give_up = time.monotonic() + 120
        before = proofs_passed(stage)
        while proofs_passed(stage) == before:
            assert time.monotonic() < give_up, "the rule ran no proof for two minutes"
            time.sleep(1)


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("PGSSLROOTCERT", "other-ca.pem", "certificate verify failed"),
        ("PGHOST", "127.0.0.1", "does not match host name"),
    ],
    ids=["another CA's certificate", "another host's certificate"],
)
def test_a_database_that_is_not_the_one_is_not_talked_to(
    stage: Stage, tokens: dict[str, str], variable: str, value: str, reason: str
) -> None:
    functions = stage.client("lambda")
    names = [f"{NAME}-bootstrap", f"{NAME}-decision"]
    kept = {name: functions.get_function_configuration(FunctionName=name)["Environment"] for name in names}
    value = str(stage.folder / value) if value.endswith(".pem") else value
    for name in names:
        changed = {"Variables": kept[name]["Variables"] | {variable: value}}
        functions.update_function_configuration(FunctionName=name, Environment=changed)
    try:
        refused = invoke(stage, "bootstrap", {"action": "prove"})
        decided = decide(stage, tokens["client-a"], "in_tls")
    finally:
        for name in names:
            functions.update_function_configuration(FunctionName=name, Environment=kept[name])
    assert reason in refused["errorMessage"]
    assert (decided.status_code, decided.json()["code"]) == (503, "audit_unavailable")


def test_the_database_refuses_whoever_is_not_production(stage: Stage) -> None:
    def login(**changed: str) -> str:
        conninfo: dict[str, Any] = {
            "host": "localhost", "port": stage.database_port, "dbname": "paypilot", "user": "paypilot_service",
            "password": "guessed", "sslmode": "verify-full", "sslrootcert": str(stage.folder / "ca.pem"),
        }  # fmt: skip
        with pytest.raises(psycopg.OperationalError) as refused:
            psycopg.connect(**conninfo | changed)
        return str(refused.value)

    assert "PAM authentication failed" in login()
    assert "PAM authentication failed" in login(user=MASTER)
    assert "no encryption" in login(sslmode="disable")


def test_a_functions_role_can_do_what_its_policy_says_and_no_more(stage: Stage) -> None:
    known = json.loads((stage.folder / "credentials.json").read_text())
    functions_roles = {entry["role"].split("/")[-1] for entry in known.values()}
    assert functions_roles == {f"{NAME}-decision", f"{NAME}-bootstrap"}
    for access_key, entry in known.items():
        own = {
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": entry["secret"],
            "AWS_SESSION_TOKEN": entry["token"],
        }
        for service, operation, arguments in [
            ("rds", "describe_db_instances", {}),
            ("lambda", "invoke", {"FunctionName": f"{NAME}-bootstrap"}),
            ("lambda", "get_function_configuration", {"FunctionName": f"{NAME}-decision"}),
            ("iam", "get_role", {"RoleName": f"{NAME}-decision"}),
            ("s3", "list_buckets", {}),
            ("logs", "delete_log_group", {"logGroupName": f"/aws/lambda/{NAME}-decision"}),
        ]:
            assert denied(stage, own, service, operation, arguments), f"{entry['role']} may {service}:{operation}"


def denied(stage: Stage, identity: dict[str, str], service: str, operation: str, arguments: dict[str, Any]) -> bool:
    """Whether IAM, and nothing else, refuses a call."""
    try:
        getattr(stage.client(service, identity), operation)(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"] in {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
    return False


TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ],
    }
)
EVERYTHING = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/{NAME}-boundary"

MUST_NOT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "create a user": ("iam", "create_user", {"UserName": "intruder"}),
    "create an access key": ("iam", "create_access_key", {"UserName": "somebody"}),
    "create a policy": ("iam", "create_policy", {"PolicyName": "intruder", "PolicyDocument": EVERYTHING}),
    "create a version of its policy": (
        "iam",
        "create_policy_version",
        {
            "PolicyArn": f"arn:aws:iam::{ACCOUNT}:policy/{NAME}-deploy-data",
            "PolicyDocument": EVERYTHING,
            "SetAsDefault": True,
        },
    ),
    "create a version of the boundary": (
        "iam",
        "create_policy_version",
        {"PolicyArn": BOUNDARY, "PolicyDocument": EVERYTHING, "SetAsDefault": True},
    ),
    "create a role outside the stack's name": (
        "iam",
        "create_role",
        {"RoleName": "intruder", "AssumeRolePolicyDocument": TRUST, "PermissionsBoundary": BOUNDARY},
    ),
    "create a role without the boundary": (
        "iam",
        "create_role",
        {"RoleName": f"{NAME}-decision", "AssumeRolePolicyDocument": TRUST},
    ),
    "create a role with another boundary": (
        "iam",
        "create_role",
        {
            "RoleName": f"{NAME}-decision",
            "AssumeRolePolicyDocument": TRUST,
            "PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess",
        },
    ),
    "take the boundary off a role": (
        "iam",
        "delete_role_permissions_boundary",
        {"RoleName": f"{NAME}-decision"},
    ),
    "attach a policy to a role of the stack": (
        "iam",
        "attach_role_policy",
        {"RoleName": f"{NAME}-decision", "PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess"},
    ),
    "attach a policy to itself": (
        "iam",
        "attach_role_policy",
        {"RoleName": f"{NAME}-deploy", "PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess"},
    ),
    "give itself a policy": (
        "iam",
        "put_role_policy",
        {"RoleName": f"{NAME}-deploy", "PolicyName": "more", "PolicyDocument": EVERYTHING},
    ),
    "take off what limits it": (
        "iam",
        "detach_role_policy",
        {"RoleName": f"{NAME}-deploy", "PolicyArn": f"arn:aws:iam::{ACCOUNT}:policy/{NAME}-deploy-limits"},
    ),
    "change who may assume it": (
        "iam",
        "update_assume_role_policy",
        {"RoleName": f"{NAME}-deploy", "PolicyDocument": TRUST},
    ),
    "stop CloudTrail": ("cloudtrail", "stop_logging", {"Name": "account"}),
    "delete the trail": ("cloudtrail", "delete_trail", {"Name": "account"}),
    "invoke the decision function": ("lambda", "invoke", {"FunctionName": f"{NAME}-decision"}),
    "make a function outside the stack's name": (
        "lambda",
        "create_function",
        {
            "FunctionName": "intruder",
            "Role": f"arn:aws:iam::{ACCOUNT}:role/{NAME}-decision",
            "Runtime": "python3.13",
            "Handler": "x.x",
            "Code": {"ZipFile": b"PK\x05\x06" + bytes(18)},
        },
    ),
    "hand a function a role that isn't the stack's": (
        "lambda",
        "update_function_configuration",
        {"FunctionName": f"{NAME}-decision", "Role": f"arn:aws:iam::{ACCOUNT}:role/{NAME}-deploy"},
    ),
    "make a network without the stack's tag": ("ec2", "create_vpc", {"CidrBlock": "10.9.0.0/16"}),
    "make an internet gateway": ("ec2", "create_internet_gateway", {}),
    "tag what isn't the stack's": (
        "ec2",
        "create_tags",
        {"Resources": ["vpc-00000001"], "Tags": [{"Key": "stack", "Value": NAME}]},
    ),
    "delete a database outside the stack's name": (
        "rds",
        "delete_db_instance",
        {"DBInstanceIdentifier": "somebodys", "SkipFinalSnapshot": True},
    ),
    "read a secret": ("secretsmanager", "list_secrets", {}),
}


@pytest.mark.parametrize("deed", MUST_NOT)
def test_the_deploy_identity_is_refused(stage: Stage, identity: dict[str, str], deed: str) -> None:
    service, operation, arguments = MUST_NOT[deed]
    assert denied(stage, identity, service, operation, arguments), f"the deploy identity may {deed}"


def test_a_changed_variable_changes_that_and_nothing_else(stage: Stage) -> None:
    stage.write_settings(throttle={"rate": 40, "burst": 80})
    with stage.step("make plan and apply, one variable changed"):
        planned = stage.make("plan", "PACKAGE=--local")
        assert planned.returncode == 0, planned.stdout[-5000:]
        found = changes(stage, "deploy.tfplan")
        environment = stage.environment(stage.identity)
        applied = stage.run(["terraform", "-chdir=infra", "apply", "deploy.tfplan"], environment)
    assert found == {"aws_apigatewayv2_stage.default": {"default_route_settings"}}
    assert applied.returncode == 0, applied.stdout[-5000:]


def test_an_over_granted_role_fails_the_apply_by_the_proofs_name(stage: Stage, database: LocalPostgres) -> None:
    migration = stage.clone / "bootstrap" / "paypilot_bootstrap" / "sql" / "900_note.sql"
    migration.write_text(
        "SET LOCAL ROLE paypilot_owner;\nALTER TABLE paypilot.decision_audit ADD COLUMN note text;\nRESET ROLE;\n"
    )
    commit_clone(stage.clone)
    with superuser(database) as connection:
        rows = connection.execute("SELECT count(*) FROM paypilot.decision_audit").fetchone()
        assert rows is not None and rows[0] > 0, "the contract suite left no rows to keep"
        connection.execute("GRANT UPDATE ON paypilot.decision_audit TO paypilot_service")
    with stage.step("make deploy of a new schema, the role over-granted: fails"):
        failed = deploy(stage)
    assert failed.returncode != 0
    # Terraform breaks the line where it likes.
    assert re.search(r"proof failed: .*expected none, got decision_audit UPDATE", " ".join(failed.stdout.split()))


def test_a_schema_upgrade_keeps_the_rows_and_rotates_the_master_password(
    stage: Stage, database: LocalPostgres, tokens: dict[str, str]
) -> None:
    with superuser(database) as connection:
        connection.execute("REVOKE UPDATE ON paypilot.decision_audit FROM paypilot_service")
        before = connection.execute("SELECT count(*), max(seq) FROM paypilot.decision_audit").fetchone()
    with stage.step("make deploy of the new schema, rows in place"):
        deployed = deploy(stage)
    assert deployed.returncode == 0, deployed.stdout[-5000:]
    with superuser(database) as connection:
        after = connection.execute("SELECT count(*), max(seq) FROM paypilot.decision_audit").fetchone()
        assert connection.execute("SELECT count(note) FROM paypilot.decision_audit").fetchone() == (0,)
    assert after == before
    passwords = (stage.folder / "master-passwords").read_text().splitlines()
    assert len(set(passwords)) >= 2
    decided = decide(stage, tokens["client-a"], "in_after_upgrade")
    assert decided.status_code == 200, decided.text


def test_a_client_is_erased_as_operations_md_says(stage: Stage, database: LocalPostgres) -> None:
    """By the statements of docs/operations.md, as the master user, over TLS."""
    statements = re.findall(r" -c (['\"])(.+?)\1", (stage.clone / "docs" / "operations.md").read_text())
    assert len(statements) == 3
    password = (stage.folder / "master-passwords").read_text().splitlines()[-1]
    conninfo = f"host=localhost port={stage.database_port} dbname=paypilot user={MASTER} password={password}"
    tls = f"sslmode=verify-full sslrootcert={stage.folder / 'ca.pem'}"
    with psycopg.connect(f"{conninfo} {tls}", autocommit=True) as connection:
        for _, statement in statements:
            connection.execute(statement.replace("'acme'", "'client-b'"))
    with superuser(database) as connection:
        left = "SELECT count(*) FROM paypilot.decision_audit WHERE client_id = "
        assert connection.execute(f"{left} 'client-b'").fetchone() == (0,)
        assert connection.execute(f"{left} 'client-a'").fetchone() != (0,)
        assert connection.execute("SELECT DISTINCT client_id FROM paypilot.erasures").fetchall() == [("client-b",)]


def test_no_secret_is_anywhere(stage: Stage, tokens: dict[str, str]) -> None:
    """The canaries: each master password that was ever set, and each API token, in the clear."""
    canaries = [*(stage.folder / "master-passwords").read_text().split(), *tokens.values()]
    places = {path.name: path.read_text() for path in stage.infra.glob("terraform.tfstate*")}
    places["commands.log"] = (stage.folder / "commands.log").read_text()
    places["emulator.log"] = (stage.folder / "emulator.log").read_text()
    planned = stage.make("plan", "PACKAGE=--local")
    assert planned.returncode == 0, planned.stdout[-5000:]
    places["plan"] = json.dumps(terraform.shown(stage.infra, "deploy.tfplan"))
    for group in stage.client("logs").describe_log_groups()["logGroups"]:
        places[group["logGroupName"]] = "\n".join(log_events(stage, group["logGroupName"]))
    for function in stage.client("lambda").list_functions()["Functions"]:
        places[function["FunctionName"]] = json.dumps(function, default=str)
    for path in (stage.clone / "dist").iterdir():
        if path.suffix != ".zip":
            places[path.name] = path.read_text()
    for needed in ("terraform.tfstate", f"/aws/lambda/{NAME}-decision", f"{NAME}-decision"):
        assert places.get(needed), f"{needed} is empty: the search proves nothing"
    found = [(canary[:6], place) for canary in canaries for place, text in places.items() if canary in text]
    assert not found


def test_make_destroy_asks_first(stage: Stage) -> None:
    asked = stage.make("destroy")
    assert asked.returncode != 0
    assert f"make destroy CONFIRM={NAME}" in asked.stdout
    assert stage.client("rds").describe_db_instances()["DBInstances"]


def test_make_destroy_leaves_nothing_of_the_slice_and_the_guardrails_whole(stage: Stage) -> None:
    with stage.step("make destroy"):
        destroyed = stage.make("destroy", f"CONFIRM={NAME}", "SNAPSHOT=false")
    assert destroyed.returncode == 0, destroyed.stdout[-5000:]
    assert "resources" not in terraform.shown(stage.infra).get("values", {}).get("root_module", {})
    left = {
        "networks": [vpc["VpcId"] for vpc in stage.client("ec2").describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")],
        "databases": stage.client("rds").describe_db_instances()["DBInstances"],
        "snapshots": stage.client("rds").describe_db_snapshots()["DBSnapshots"],
        "functions": stage.client("lambda").list_functions()["Functions"],
        "apis": stage.client("apigatewayv2").get_apis()["Items"],
        "log groups": [
            group["logGroupName"]
            for group in stage.client("logs").describe_log_groups()["logGroups"]
            if NAME in group["logGroupName"]
        ],
        "roles": [
            role["RoleName"]
            for role in stage.client("iam").list_roles()["Roles"]
            if role["RoleName"].startswith(NAME) and role["RoleName"] != f"{NAME}-deploy"
        ],
        "alarms": stage.client("cloudwatch").describe_alarms()["MetricAlarms"],
        "topics": stage.client("sns").list_topics()["Topics"],
        "rules": stage.client("events").list_rules()["Rules"],
    }
    assert {kind: found for kind, found in left.items() if found} == {}
    assert stage.client("cloudtrail").get_trail_status(Name="account")["IsLogging"]
    guarded = terraform.run(stage.infra / "account_guardrails", "state", "list").stdout.split()
    assert "aws_cloudtrail.account" in guarded
