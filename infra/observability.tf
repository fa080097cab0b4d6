locals {
  metrics_namespace = "PayPilot"

  decision_metric  = { namespace = local.metrics_namespace, dimensions = { service = "paypilot-decision" } }
  bootstrap_metric = { namespace = local.metrics_namespace, dimensions = { service = "paypilot-bootstrap" } }
  database_metric  = { namespace = "AWS/RDS", dimensions = { DBInstanceIdentifier = aws_db_instance.record.identifier } }

  # Two thirds of what the smallest class admits (about 80 connections); the larger ones admit more.
  connections_alarm = 55

  # One line an alarm: what it means for the operator is its description, and docs/operations.md says what to do.
  alarms = {
    rejected-tokens = merge(local.decision_metric, {
      metric  = "AuthRejected", threshold = var.rejected_tokens_per_5_minutes
      meaning = "Many calls with a token that isn't ours: a client lost its token, or somebody is guessing."
    })
    privilege-denied = merge(local.decision_metric, {
      metric  = "PrivilegeDenied", threshold = 1
      meaning = "The database refused the service a privilege (42501) at run time: somebody changed the role."
    })
    decision-throttled = {
      namespace = "AWS/Lambda", dimensions = { FunctionName = aws_lambda_function.decision.function_name }
      metric    = "Throttles", threshold = 1
      meaning   = "Lambda turned decisions away: the account's or the function's concurrency is used up."
    }
    decision-errors = {
      namespace = "AWS/Lambda", dimensions = { FunctionName = aws_lambda_function.decision.function_name }
      metric    = "Errors", threshold = 1
      meaning   = "The decision function failed without an answer: a crash, a time-out or a broken package."
    }
    bootstrap-errors = {
      namespace = "AWS/Lambda", dimensions = { FunctionName = aws_lambda_function.bootstrap.function_name }
      metric    = "Errors", threshold = 1
      meaning   = "Bootstrap or a proof failed; its log names the proof."
    }
    api-5xx = {
      namespace = "AWS/ApiGateway", dimensions = { ApiId = aws_apigatewayv2_api.http.id }
      metric    = "5xx", threshold = 1
      meaning   = "A caller was answered 5xx: no decision left without its record, but none was made either."
    }
    proof-failed = merge(local.bootstrap_metric, {
      metric  = "ProofFailed", threshold = 1
      meaning = "The service's database role can do something that it must not, or the proof couldn't log in."
    })
    proof-missing = merge(local.bootstrap_metric, {
      metric  = "ProofPassed", threshold = 1, comparison = "LessThanThreshold", period = 86400, missing = "breaching"
      meaning = "No proof passed for a day: the schedule, the function or the metric is gone."
    })
    database-storage = merge(local.database_metric, {
      metric  = "FreeStorageSpace", threshold = 2 * 1024 * 1024 * 1024, comparison = "LessThanThreshold", statistic = "Minimum"
      meaning = "Less than 2 GiB free: autoscaling hasn't grown the storage, or has reached its cap."
    })
    database-connections = merge(local.database_metric, {
      metric  = "DatabaseConnections", threshold = local.connections_alarm, statistic = "Maximum"
      meaning = "Two thirds of the smallest class's connections are in use: reserve concurrency or take a larger class."
    })
    database-cpu = merge(local.database_metric, {
      metric  = "CPUUtilization", threshold = 80, statistic = "Average", periods = 3
      meaning = "The database's CPU was over 80 % for a quarter of an hour; a burstable class slows down next."
    })
  }
}

resource "aws_sns_topic" "alarms" {
  name = "${var.name}-alarms"
}

resource "aws_sns_topic_subscription" "operator" {
  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = var.notify_email
}

resource "aws_cloudwatch_metric_alarm" "slice" {
  for_each = local.alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.meaning
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = try(each.value.statistic, "Sum")
  period              = try(each.value.period, 300)
  evaluation_periods  = try(each.value.periods, 1)
  comparison_operator = try(each.value.comparison, "GreaterThanOrEqualToThreshold")
  threshold           = each.value.threshold
  treat_missing_data  = try(each.value.missing, "notBreaching")
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
}

resource "aws_cloudwatch_dashboard" "slice" {
  dashboard_name = var.name

  dashboard_body = jsonencode({
    widgets = [for index, widget in [
      { title = "Decisions and refusals", stat = "Sum", metrics = [
        for metric in ["Decisions", "FellThrough", "Refusals", "AuthRejected", "AuditUnavailable", "PrivilegeDenied", "Unforeseen"] :
        [local.metrics_namespace, metric, "service", "paypilot-decision"]
      ] },
      { title = "Proofs of the service's privileges", stat = "Sum", metrics = [
        for metric in ["ProofPassed", "ProofFailed"] : [local.metrics_namespace, metric, "service", "paypilot-bootstrap"]
      ] },
      { title = "API: answers", stat = "Sum", metrics = [
        for metric in ["Count", "4xx", "5xx"] : ["AWS/ApiGateway", metric, "ApiId", aws_apigatewayv2_api.http.id]
      ] },
      { title = "API: latency, p99 (ms)", stat = "p99", metrics = [
        for metric in ["Latency", "IntegrationLatency"] : ["AWS/ApiGateway", metric, "ApiId", aws_apigatewayv2_api.http.id]
      ] },
      { title = "Decision function", stat = "Sum", metrics = [
        for metric in ["Invocations", "Errors", "Throttles"] : ["AWS/Lambda", metric, "FunctionName", aws_lambda_function.decision.function_name]
      ] },
      { title = "Database", stat = "Maximum", metrics = [
        for metric in ["CPUUtilization", "DatabaseConnections", "CPUCreditBalance"] : ["AWS/RDS", metric, "DBInstanceIdentifier", aws_db_instance.record.identifier]
      ] },
      ] : {
      type       = "metric"
      x          = index % 2 * 12
      y          = floor(index / 2) * 6
      width      = 12
      height     = 6
      properties = merge(widget, { region = var.region, period = 300, view = "timeSeries" })
    }]
  })
}

# The whole account's: a filter by tag counts nothing until somebody activates the tag for billing, and says so nowhere.
resource "aws_budgets_budget" "monthly" {
  name         = "${var.name}-monthly"
  budget_type  = "COST"
  limit_amount = tostring(var.monthly_budget_usd)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"

  notification {
    comparison_operator        = "GREATER_THAN"
    notification_type          = "ACTUAL"
    threshold                  = 80
    threshold_type             = "PERCENTAGE"
    subscriber_email_addresses = [var.notify_email]
  }

  notification {
    comparison_operator        = "GREATER_THAN"
    notification_type          = "FORECASTED"
    threshold                  = 100
    threshold_type             = "PERCENTAGE"
    subscriber_email_addresses = [var.notify_email]
  }
}
