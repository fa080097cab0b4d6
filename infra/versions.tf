# The provider's version is exact: the write-only arguments, the ephemeral resources and the e2e run were tried
# with this one. There is no lock file: made from a mirror it would hold the checksum of one platform only.
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
    tags = local.tags
  }
}

# For the one resource that must not be tagged, the VPC's own default security group. To tag what AWS made untagged,
# the deploy identity would need the right to tag, and so to take over, any security group.
provider "aws" {
  alias  = "untagged"
  region = var.region
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  account_id = data.aws_caller_identity.current.account_id
  partition  = data.aws_partition.current.partition

  tags = {
    stack      = var.name
    managed_by = "terraform"
  }

  # The names that the deploy identity's policies are scoped to.
  role_boundary_arn = "arn:${local.partition}:iam::${local.account_id}:policy/${var.name}-boundary"
}
