# Networks have no names to scope by: what the identity makes must carry the stack's tag, and it may change or
# delete only what carries it.
locals {
  network_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "Read"
        Effect = "Allow"
        Action = [
          "ec2:DescribeAvailabilityZones",
          "ec2:DescribeFlowLogs",
          "ec2:DescribeNetworkAcls",
          "ec2:DescribeNetworkInterfaces",
          "ec2:DescribeRouteTables",
          "ec2:DescribeSecurityGroupRules",
          "ec2:DescribeSecurityGroups",
          "ec2:DescribeSubnets",
          "ec2:DescribeVpcAttribute",
          "ec2:DescribeVpcs",
        ]
        Resource  = "*"
        Condition = { StringEquals = { "aws:RequestedRegion" = var.region } }
      },
      {
        Sid    = "CreateTagged"
        Effect = "Allow"
        Action = [
          "ec2:CreateFlowLogs",
          "ec2:CreateSecurityGroup",
          "ec2:CreateSubnet",
          "ec2:CreateVpc",
        ]
        Resource = [for kind in ["vpc", "subnet", "security-group", "vpc-flow-log"] : "${local.arn.ec2}:${kind}/*"]
        Condition = {
          StringEquals = { "aws:RequestTag/stack" = var.name }
        }
      },
      {
        Sid      = "CreateInOwnVpc"
        Effect   = "Allow"
        Action   = ["ec2:CreateFlowLogs", "ec2:CreateSecurityGroup", "ec2:CreateSubnet"]
        Resource = "${local.arn.ec2}:vpc/*"
        Condition = {
          StringEquals = { "aws:ResourceTag/stack" = var.name }
        }
      },
      {
        Sid      = "TagAtCreation"
        Effect   = "Allow"
        Action   = "ec2:CreateTags"
        Resource = [for kind in ["vpc", "subnet", "security-group", "security-group-rule", "vpc-flow-log"] : "${local.arn.ec2}:${kind}/*"]
        Condition = {
          StringEquals = {
            "aws:RequestTag/stack" = var.name
            "ec2:CreateAction" = [
              "AuthorizeSecurityGroupEgress",
              "AuthorizeSecurityGroupIngress",
              "CreateFlowLogs",
              "CreateSecurityGroup",
              "CreateSubnet",
              "CreateVpc",
            ]
          }
        }
      },
      {
        Sid    = "ChangeOwn"
        Effect = "Allow"
        Action = [
          "ec2:AuthorizeSecurityGroupEgress",
          "ec2:AuthorizeSecurityGroupIngress",
          "ec2:CreateTags",
          "ec2:DeleteFlowLogs",
          "ec2:DeleteSecurityGroup",
          "ec2:DeleteSubnet",
          "ec2:DeleteTags",
          "ec2:DeleteVpc",
          "ec2:ModifySecurityGroupRules",
          "ec2:ModifySubnetAttribute",
          "ec2:ModifyVpcAttribute",
        ]
        Resource = [for kind in ["vpc", "subnet", "security-group", "security-group-rule", "vpc-flow-log"] : "${local.arn.ec2}:${kind}/*"]
        Condition = {
          StringEquals = { "aws:ResourceTag/stack" = var.name }
        }
      },
      # The default security group is AWS's own, untagged, and its rules must go. Taking rules away is all that this
      # allows on a group that isn't the stack's; tagging it first would let the identity open anybody's.
      {
        Sid      = "EmptyDefaultGroup"
        Effect   = "Allow"
        Action   = ["ec2:RevokeSecurityGroupEgress", "ec2:RevokeSecurityGroupIngress"]
        Resource = ["${local.arn.ec2}:security-group/*", "${local.arn.ec2}:security-group-rule/*"]
      },
    ]
  }
}
