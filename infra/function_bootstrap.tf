# The bootstrap function, its role and its log group: all that it may do is in this file. No route, no URL and
# no schedule can hand it the master password: only the apply does (bootstrap.tf).

resource "aws_lambda_function" "bootstrap" {
  function_name    = "${var.name}-bootstrap"
  description      = "Applies the schema and proves what the service's database role can't do"
  role             = aws_iam_role.bootstrap.arn
  runtime          = "python3.13"
  architectures    = ["arm64"]
  handler          = "paypilot_bootstrap.function.handler"
  filename         = var.bootstrap_package
  source_code_hash = filebase64sha256(var.bootstrap_package)
  memory_size      = 256
  timeout          = 300

  environment {
    variables = merge(local.database_environment, {
      PAYPILOT_MASTER_USER    = local.database.master
      POWERTOOLS_SERVICE_NAME = "paypilot-bootstrap"
    })
  }

  vpc_config {
    subnet_ids         = aws_subnet.private[*].id
    security_group_ids = [aws_security_group.function.id]
  }

  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.bootstrap.name
  }

  depends_on = [aws_iam_role_policy.bootstrap]
}

resource "aws_cloudwatch_log_group" "bootstrap" {
  name              = "/aws/lambda/${var.name}-bootstrap"
  retention_in_days = var.log_retention_days
}

resource "aws_iam_role" "bootstrap" {
  name                 = "${var.name}-bootstrap"
  description          = "The bootstrap function: writes its log, joins the VPC, logs in to the database as the service to prove its limits"
  permissions_boundary = local.role_boundary_arn
  assume_role_policy   = local.assumed_by_lambda
}

resource "aws_iam_role_policy" "bootstrap" {
  name = "bootstrap"
  role = aws_iam_role.bootstrap.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "WriteLog"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.bootstrap.arn}:*"
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
            "lambda:SourceFunctionArn" = "arn:${local.partition}:lambda:${var.region}:${local.account_id}:function:${var.name}-bootstrap"
          }
        }
      },
    ]
  })
}
