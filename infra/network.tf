# A closed network: no gateway, no endpoint, no route out. The functions reach the database and nothing else; their
# logs leave through Lambda itself, and a database token is signed without a network.

data "aws_availability_zones" "available" {
  state = "available"

  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

resource "aws_vpc" "slice" {
  cidr_block           = var.vpc_cidr
  enable_dns_support   = true
  enable_dns_hostnames = true

  tags = { Name = var.name }
}

resource "aws_subnet" "private" {
  count = 2

  vpc_id                  = aws_vpc.slice.id
  cidr_block              = cidrsubnet(var.vpc_cidr, 2, count.index)
  availability_zone       = data.aws_availability_zones.available.names[count.index]
  map_public_ip_on_launch = false

  tags = { Name = "${var.name}-private-${count.index}" }

  # Chosen once: a zone that AWS adds or closes must not move the database's subnets.
  lifecycle { ignore_changes = [availability_zone] }

  # Lambda gives its network interfaces back up to 45 minutes after the function is gone.
  timeouts { delete = "60m" }
}

# Managed to be empty: a group without rules admits nothing and lets nothing out.
resource "aws_default_security_group" "closed" {
  provider = aws.untagged
  vpc_id   = aws_vpc.slice.id
}

resource "aws_security_group" "function" {
  name        = "${var.name}-function"
  description = "Decision and bootstrap functions: out to the database only"
  vpc_id      = aws_vpc.slice.id

  tags = { Name = "${var.name}-function" }

  timeouts { delete = "60m" }
}

resource "aws_security_group" "database" {
  name        = "${var.name}-database"
  description = "Database: in from the functions only"
  vpc_id      = aws_vpc.slice.id

  tags = { Name = "${var.name}-database" }
}

resource "aws_vpc_security_group_egress_rule" "function_to_database" {
  security_group_id            = aws_security_group.function.id
  referenced_security_group_id = aws_security_group.database.id
  description                  = "Postgres"
  ip_protocol                  = "tcp"
  from_port                    = var.database_port
  to_port                      = var.database_port
}

resource "aws_vpc_security_group_ingress_rule" "database_from_function" {
  security_group_id            = aws_security_group.database.id
  referenced_security_group_id = aws_security_group.function.id
  description                  = "Postgres"
  ip_protocol                  = "tcp"
  from_port                    = var.database_port
  to_port                      = var.database_port
}

resource "aws_flow_log" "rejected" {
  vpc_id               = aws_vpc.slice.id
  traffic_type         = "REJECT"
  log_destination_type = "cloud-watch-logs"
  log_destination      = aws_cloudwatch_log_group.flow.arn
  iam_role_arn         = aws_iam_role.flow.arn

  tags = { Name = "${var.name}-rejected" }
}

resource "aws_cloudwatch_log_group" "flow" {
  name              = "/${var.name}/flow"
  retention_in_days = var.log_retention_days
}

resource "aws_iam_role" "flow" {
  name                 = "${var.name}-flow"
  description          = "VPC flow logs write rejected traffic to one log group"
  permissions_boundary = local.role_boundary_arn

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = local.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "flow" {
  name = "flow"
  role = aws_iam_role.flow.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid    = "WriteFlowLogs"
      Effect = "Allow"
      Action = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
      Resource = [
        aws_cloudwatch_log_group.flow.arn,
        "${aws_cloudwatch_log_group.flow.arn}:log-stream:*",
      ]
    }]
  })
}
