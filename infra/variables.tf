variable "region" {
  description = "AWS region of every resource, such as eu-west-1."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region must be an AWS region's name, such as eu-west-1."
  }
}

variable "name" {
  description = "Name of the stack: the prefix of every resource's name, and the value of the tag `stack`. The deploy identity is made for one name."
  type        = string
  default     = "paypilot"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,18}[a-z0-9]$", var.name))
    error_message = "name must be 3-20 lower-case letters, digits and hyphens, starting with a letter: AWS cuts longer role and database names."
  }
}

variable "notify_email" {
  description = "The one address that alarms and the budget notify. SNS sends it a link to confirm."
  type        = string

  validation {
    condition     = can(regex("^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", var.notify_email))
    error_message = "notify_email must be an e-mail address: alarms are sent there."
  }
}

variable "token_digests" {
  description = "Who may call: the SHA-256 digest of each API token (`sha256:` and 64 hex digits) and its client id. Two tokens may map to one client while one is rotated. Never a token itself."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for digest in keys(var.token_digests) : can(regex("^sha256:[0-9a-f]{64}$", digest))])
    error_message = "Each key of token_digests must be sha256:<64 lower-case hex digits>. A token in the clear has no business here: scripts/issue_token.py adds its digest."
  }

  validation {
    condition     = alltrue([for client in values(var.token_digests) : can(regex("^[a-z0-9][a-z0-9_-]{0,62}$", client))])
    error_message = "Each client id must match [a-z0-9][a-z0-9_-]{0,62}."
  }

  validation {
    condition     = length(jsonencode(var.token_digests)) <= 3072
    error_message = "token_digests must fit a function's configuration: at most 3 KiB of JSON, about 30 tokens."
  }
}

variable "vpc_cidr" {
  description = "Address range of the VPC; its two subnets take a quarter each. Must not overlap a network that this VPC will be peered with."
  type        = string
  default     = "10.20.0.0/24"

  validation {
    condition     = can(cidrsubnet(var.vpc_cidr, 2, 1)) && can(regex("/(1[6-9]|2[0-4])$", var.vpc_cidr))
    error_message = "vpc_cidr must be an IPv4 range from /16 to /24."
  }
}

variable "database_instance_class" {
  description = "RDS instance class. A burstable Graviton class is enough for tens of decisions a second."
  type        = string
  default     = "db.t4g.micro"

  validation {
    condition     = can(regex("^db\\.[a-z0-9]+g[a-z]*\\.[a-z0-9]+$", var.database_instance_class))
    error_message = "database_instance_class must be a Graviton class, such as db.t4g.micro."
  }
}

variable "database_major_version" {
  description = "Postgres major version; minor ones are upgraded by RDS. The local database has the same major version."
  type        = string
  default     = "18"

  validation {
    condition     = can(regex("^1[678]$", var.database_major_version))
    error_message = "database_major_version must be 16, 17 or 18, a major version only: a pinned minor would fight RDS's own upgrades."
  }
}

variable "database_port" {
  description = "Port that the database listens on."
  type        = number
  default     = 5432

  validation {
    condition     = var.database_port >= 1150 && var.database_port <= 65535 && floor(var.database_port) == var.database_port
    error_message = "database_port must be an integer from 1150 to 65535, as RDS asks."
  }
}

variable "database_storage_gb" {
  description = "Storage at the start, and the cap that autoscaling may grow it to."
  type        = object({ initial = number, cap = number })
  default     = { initial = 20, cap = 100 }

  validation {
    condition     = var.database_storage_gb.initial >= 20 && var.database_storage_gb.cap > var.database_storage_gb.initial * 1.1
    error_message = "database_storage_gb.initial must be at least 20 (gp3's least), and cap more than 10 % above it, or RDS refuses to autoscale."
  }
}

variable "database_backup_days" {
  description = "Days that automatic backups (point-in-time recovery) are kept."
  type        = number
  default     = 7

  validation {
    condition     = var.database_backup_days >= 1 && var.database_backup_days <= 35
    error_message = "database_backup_days must be 1-35: the record of decisions is never without a backup."
  }
}

variable "deletion_protection" {
  description = "Refuse to delete the database. Off for a trial, and for the first of the two steps of `make destroy`."
  type        = bool
  default     = true
}

variable "final_snapshot" {
  description = "Keep a snapshot of the database when it is deleted. Off for a trial: then a destroy leaves nothing behind."
  type        = bool
  default     = true
}

variable "database_multi_az" {
  description = "Keep a standby in the other zone, which takes over in a minute or two, and doubles what the database costs."
  type        = bool
  default     = false
}

variable "database_restore_from" {
  description = "Name of the snapshot that the database is made from, or null for an empty one. Changing it makes a new database: docs/operations.md tells how."
  type        = string
  default     = null

  validation {
    condition     = var.database_restore_from == null ? true : can(regex("^(rds:)?[A-Za-z][A-Za-z0-9-]*$", var.database_restore_from))
    error_message = "database_restore_from must be a snapshot's name, or null."
  }
}

variable "database_performance_insights" {
  description = "Performance Insights with its free seven days."
  type        = bool
  default     = true
}

variable "decision_memory_mb" {
  description = "Memory of the decision function; its share of a CPU grows with it."
  type        = number
  default     = 512

  validation {
    condition     = var.decision_memory_mb >= 256 && var.decision_memory_mb <= 512
    error_message = "decision_memory_mb must be 256-512: less makes cold starts slow, more buys nothing measured."
  }
}

variable "decision_timeout_seconds" {
  description = "The decision function's time limit; the handler takes its database deadline from it."
  type        = number
  default     = 10

  validation {
    condition     = var.decision_timeout_seconds >= 5 && var.decision_timeout_seconds <= 25
    error_message = "decision_timeout_seconds must be 5-25: well under API Gateway's 30, long enough for a cold start and one reconnect."
  }
}

variable "decision_reserved_concurrency" {
  description = "Most decisions at once, so that their connections can't exhaust the database. Null reserves nothing: a new account's limit is 10, of which none can be reserved."
  type        = number
  default     = null

  validation {
    condition     = var.decision_reserved_concurrency == null ? true : var.decision_reserved_concurrency >= 1 && var.decision_reserved_concurrency <= 500
    error_message = "decision_reserved_concurrency must be 1-500, or null to reserve nothing."
  }
}

variable "throttle" {
  description = "Requests a second, and burst, that the API admits before it answers 429."
  type        = object({ rate = number, burst = number })
  default     = { rate = 50, burst = 100 }

  validation {
    condition     = var.throttle.rate >= 1 && var.throttle.burst >= 1
    error_message = "throttle.rate and throttle.burst must be at least 1: 0 refuses every request."
  }
}

variable "log_retention_days" {
  description = "Days that the functions', the database's and the network's logs are kept. Access logs are kept seven."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731], var.log_retention_days)
    error_message = "log_retention_days must be a number of days that CloudWatch Logs offers: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545 or 731."
  }
}

variable "proof_schedule" {
  description = "When the proof of the service's privileges runs by itself. Twice a day, so that any window of 24 hours holds a run, and the alarm on a missing one is never a matter of seconds."
  type        = string
  default     = "rate(12 hours)"

  validation {
    condition     = can(regex("^(rate|cron)\\(.+\\)$", var.proof_schedule))
    error_message = "proof_schedule must be an EventBridge expression, rate(…) or cron(…)."
  }
}

variable "rejected_tokens_per_5_minutes" {
  description = "Rejected tokens in five minutes that raise the alarm."
  type        = number
  default     = 20

  validation {
    condition     = var.rejected_tokens_per_5_minutes >= 1
    error_message = "rejected_tokens_per_5_minutes must be at least 1."
  }
}

variable "monthly_budget_usd" {
  description = "Monthly budget of the whole account, in US dollars; 80 % spent and 100 % forecast notify."
  type        = number
  default     = 30

  validation {
    condition     = var.monthly_budget_usd >= 1
    error_message = "monthly_budget_usd must be at least 1."
  }
}

variable "decision_package" {
  description = "The decision function's zip, as `make package` builds it."
  type        = string
  default     = "../dist/decision.zip"

  validation {
    condition     = fileexists(var.decision_package)
    error_message = "decision_package isn't there: run `make package`."
  }
}

variable "bootstrap_package" {
  description = "The bootstrap function's zip, as `make package` builds it."
  type        = string
  default     = "../dist/bootstrap.zip"

  validation {
    condition     = fileexists(var.bootstrap_package)
    error_message = "bootstrap_package isn't there: run `make package`."
  }
}

variable "database_ca_path" {
  description = "Where the functions find the certificate authorities that the database's certificate must chain to: the RDS roots in the package. Another database (a test's) has others."
  type        = string
  default     = "/var/task/paypilot/rds-global-bundle.pem"

  validation {
    condition     = startswith(var.database_ca_path, "/")
    error_message = "database_ca_path must be an absolute path of the function's file system."
  }
}

variable "python" {
  description = "The Python with boto3 that invokes bootstrap from the operator's machine, relative to this folder or absolute: `make setup` makes the default."
  type        = string
  default     = "../.venv/bin/python"

  validation {
    condition     = length(var.python) > 0
    error_message = "python must name an interpreter."
  }
}
