variable "region" {
  description = "Home region of the trail and its bucket; EBS encryption and the analyzer are set for this region."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region must be an AWS region's name, such as eu-west-1."
  }
}

variable "trail_retention_days" {
  description = "Days that CloudTrail's files are kept."
  type        = number
  default     = 400

  validation {
    condition     = var.trail_retention_days >= 90
    error_message = "trail_retention_days must be at least 90: less than CloudTrail's own event history keeps anyway."
  }
}
