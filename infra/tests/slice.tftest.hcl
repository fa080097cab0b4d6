# What the slice is made of, with a provider that makes nothing up to its ids: `terraform test` needs no account.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_availability_zones" {
    defaults = { names = ["eu-west-1a", "eu-west-1b", "eu-west-1c"] }
  }
  mock_resource "aws_db_instance" {
    defaults = { address = "record.example.com", resource_id = "db-ABC" }
  }
  mock_resource "aws_security_group" {
    defaults = { id = "sg-0123456789abcdef0" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-west-1:111122223333:log-group:mock" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/mock" }
  }
  mock_resource "aws_lambda_function" {
    defaults = {
      arn        = "arn:aws:lambda:eu-west-1:111122223333:function:mock"
      invoke_arn = "arn:aws:apigateway:eu-west-1:lambda:path/2015-03-31/functions/arn:aws:lambda:eu-west-1:111122223333:function:mock/invocations"
    }
  }
  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:eu-west-1:111122223333:rule/mock" }
  }
  mock_resource "aws_apigatewayv2_api" {
    defaults = { id = "abc123", execution_arn = "arn:aws:execute-api:eu-west-1:111122223333:abc123" }
  }
  mock_resource "aws_apigatewayv2_stage" {
    defaults = { invoke_url = "https://abc123.execute-api.eu-west-1.amazonaws.com/" }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-west-1:111122223333:mock" }
  }
  mock_resource "aws_lambda_invocation" {
    defaults = { result = "{\"proved\": true, \"proofs\": [{\"name\": \"UPDATE\", \"expected\": \"42501\", \"got\": \"42501\", \"passed\": true}]}" }
  }
}

# The real provider, for the ephemeral password: Terraform can't mock that. tests/infra stands in for the one AWS call
# that it makes (AWS_ENDPOINT_URL_SECRETS_MANAGER); without it these tests fail to connect.
provider "aws" {
  alias                       = "untagged"
  region                      = "eu-west-1"
  access_key                  = "mock"
  secret_key                  = "mock"
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}

override_resource {
  target = aws_default_security_group.closed
}

variables {
  region            = "eu-west-1"
  notify_email      = "operations@example.com"
  token_digests     = { "sha256:0000000000000000000000000000000000000000000000000000000000000000" = "acme" }
  decision_package  = "versions.tf" # any file: nothing is uploaded
  bootstrap_package = "versions.tf"
  python            = "true" # the provisioners run for real, and this does nothing
}

run "the_network_is_closed" {
  assert {
    condition     = length(aws_security_group.function.ingress) == 0 && length(aws_security_group.function.egress) == 0 && length(aws_security_group.database.ingress) == 0 && length(aws_security_group.database.egress) == 0
    error_message = "A security group has rules of its own beside the two that are resources."
  }
  assert {
    condition = alltrue([
      for rule in [aws_vpc_security_group_egress_rule.function_to_database, aws_vpc_security_group_ingress_rule.database_from_function] :
      rule.cidr_ipv4 == null && rule.cidr_ipv6 == null && rule.from_port == 5432 && rule.to_port == 5432 && rule.ip_protocol == "tcp"
    ])
    error_message = "Function and database talk on more than the database's port, or with an address instead of each other."
  }
  assert {
    condition     = alltrue([for subnet in aws_subnet.private : !subnet.map_public_ip_on_launch])
    error_message = "A subnet gives out public addresses."
  }
  assert {
    condition     = length(distinct(aws_subnet.private[*].availability_zone)) == 2
    error_message = "The subnets are not in two zones: RDS refuses such a subnet group."
  }
  assert {
    condition     = aws_flow_log.rejected.traffic_type == "REJECT"
    error_message = "Rejected traffic is not what the flow log records."
  }
}

run "the_database_is_private_encrypted_backed_up_and_protected" {
  assert {
    condition     = aws_db_instance.record.storage_encrypted && !aws_db_instance.record.publicly_accessible && aws_db_instance.record.iam_database_authentication_enabled
    error_message = "The database is not encrypted, is public, or takes no IAM login."
  }
  assert {
    condition     = aws_db_instance.record.deletion_protection && !aws_db_instance.record.skip_final_snapshot && aws_db_instance.record.backup_retention_period == 7
    error_message = "By default the database can be lost: no protection, no final snapshot or no backups."
  }
  assert {
    condition     = aws_db_instance.record.auto_minor_version_upgrade && aws_db_instance.record.engine_version == "18"
    error_message = "Minor versions are pinned or not upgraded."
  }
  assert {
    condition     = aws_db_instance.record.instance_class == "db.t4g.micro" && aws_db_instance.record.max_allocated_storage == 100
    error_message = "Not the smallest burstable Graviton class, or storage without a cap."
  }
  assert {
    condition     = aws_db_instance.record.performance_insights_retention_period == 7
    error_message = "Performance Insights beyond seven days costs."
  }
  assert {
    condition     = { for parameter in aws_db_parameter_group.tls_required.parameter : parameter.name => parameter.value }["rds.force_ssl"] == "1"
    error_message = "The database takes connections without TLS."
  }
  assert {
    condition     = { for parameter in aws_db_parameter_group.tls_required.parameter : parameter.name => parameter.value }["rds.restrict_password_commands"] == "1"
    error_message = "The service's role may change its own password."
  }
  assert {
    condition     = aws_db_instance.record.password == null && aws_db_instance.record.password_wo == null
    error_message = "A master password is in the state."
  }
}

run "a_trial_leaves_nothing_behind" {
  variables {
    deletion_protection = false
    final_snapshot      = false
  }
  assert {
    condition     = !aws_db_instance.record.deletion_protection && aws_db_instance.record.skip_final_snapshot && aws_db_instance.record.delete_automated_backups
    error_message = "A trial's destroy would be refused, or leave a snapshot."
  }
}

run "the_decision_function_may_log_join_the_vpc_and_connect_as_the_service" {
  assert {
    condition = jsondecode(aws_iam_role_policy.decision.policy) == jsondecode(jsonencode({
      Version = "2012-10-17"
      Statement = [
        {
          Sid      = "WriteLog"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "arn:aws:logs:eu-west-1:111122223333:log-group:mock:*"
        },
        {
          Sid      = "ConnectAsService"
          Effect   = "Allow"
          Action   = "rds-db:connect"
          Resource = "arn:aws:rds-db:eu-west-1:111122223333:dbuser:db-ABC/paypilot_service"
        },
        {
          Sid      = "JoinVpc"
          Effect   = "Allow"
          Action   = ["ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"]
          Resource = "*"
        },
        {
          Sid       = "CodeLeavesVpcAlone"
          Effect    = "Deny"
          Action    = ["ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"]
          Resource  = "*"
          Condition = { ArnEquals = { "lambda:SourceFunctionArn" = "arn:aws:lambda:eu-west-1:111122223333:function:paypilot-decision" } }
        },
      ]
    }))
    error_message = "The decision function's policy is not what was agreed, whole."
  }
}

run "the_bootstrap_function_may_do_as_much_with_its_own_log" {
  assert {
    condition = jsondecode(aws_iam_role_policy.bootstrap.policy) == jsondecode(jsonencode({
      Version = "2012-10-17"
      Statement = [
        {
          Sid      = "WriteLog"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "arn:aws:logs:eu-west-1:111122223333:log-group:mock:*"
        },
        {
          Sid      = "ConnectAsService"
          Effect   = "Allow"
          Action   = "rds-db:connect"
          Resource = "arn:aws:rds-db:eu-west-1:111122223333:dbuser:db-ABC/paypilot_service"
        },
        {
          Sid      = "JoinVpc"
          Effect   = "Allow"
          Action   = ["ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"]
          Resource = "*"
        },
        {
          Sid       = "CodeLeavesVpcAlone"
          Effect    = "Deny"
          Action    = ["ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"]
          Resource  = "*"
          Condition = { ArnEquals = { "lambda:SourceFunctionArn" = "arn:aws:lambda:eu-west-1:111122223333:function:paypilot-bootstrap" } }
        },
      ]
    }))
    error_message = "The bootstrap function's policy is not what was agreed, whole."
  }
}

run "every_role_is_capped_by_the_boundary_and_trusts_one_service" {
  assert {
    condition = alltrue([
      for role in [aws_iam_role.decision, aws_iam_role.bootstrap, aws_iam_role.flow] :
      role.permissions_boundary == "arn:aws:iam::111122223333:policy/paypilot-boundary"
    ])
    error_message = "A role has no boundary, so the deploy identity can't make it."
  }
  assert {
    condition = [
      for role in [aws_iam_role.decision, aws_iam_role.bootstrap, aws_iam_role.flow] :
      jsondecode(role.assume_role_policy).Statement[0].Principal.Service
    ] == ["lambda.amazonaws.com", "lambda.amazonaws.com", "vpc-flow-logs.amazonaws.com"]
    error_message = "A role can be assumed by another service than its own."
  }
  assert {
    condition = jsondecode(aws_iam_role_policy.flow.policy) == jsondecode(jsonencode({
      Version = "2012-10-17"
      Statement = [{
        Sid    = "WriteFlowLogs"
        Effect = "Allow"
        Action = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
        Resource = [
          "arn:aws:logs:eu-west-1:111122223333:log-group:mock",
          "arn:aws:logs:eu-west-1:111122223333:log-group:mock:log-stream:*",
        ]
      }]
    }))
    error_message = "The flow log's policy is not what was agreed, whole."
  }
}

run "the_functions_configuration_holds_digests_and_no_secret" {
  assert {
    condition = aws_lambda_function.decision.environment[0].variables == tomap({
      DECISION_API_TOKEN           = "{\"sha256:0000000000000000000000000000000000000000000000000000000000000000\":\"acme\"}"
      PAYPILOT_DATABASE_LOGIN      = "iam"
      PGDATABASE                   = "paypilot"
      PGHOST                       = "record.example.com"
      PGPORT                       = "5432"
      PGSSLMODE                    = "verify-full"
      PGSSLROOTCERT                = "/var/task/paypilot/rds-global-bundle.pem"
      PGUSER                       = "paypilot_service"
      POWERTOOLS_LOG_LEVEL         = "INFO"
      POWERTOOLS_METRICS_NAMESPACE = "PayPilot"
      POWERTOOLS_SERVICE_NAME      = "paypilot-decision"
    })
    error_message = "The decision function is told something else than what was agreed."
  }
  assert {
    condition     = aws_lambda_function.bootstrap.environment[0].variables["PAYPILOT_MASTER_USER"] == "paypilot_master" && !contains(keys(aws_lambda_function.bootstrap.environment[0].variables), "PGPASSWORD") && !contains(keys(aws_lambda_function.bootstrap.environment[0].variables), "DECISION_API_TOKEN")
    error_message = "The bootstrap function is told a secret, or not who the master user is."
  }
  assert {
    condition     = aws_lambda_function.decision.reserved_concurrent_executions == -1
    error_message = "Concurrency is reserved by default: a new account's apply would fail."
  }
  assert {
    condition     = aws_lambda_function.decision.architectures == tolist(["arm64"]) && aws_lambda_function.decision.runtime == "python3.13" && aws_lambda_function.decision.memory_size == 512
    error_message = "The decision function is not python3.13 on arm64 with 512 MB."
  }
}

run "the_api_has_one_route_and_logs_no_header_and_no_body" {
  assert {
    condition     = aws_apigatewayv2_route.everything.route_key == "$default" && aws_apigatewayv2_stage.default.name == "$default"
    error_message = "Answers would be the gateway's, or paths carry a stage."
  }
  assert {
    condition     = aws_apigatewayv2_integration.decision.payload_format_version == "2.0" && aws_apigatewayv2_integration.decision.integration_uri == aws_lambda_function.decision.invoke_arn
    error_message = "The route doesn't lead to the decision function, with payload format 2.0."
  }
  assert {
    condition = sort(values(jsondecode(aws_apigatewayv2_stage.default.access_log_settings[0].format))) == sort([
      "$context.requestId", "$context.requestTimeEpoch", "$context.identity.sourceIp", "$context.httpMethod", "$context.path",
      "$context.status", "$context.responseLength", "$context.responseLatency", "$context.integrationLatency", "$context.integrationErrorMessage",
    ])
    error_message = "The access log holds something else than what was agreed."
  }
  assert {
    condition     = aws_cloudwatch_log_group.access.name == "/aws/vendedlogs/paypilot/access"
    error_message = "The access log's group takes up room in the account's policy for log delivery."
  }
  assert {
    condition     = aws_cloudwatch_log_group.access.retention_in_days == 7
    error_message = "Access logs are not kept seven days."
  }
  assert {
    condition     = aws_lambda_permission.api.source_arn == "arn:aws:execute-api:eu-west-1:111122223333:abc123/*/$default" && aws_lambda_permission.proof.principal == "events.amazonaws.com"
    error_message = "Something else may invoke a function."
  }
}

run "every_alarm_notifies_the_one_address" {
  assert {
    condition = sort(keys(aws_cloudwatch_metric_alarm.slice)) == sort([
      "api-5xx", "bootstrap-errors", "database-connections", "database-cpu", "database-storage", "decision-errors",
      "decision-throttled", "privilege-denied", "proof-failed", "proof-missing", "rejected-tokens",
    ])
    error_message = "An alarm is gone, or one that docs/operations.md doesn't tell about is there."
  }
  assert {
    condition = alltrue([
      for alarm in aws_cloudwatch_metric_alarm.slice : alarm.alarm_actions == toset([aws_sns_topic.alarms.arn])
    ])
    error_message = "An alarm notifies nobody."
  }
  assert {
    condition     = aws_sns_topic_subscription.operator.endpoint == "operations@example.com" && alltrue([for notification in aws_budgets_budget.monthly.notification : notification.subscriber_email_addresses == toset(["operations@example.com"])])
    error_message = "Alarms and budget don't notify the one address."
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.slice["proof-missing"].treat_missing_data == "breaching" && aws_cloudwatch_metric_alarm.slice["proof-missing"].period == 86400
    error_message = "A proof that no longer runs raises no alarm."
  }
}

run "the_proof_runs_on_a_schedule_without_a_secret" {
  assert {
    condition     = aws_cloudwatch_event_target.proof.input == "{\"action\":\"prove\"}" && aws_cloudwatch_event_rule.proof.schedule_expression == "rate(12 hours)"
    error_message = "The schedule runs something else than the proof."
  }
}

run "the_outputs_tell_the_operator_where_it_is" {
  assert {
    condition     = output.url == "https://abc123.execute-api.eu-west-1.amazonaws.com" && output.name == "paypilot" && output.region == "eu-west-1" && output.bootstrap_function == "paypilot-bootstrap" && output.database_identifier == "paypilot"
    error_message = "An output is wrong: make prove, contract and destroy read them."
  }
  assert {
    condition     = output.proofs == ["UPDATE"]
    error_message = "What was proved isn't shown."
  }
}

run "a_proof_that_did_not_pass_fails_the_apply" {
  state_key = "another stack" # in which the proof has not run yet

  override_resource {
    target = aws_lambda_invocation.proof
    values = { result = "{\"proved\": false, \"proofs\": [{\"name\": \"UPDATE\", \"expected\": \"42501\", \"got\": \"allowed\", \"passed\": false}]}" }
  }
  expect_failures = [aws_lambda_invocation.proof]
}
