variable "region" {
  description = "AWS region that the slice is deployed to; the identity may act in no other."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region must be an AWS region's name, such as eu-west-1."
  }
}

variable "name" {
  description = "Name of the stack that the identity may deploy; the same as the slice's `name`."
  type        = string
  default     = "paypilot"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,18}[a-z0-9]$", var.name))
    error_message = "name must be 3-20 lower-case letters, digits and hyphens, starting with a letter: AWS cuts longer role and database names."
  }
}

variable "trusted_principal_arns" {
  description = "Who may assume the deploy role. Empty means whoever the account's own IAM policies let; name the operators' roles to narrow it."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.trusted_principal_arns : can(regex("^arn:[a-z-]+:(iam|sts)::[0-9]{12}:", arn))])
    error_message = "Each of trusted_principal_arns must be an IAM or STS ARN: never a wildcard."
  }
}

variable "state_bucket" {
  description = "Name of the S3 bucket that holds the slice's remote state, or null where the state is a local file."
  type        = string
  default     = null

  validation {
    condition     = var.state_bucket == null ? true : can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.state_bucket))
    error_message = "state_bucket must be a bucket's name, not an ARN or a URL."
  }
}
