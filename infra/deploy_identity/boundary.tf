# The most that any role of the stack can ever do, whatever its own policy says: write its log, join the VPC, and
# log in to the database as the service.
resource "aws_iam_policy" "boundary" {
  name        = "${var.name}-boundary"
  description = "Caps every role of the stack ${var.name}"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "Log"
        Effect = "Allow"
        Action = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
        Resource = [
          "${local.arn.logs}:log-group:/aws/lambda/${var.name}-*",
          "${local.arn.logs}:log-group:/${var.name}/flow",
          "${local.arn.logs}:log-group:/${var.name}/flow:log-stream:*",
        ]
      },
      {
        Sid    = "JoinVpc"
        Effect = "Allow"
        Action = [
          "ec2:AssignPrivateIpAddresses",
          "ec2:CreateNetworkInterface",
          "ec2:DeleteNetworkInterface",
          "ec2:DescribeNetworkInterfaces",
          "ec2:DescribeSubnets",
          "ec2:UnassignPrivateIpAddresses",
        ]
        Resource = "*"
      },
      {
        Sid      = "ConnectAsService"
        Effect   = "Allow"
        Action   = "rds-db:connect"
        Resource = "${local.arn["rds-db"]}:dbuser:*/paypilot_service"
      },
    ]
  })
}
