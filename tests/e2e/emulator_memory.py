"""What ministack forgets of what it was told, so that a plan right after an apply would show it as a change.

Each function here stands in for one of ministack's and gives its answer back as AWS does.
"""

from typing import Any
from xml.sax.saxutils import escape

from ministack.services import cloudwatch, ec2, lambda_svc, rds

original_tag_specs = ec2._parse_tag_specs
original_rules_match = ec2._rules_match
original_create_flow_logs = ec2._create_flow_logs
original_describe_flow_logs = ec2._describe_flow_logs
original_describe_alarms = cloudwatch._describe_alarms
original_instance_xml = rds._instance_xml
original_proxy_response = lambda_svc.lambda_execute_result_to_api_proxy_response

_flow_log_role: dict[str, str] = {}
_database_logs: dict[str, list[str]] = {}


def parse_tag_specs(params: Any, resource_type: str, resource_id: str) -> None:
    """AWS calls a flow log's tags vpc-flow-log's."""
    original_tag_specs(params, "vpc-flow-log" if resource_type == "flow-log" else resource_type, resource_id)


def rules_match(one: dict[str, Any], other: dict[str, Any]) -> Any:
    """To AWS a rule for all protocols has no ports, whatever ports are given."""

    def without_ports(rule: dict[str, Any]) -> dict[str, Any]:
        every = str(rule.get("IpProtocol")) == "-1"
        return {name: value for name, value in rule.items() if not (every and name in {"FromPort", "ToPort"})}

    return original_rules_match(without_ports(one), without_ports(other))


def create_flow_logs(params: dict[str, Any]) -> Any:
    """Keep the role, which the description shows again."""
    before = set(ec2._flow_logs)
    answer = original_create_flow_logs(params)
    role = params["DeliverLogsPermissionArn"]
    for made in set(ec2._flow_logs) - before:
        _flow_log_role[made] = role[0] if isinstance(role, list) else role
    return answer


def describe_flow_logs(params: dict[str, Any]) -> tuple[Any, Any, bytes]:
    """With the role, and the interval that AWS takes by default."""
    status, headers, body = original_describe_flow_logs(params)
    for identifier, role in _flow_log_role.items():
        mark = f"<flowLogId>{identifier}</flowLogId>"
        more = f"<deliverLogsPermissionArn>{role}</deliverLogsPermissionArn>"
        more += "<maxAggregationInterval>600</maxAggregationInterval>"
        body = body.replace(mark.encode(), f"{mark}{more}".encode())
    return status, headers, body


def describe_alarms(params: Any, *others: Any) -> tuple[Any, Any, bytes]:
    """With every member that the alarm was put with."""
    status, headers, body = original_describe_alarms(params, *others)
    for name, alarm in cloudwatch._alarms.items():
        mark = f"<AlarmName>{name}</AlarmName>"
        body = body.replace(mark.encode(), (mark + alarm_members(alarm)).encode())
    return status, headers, body


def alarm_members(alarm: dict[str, Any]) -> str:
    """The members of an alarm that ministack's XML lacks."""
    texts = {name: str(alarm[name]) for name in ("AlarmDescription", "Period", "Statistic", "TreatMissingData")}
    xml = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in texts.items())
    xml += f"<ActionsEnabled>{str(alarm['ActionsEnabled']).lower()}</ActionsEnabled>"
    for name in ("AlarmActions", "OKActions"):
        xml += f"<{name}>" + "".join(f"<member>{action}</member>" for action in alarm[name]) + f"</{name}>"
    dimensions = "".join(
        f"<member><Name>{dimension['Name']}</Name><Value>{dimension['Value']}</Value></member>"
        for dimension in alarm["Dimensions"]
    )
    return f"{xml}<Dimensions>{dimensions}</Dimensions>"


def remember_database_logs(members: dict[str, Any]) -> None:
    """Keep which logs a call on a database exports."""
    exported = [value for name, value in members.items() if name.startswith("EnableCloudwatchLogsExports.member")]
    if exported:
        _database_logs[members["DBInstanceIdentifier"]] = exported


def instance_xml(instance: dict[str, Any]) -> Any:
    """With the logs that the database exports."""
    logs = "".join(f"<member>{log}</member>" for log in _database_logs.get(instance["DBInstanceIdentifier"], []))
    return original_instance_xml(instance).replace(
        "<EnabledCloudwatchLogsExports/>", f"<EnabledCloudwatchLogsExports>{logs}</EnabledCloudwatchLogsExports>"
    )


def proxy_response(result: dict[str, Any]) -> tuple[Any, Any]:
    """An HTTP API's own answer to a function that may not run now."""
    response, more = original_proxy_response(result)
    if result.get("throttle"):
        response = {"statusCode": 503, "body": '{"message":"Service Unavailable"}'}
    return response, more


def install() -> None:
    """Put everything here in ministack's place."""
    ec2._parse_tag_specs = parse_tag_specs
    ec2._rules_match = rules_match
    ec2._ACTION_MAP |= {"CreateFlowLogs": create_flow_logs, "DescribeFlowLogs": describe_flow_logs}
    cloudwatch._describe_alarms = describe_alarms
    rds._instance_xml = instance_xml
    lambda_svc.lambda_execute_result_to_api_proxy_response = proxy_response
