# The decision function, its role and its log group: all that it may do is in this file.

locals {
  # What both functions know of the database; the names are the ones that libpq reads.
  database_environment = {
    PGHOST                  = aws_db_instance.record.address
    PGPORT                  = tostring(var.database_port)
    PGDATABASE              = local.database.name
    PGUSER                  = local.database.service
    PGSSLMODE               = "verify-full"
    PGSSLROOTCERT           = var.database_ca_path
    PAYPILOT_DATABASE_LOGIN = "iam"
    POWERTOOLS_LOG_LEVEL    = "INFO"

    POWERTOOLS_METRICS_NAMESPACE = local.metrics_namespace
  }

  connect_as_service_arn = join(":", [
    "arn", local.partition, "rds-db", var.region, local.account_id,
    "dbuser", "${aws_db_instance.record.resource_id}/${local.database.service}",
  ])

  assumed_by_lambda = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })

  # Lambda itself attaches a function to the VPC with the function's role; the function's own code must not, and the
  # condition distinguishes the two.
  network_interface_actions = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
  ]
}

resource "aws_lambda_function" "decision" {
  function_name    = "${var.name}-decision"
  description      = "Decides what to do about a failed charge, and records it"
  role             = aws_iam_role.decision.arn
  runtime          = "python3.13"
  architectures    = ["arm64"]
  handler          = "paypilot.function.handler"
  filename         = var.decision_package
  source_code_hash = filebase64sha256(var.decision_package)
  memory_size      = var.decision_memory_mb
  timeout          = var.decision_timeout_seconds

  reserved_concurrent_executions = coalesce(var.decision_reserved_concurrency, -1)

  environment {
    variables = merge(local.database_environment, {
      DECISION_API_TOKEN      = jsonencode(var.token_digests)
      POWERTOOLS_SERVICE_NAME = "paypilot-decision"
    })
  }

  vpc_config {
    subnet_ids         = aws_subnet.private[*].id
    security_group_ids = [aws_security_group.function.id]
  }

  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.decision.name
  }

  depends_on = [aws_iam_role_policy.decision]
}

resource "aws_cloudwatch_log_group" "decision" {
  name              = "/aws/lambda/${var.name}-decision"
  retention_in_days = var.log_retention_days
}

resource "aws_iam_role" "decision" {
  name                 = "${var.name}-decision"
  description          = "The decision function: writes its log, joins the VPC, logs in to the database as the service"
  permissions_boundary = local.role_boundary_arn
  assume_role_policy   = local.assumed_by_lambda
}

resource "aws_iam_role_policy" "decision" {
  name = "decision"
  role = aws_iam_role.decision.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "WriteLog"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.decision.arn}:*"
      },
      {
        Sid      = "ConnectAsService"
        Effect   = "Allow"
        Action   = "rds-db:connect"
        Resource = local.connect_as_service_arn
      },
      {
        Sid      = "JoinVpc"
        Effect   = "Allow"
        Action   = local.network_interface_actions
        Resource = "*"
      },
      {
        Sid      = "CodeLeavesVpcAlone"
        Effect   = "Deny"
        Action   = local.network_interface_actions
        Resource = "*"
        Condition = {
          ArnEquals = {
            "lambda:SourceFunctionArn" = "arn:${local.partition}:lambda:${var.region}:${local.account_id}:function:${var.name}-decision"
          }
        }
      },
    ]
  })
}
