"""Facts of the Terraform configuration that other files repeat, and what must never be in it. Needs no Terraform."""

import re
from pathlib import Path

import pytest

from paypilot_bootstrap import function as bootstrap
from scripts.local.events import FUNCTION_SECONDS

ROOT = Path(__file__).parent.parent.parent
INFRA = ROOT / "infra"
SLICE = "\n".join(path.read_text() for path in sorted(INFRA.glob("*.tf")))

# Every type of resource that the slice is made of. A gateway, an endpoint or a rule with an address isn't among them,
# and a new type is a decision: does it cost while idle, and may the deploy identity make and delete it?
RESOURCE_TYPES = {
    "aws_apigatewayv2_api",
    "aws_apigatewayv2_integration",
    "aws_apigatewayv2_route",
    "aws_apigatewayv2_stage",
    "aws_budgets_budget",
    "aws_cloudwatch_dashboard",
    "aws_cloudwatch_event_rule",
    "aws_cloudwatch_event_target",
    "aws_cloudwatch_log_group",
    "aws_cloudwatch_metric_alarm",
    "aws_db_instance",
    "aws_db_parameter_group",
    "aws_db_subnet_group",
    "aws_default_security_group",
    "aws_flow_log",
    "aws_iam_role",
    "aws_iam_role_policy",
    "aws_lambda_function",
    "aws_lambda_invocation",
    "aws_lambda_permission",
    "aws_security_group",
    "aws_sns_topic",
    "aws_sns_topic_subscription",
    "aws_subnet",
    "aws_vpc",
    "aws_vpc_security_group_egress_rule",
    "aws_vpc_security_group_ingress_rule",
    "terraform_data",
}


def blocks(kind: str, text: str) -> dict[str, str]:
    """The top-level blocks of a kind (variable, output), by name."""
    return dict(re.findall(rf'^{kind} "(\w+)" {{\n(.*?)^}}', text, re.MULTILINE | re.DOTALL))


def metrics_of_the_code() -> set[str]:
    """Every metric name in the functions' code: a capitalised word in quotes."""
    sources = [*(ROOT / "lambda" / "paypilot").rglob("*.py"), Path(bootstrap.__file__)]
    return set(re.findall(r'"([A-Z][a-z]+(?:[A-Z][a-z]+)*)"', "\n".join(path.read_text() for path in sources)))


def test_the_slice_is_made_of_these_types_and_no_other() -> None:
    assert set(re.findall(r'^resource "(\w+)"', SLICE, re.MULTILINE)) == RESOURCE_TYPES


def test_no_rule_names_an_address() -> None:
    assert "0.0.0.0" not in SLICE
    assert "cidr_ipv4" not in SLICE
    assert "cidr_ipv6" not in SLICE


def test_the_default_security_group_is_given_no_rule() -> None:
    group = re.search(r'^resource "aws_default_security_group" "closed" {\n(.*?)^}', SLICE, re.MULTILINE | re.DOTALL)
    assert group
    assert set(re.findall(r"^\s+(\w+)", group[1], re.MULTILINE)) == {"provider", "vpc_id"}


@pytest.mark.parametrize("root", ["infra", "infra/deploy_identity", "infra/account_guardrails"])
def test_every_variable_is_typed_described_and_validated_and_every_output_described(root: str) -> None:
    text = "\n".join((ROOT / root / name).read_text() for name in ("variables.tf", "outputs.tf"))
    for name, body in blocks("variable", text).items():
        assert re.search(r"^  type +=", body, re.MULTILINE), f"{name} has no type"
        assert re.search(r"^  description +=", body, re.MULTILINE), f"{name} has no description"
        assert "validation {" in body or re.search(r"^  type +=\s*bool", body, re.MULTILINE), f"{name} takes anything"
        assert "sensitive" not in body, f"{name} would be a secret in a variable"
    for name, body in blocks("output", text).items():
        assert "description" in body, f"{name} has no description"


def test_each_alarm_is_explained_to_the_operator() -> None:
    alarms = re.search(r"^  alarms = {\n(.*?)^  }", SLICE, re.MULTILINE | re.DOTALL)
    assert alarms
    names = set(re.findall(r"^    ([\w-]+) += ", alarms[1], re.MULTILINE))
    table = (ROOT / "docs" / "operations.md").read_text().split("## Alarms")[1].split("## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == names


def test_each_metric_that_is_alarmed_or_shown_is_one_that_the_code_counts() -> None:
    shown = re.findall(r"for metric in \[([^\]]+)\] :\s+\[local\.metrics_namespace", SLICE)
    alarmed = re.findall(r'(?:decision|bootstrap)_metric, {\n\s+metric += "(\w+)"', SLICE)
    names = set(alarmed) | set(re.findall(r'"(\w+)"', " ".join(shown)))
    assert {"AuthRejected", "PrivilegeDenied", "ProofFailed", "ProofPassed", "Decisions"} <= names
    assert names <= metrics_of_the_code()


def test_the_local_host_has_the_functions_time_limit() -> None:
    default = re.search(r"default += (\d+)", blocks("variable", SLICE)["decision_timeout_seconds"])
    assert default
    assert float(default[1]) == FUNCTION_SECONDS


def test_no_file_names_a_path_of_one_machine() -> None:
    files = [*INFRA.rglob("*.tf"), *INFRA.rglob("*.hcl"), *(ROOT / "scripts").rglob("*.py"), ROOT / "Makefile"]
    assert not [path for path in files if re.search(r"(?<![\w.])/(?:opt|work|root|home)/", path.read_text())]
