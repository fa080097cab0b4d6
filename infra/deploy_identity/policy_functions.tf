locals {
  functions_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "OwnFunctions"
        Effect = "Allow"
        Action = [
          "lambda:AddPermission",
          "lambda:CreateFunction",
          "lambda:DeleteFunction",
          "lambda:DeleteFunctionConcurrency",
          "lambda:GetFunction",
          "lambda:GetFunctionCodeSigningConfig",
          "lambda:GetFunctionConfiguration",
          "lambda:GetPolicy",
          "lambda:ListTags",
          "lambda:ListVersionsByFunction",
          "lambda:PutFunctionConcurrency",
          "lambda:RemovePermission",
          "lambda:TagResource",
          "lambda:UntagResource",
          "lambda:UpdateFunctionCode",
          "lambda:UpdateFunctionConfiguration",
        ]
        Resource = [for function in ["bootstrap", "decision"] : "${local.arn.lambda}:function:${var.name}-${function}"]
      },
      {
        Sid      = "RunBootstrap"
        Effect   = "Allow"
        Action   = "lambda:InvokeFunction"
        Resource = "${local.arn.lambda}:function:${var.name}-bootstrap"
      },
      {
        Sid      = "Preflight"
        Effect   = "Allow"
        Action   = "lambda:GetAccountSettings"
        Resource = "*"
      },
      {
        Sid    = "CreateCappedRoles"
        Effect = "Allow"
        Action = [
          "iam:CreateRole",
          "iam:DeleteRolePolicy",
          "iam:PutRolePolicy",
        ]
        Resource = local.role_arns
        Condition = {
          StringEquals = { "iam:PermissionsBoundary" = aws_iam_policy.boundary.arn }
        }
      },
      {
        Sid    = "OwnRoles"
        Effect = "Allow"
        Action = [
          "iam:DeleteRole",
          "iam:GetRole",
          "iam:GetRolePolicy",
          "iam:ListAttachedRolePolicies",
          "iam:ListInstanceProfilesForRole",
          "iam:ListRolePolicies",
          "iam:TagRole",
          "iam:UntagRole",
          "iam:UpdateAssumeRolePolicy",
          "iam:UpdateRole",
        ]
        Resource = local.role_arns
      },
      {
        Sid      = "PassRoles"
        Effect   = "Allow"
        Action   = "iam:PassRole"
        Resource = local.role_arns
        Condition = {
          StringEquals = { "iam:PassedToService" = ["lambda.amazonaws.com", "vpc-flow-logs.amazonaws.com"] }
        }
      },
    ]
  }
}
