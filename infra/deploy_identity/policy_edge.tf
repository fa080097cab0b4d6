# The API, the logs, and what watches them.
locals {
  log_groups = [
    "/aws/vendedlogs/${var.name}/access",
    "/${var.name}/access", # where a slice deployed before 1.0.0 has it, for the upgrade to delete
    "/${var.name}/flow",
    "/aws/lambda/${var.name}-bootstrap",
    "/aws/lambda/${var.name}-decision",
    "/aws/rds/instance/${var.name}/postgresql",
  ]

  edge_policy = {
    Version = "2012-10-17"
    Statement = [
      # HTTP APIs have ids that AWS chooses, so the region is all that there is to scope by.
      {
        Sid    = "HttpApis"
        Effect = "Allow"
        Action = ["apigateway:DELETE", "apigateway:GET", "apigateway:PATCH", "apigateway:POST", "apigateway:PUT"]
        Resource = [
          "arn:${local.partition}:apigateway:${var.region}::/apis",
          "arn:${local.partition}:apigateway:${var.region}::/apis/*",
          "arn:${local.partition}:apigateway:${var.region}::/tags/*",
        ]
      },
      {
        Sid    = "OwnLogGroups"
        Effect = "Allow"
        Action = [
          "logs:CreateLogGroup",
          "logs:DeleteLogGroup",
          "logs:ListTagsForResource",
          "logs:PutRetentionPolicy",
          "logs:TagResource",
          "logs:UntagResource",
        ]
        Resource = flatten([for group in local.log_groups : ["${local.arn.logs}:log-group:${group}", "${local.arn.logs}:log-group:${group}:*"]])
      },
      # What AWS asks of whoever turns on an HTTP API's access log; none of these can be scoped.
      {
        Sid    = "DeliverAccessLog"
        Effect = "Allow"
        Action = [
          "logs:CreateLogDelivery",
          "logs:DeleteLogDelivery",
          "logs:DescribeLogGroups",
          "logs:DescribeResourcePolicies",
          "logs:GetLogDelivery",
          "logs:ListLogDeliveries",
          "logs:PutResourcePolicy",
          "logs:UpdateLogDelivery",
        ]
        Resource  = "*"
        Condition = { StringEquals = { "aws:RequestedRegion" = var.region } }
      },
      {
        Sid    = "OwnSchedule"
        Effect = "Allow"
        Action = [
          "events:DeleteRule",
          "events:DescribeRule",
          "events:ListTagsForResource",
          "events:ListTargetsByRule",
          "events:PutRule",
          "events:PutTargets",
          "events:RemoveTargets",
          "events:TagResource",
          "events:UntagResource",
        ]
        Resource = "${local.arn.events}:rule/${var.name}-proof"
      },
      {
        Sid    = "OwnTopic"
        Effect = "Allow"
        Action = [
          "sns:CreateTopic",
          "sns:DeleteTopic",
          "sns:GetTopicAttributes",
          "sns:ListTagsForResource",
          "sns:SetTopicAttributes",
          "sns:Subscribe",
          "sns:TagResource",
          "sns:UntagResource",
        ]
        Resource = ["${local.arn.sns}:${var.name}-alarms", "${local.arn.sns}:${var.name}-alarms:*"]
      },
      # AWS checks these on no particular alarm or topic.
      {
        Sid       = "AlarmsAndSubscriptions"
        Effect    = "Allow"
        Action    = ["cloudwatch:DescribeAlarms", "sns:GetSubscriptionAttributes", "sns:Unsubscribe"]
        Resource  = "*"
        Condition = { StringEquals = { "aws:RequestedRegion" = var.region } }
      },
      {
        Sid    = "OwnAlarms"
        Effect = "Allow"
        Action = [
          "cloudwatch:DeleteAlarms",
          "cloudwatch:ListTagsForResource",
          "cloudwatch:PutMetricAlarm",
          "cloudwatch:TagResource",
          "cloudwatch:UntagResource",
        ]
        Resource = "${local.arn.cloudwatch}:alarm:${var.name}-*"
      },
      {
        Sid      = "OwnDashboard"
        Effect   = "Allow"
        Action   = ["cloudwatch:DeleteDashboards", "cloudwatch:GetDashboard", "cloudwatch:PutDashboard"]
        Resource = "arn:${local.partition}:cloudwatch::${local.account_id}:dashboard/${var.name}"
      },
      {
        Sid      = "OwnBudget"
        Effect   = "Allow"
        Action   = ["budgets:ListTagsForResource", "budgets:ModifyBudget", "budgets:TagResource", "budgets:UntagResource", "budgets:ViewBudget"]
        Resource = "arn:${local.partition}:budgets::${local.account_id}:budget/${var.name}-monthly"
      },
    ]
  }
}
