# The identity that Terraform deploys the slice as: a role, so that it has no key to lose.
resource "aws_iam_role" "deploy" {
  name                 = "${var.name}-deploy"
  description          = "Terraform deploys the stack ${var.name} as this role"
  max_session_duration = 2 * 60 * 60 # a destroy may wait an hour for Lambda's network interfaces

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = length(var.trusted_principal_arns) > 0 ? var.trusted_principal_arns : ["${local.iam}:root"] }
      Action    = "sts:AssumeRole"
    }]
  })
}

locals {
  deploy_policies = {
    network   = local.network_policy
    data      = local.data_policy
    functions = local.functions_policy
    edge      = local.edge_policy
    limits    = local.limits_policy
  }
}

resource "aws_iam_policy" "deploy" {
  for_each = local.deploy_policies

  name        = "${var.name}-deploy-${each.key}"
  description = "What the deploy identity of ${var.name} may do: ${each.key}"
  policy      = jsonencode(each.value)
}

resource "aws_iam_role_policy_attachment" "deploy" {
  for_each = local.deploy_policies

  role       = aws_iam_role.deploy.name
  policy_arn = aws_iam_policy.deploy[each.key].arn
}

# The state's object and, for S3's own locking, its lock beside it.
resource "aws_iam_role_policy" "state" {
  count = var.state_bucket == null ? 0 : 1

  name = "state"
  role = aws_iam_role.deploy.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "FindState"
        Effect   = "Allow"
        Action   = "s3:ListBucket"
        Resource = "arn:${local.partition}:s3:::${var.state_bucket == null ? "" : var.state_bucket}"
      },
      {
        Sid      = "HoldState"
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:PutObject"]
        Resource = "arn:${local.partition}:s3:::${var.state_bucket == null ? "" : var.state_bucket}/${var.name}.tfstate"
      },
      {
        Sid      = "HoldLock"
        Effect   = "Allow"
        Action   = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
        Resource = "arn:${local.partition}:s3:::${var.state_bucket == null ? "" : var.state_bucket}/${var.name}.tfstate.tflock"
      },
    ]
  })
}
