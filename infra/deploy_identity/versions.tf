terraform {
  required_version = ">= 1.11.0"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "5.100.0"
    }
  }
}

provider "aws" {
  region = var.region

  default_tags {
    tags = {
      stack      = "${var.name}-deploy"
      managed_by = "terraform"
    }
  }
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  account_id = data.aws_caller_identity.current.account_id
  partition  = data.aws_partition.current.partition

  # `arn` takes a service and what follows the account: "${local.arn.lambda}:function:x".
  arn = { for service in ["ec2", "rds", "lambda", "logs", "events", "sns", "cloudwatch", "rds-db"] :
    service => "arn:${local.partition}:${service}:${var.region}:${local.account_id}"
  }
  iam = "arn:${local.partition}:iam::${local.account_id}"

  # The only roles that the deploy identity may make: one screen each in the slice's root.
  role_arns = [for role in ["bootstrap", "decision", "flow"] : "${local.iam}:role/${var.name}-${role}"]
}
