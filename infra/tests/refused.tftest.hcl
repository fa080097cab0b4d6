# Each refused input, named; every one of a run must be refused, and by its own variable. A run takes seconds, so as many
# share one as there are variables.

mock_provider "aws" {
  mock_data "aws_availability_zones" {
    defaults = { names = ["eu-west-1a", "eu-west-1b"] }
  }
}

# The real provider, for the ephemeral password: Terraform can't mock that. tests/infra stands in for the one AWS call
# that it makes (AWS_ENDPOINT_URL_SECRETS_MANAGER); without it these tests fail to connect.
provider "aws" {
  alias                       = "untagged"
  region                      = "eu-west-1"
  access_key                  = "mock"
  secret_key                  = "mock"
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}

override_resource {
  target = aws_default_security_group.closed
}

variables {
  region            = "eu-west-1"
  notify_email      = "operations@example.com"
  decision_package  = "versions.tf"
  bootstrap_package = "versions.tf"
}

run "refused_inputs" {
  command = plan
  variables {
    region                        = "europe"                            # region without a number
    name                          = "a-name-that-is-far-too-long"       # name too long for aws
    notify_email                  = "nobody"                            # no address to notify
    token_digests                 = { "a-token-in-the-clear" = "acme" } # token in the clear
    vpc_cidr                      = "10.0.0.0/28"                       # network too small
    database_instance_class       = "db.t3.micro"                       # database class that is not graviton
    database_major_version        = "18.1"                              # pinned minor version
    database_port                 = 80                                  # port that rds refuses
    database_storage_gb           = { initial = 10, cap = 100 }         # storage below the least
    database_restore_from         = "a snapshot's name?"                # snapshot that can not be one
    database_backup_days          = 0                                   # no backups
    decision_memory_mb            = 1024                                # memory beyond what was measured
    decision_timeout_seconds      = 30                                  # timeout at the gateways
    decision_reserved_concurrency = 0                                   # concurrency of nothing
    throttle                      = { rate = 0, burst = 0 }             # throttle that refuses everybody
    log_retention_days            = 42                                  # retention that cloudwatch does not offer
    proof_schedule                = "daily"                             # schedule that is none
    rejected_tokens_per_5_minutes = 0                                   # alarm that always rings
    monthly_budget_usd            = 0                                   # budget of nothing
    decision_package              = "no-such.zip"                       # decision package that was not built
    bootstrap_package             = "no-such.zip"                       # bootstrap package that was not built
    database_ca_path              = "rds.pem"                           # relative ca path
    python                        = ""                                  # no python
  }
  expect_failures = [
    var.region,
    var.name,
    var.notify_email,
    var.token_digests,
    var.vpc_cidr,
    var.database_instance_class,
    var.database_major_version,
    var.database_port,
    var.database_storage_gb,
    var.database_restore_from,
    var.database_backup_days,
    var.decision_memory_mb,
    var.decision_timeout_seconds,
    var.decision_reserved_concurrency,
    var.throttle,
    var.log_retention_days,
    var.proof_schedule,
    var.rejected_tokens_per_5_minutes,
    var.monthly_budget_usd,
    var.decision_package,
    var.bootstrap_package,
    var.database_ca_path,
    var.python,
  ]
}

run "more_refused_inputs" {
  command = plan
  variables {
    region              = "EU-WEST-1"                # region in capitals
    name                = "PayPilot"                 # name in capitals
    token_digests       = { "sha256:00" = "acme" }   # digest cut short
    vpc_cidr            = "10.0.0.0"                 # network that is none
    database_storage_gb = { initial = 20, cap = 20 } # storage that can not grow
  }
  expect_failures = [
    var.region,
    var.name,
    var.token_digests,
    var.vpc_cidr,
    var.database_storage_gb,
  ]
}

run "yet_more_refused_inputs" {
  command = plan
  variables {
    name          = "paypilot-"                                                                            # name ending in a hyphen
    token_digests = { "sha256:0000000000000000000000000000000000000000000000000000000000000000" = "ACME" } # client id in capitals
  }
  expect_failures = [
    var.name,
    var.token_digests,
  ]
}
