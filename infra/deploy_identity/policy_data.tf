locals {
  data_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "OwnDatabase"
        Effect = "Allow"
        Action = [
          "rds:AddTagsToResource",
          "rds:CreateDBInstance",
          "rds:CreateDBParameterGroup",
          "rds:CreateDBSnapshot",
          "rds:CreateDBSubnetGroup",
          "rds:DeleteDBInstance",
          "rds:DeleteDBParameterGroup",
          "rds:DeleteDBSubnetGroup",
          "rds:DescribeDBParameterGroups",
          "rds:DescribeDBParameters",
          "rds:DescribeDBSubnetGroups",
          "rds:ListTagsForResource",
          "rds:ModifyDBInstance",
          "rds:ModifyDBParameterGroup",
          "rds:ModifyDBSubnetGroup",
          "rds:RebootDBInstance",
          "rds:RemoveTagsFromResource",
          "rds:ResetDBParameterGroup",
          "rds:RestoreDBInstanceFromDBSnapshot",
        ]
        Resource = [
          "${local.arn.rds}:db:${var.name}",
          "${local.arn.rds}:pg:${var.name}-*",
          "${local.arn.rds}:snapshot:${var.name}-final-*",
          "${local.arn.rds}:snapshot:rds:${var.name}-*",
          "${local.arn.rds}:subgrp:${var.name}",
        ]
      },
      {
        Sid      = "ReadDatabases"
        Effect   = "Allow"
        Action   = ["rds:DescribeDBInstances", "rds:DescribeDBSnapshots"]
        Resource = ["${local.arn.rds}:db:*", "${local.arn.rds}:snapshot:*"]
      },
      {
        Sid      = "MasterPassword"
        Effect   = "Allow"
        Action   = "secretsmanager:GetRandomPassword"
        Resource = "*"
      },
      {
        Sid      = "FirstDatabaseOfAccount"
        Effect   = "Allow"
        Action   = "iam:CreateServiceLinkedRole"
        Resource = "${local.iam}:role/aws-service-role/rds.amazonaws.com/AWSServiceRoleForRDS"
        Condition = {
          StringEquals = { "iam:AWSServiceName" = "rds.amazonaws.com" }
        }
      },
    ]
  }
}
