# What the identity is refused whatever else is ever attached to it: the ways from a deployment to the account.
locals {
  limits_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "NoNewIdentities"
        Effect = "Deny"
        Action = [
          "iam:AddUserToGroup",
          "iam:AttachGroupPolicy",
          "iam:AttachRolePolicy",
          "iam:AttachUserPolicy",
          "iam:CreateAccessKey",
          "iam:CreateGroup",
          "iam:CreateLoginProfile",
          "iam:CreatePolicy",
          "iam:CreatePolicyVersion",
          "iam:CreateUser",
          "iam:DeletePolicy",
          "iam:DeletePolicyVersion",
          "iam:DeleteRolePermissionsBoundary",
          "iam:PutGroupPolicy",
          "iam:PutRolePermissionsBoundary",
          "iam:PutUserPolicy",
          "iam:SetDefaultPolicyVersion",
          "iam:UpdateAccessKey",
          "iam:UpdateLoginProfile",
        ]
        Resource = "*"
      },
      {
        Sid       = "NotItself"
        Effect    = "Deny"
        NotAction = ["iam:GetRole", "iam:GetRolePolicy", "iam:ListAttachedRolePolicies", "iam:ListRolePolicies"]
        Resource  = "${local.iam}:role/${var.name}-deploy"
      },
      {
        Sid    = "TrailStaysOn"
        Effect = "Deny"
        Action = [
          "cloudtrail:DeleteTrail",
          "cloudtrail:PutEventSelectors",
          "cloudtrail:StopLogging",
          "cloudtrail:UpdateTrail",
        ]
        Resource = "*"
      },
    ]
  }
}
