# The guardrails, with a mock provider.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_cloudtrail" {
    defaults = { arn = "arn:aws:cloudtrail:eu-west-1:111122223333:trail/account" }
  }
}

# Nothing is applied here: prevent_destroy would keep a test from tidying up.
variables {
  region = "eu-west-1"
}

run "every_region_is_recorded_in_files_that_tell_when_they_were_changed" {
  command = plan
  assert {
    condition     = aws_cloudtrail.account.is_multi_region_trail && aws_cloudtrail.account.include_global_service_events && aws_cloudtrail.account.enable_log_file_validation && aws_cloudtrail.account.enable_logging
    error_message = "The trail leaves out a region or IAM, can be changed unseen, or is off."
  }
  assert {
    condition     = aws_s3_bucket_versioning.trail.versioning_configuration[0].status == "Enabled" && aws_s3_bucket_lifecycle_configuration.trail.rule[0].expiration[0].days == 400
    error_message = "The trail's files can be overwritten, or don't expire when they should."
  }
}

run "the_trails_bucket_takes_from_the_trail_only_and_over_tls" {
  command = plan
  assert {
    condition = jsondecode(aws_s3_bucket_policy.trail.policy) == jsondecode(jsonencode({
      Version = "2012-10-17"
      Statement = [
        {
          Sid       = "TrailChecksBucket"
          Effect    = "Allow"
          Principal = { Service = "cloudtrail.amazonaws.com" }
          Action    = "s3:GetBucketAcl"
          Resource  = "arn:aws:s3:::cloudtrail-111122223333-eu-west-1"
          Condition = { StringEquals = { "aws:SourceArn" = "arn:aws:cloudtrail:eu-west-1:111122223333:trail/account" } }
        },
        {
          Sid       = "TrailWrites"
          Effect    = "Allow"
          Principal = { Service = "cloudtrail.amazonaws.com" }
          Action    = "s3:PutObject"
          Resource  = "arn:aws:s3:::cloudtrail-111122223333-eu-west-1/AWSLogs/111122223333/*"
          Condition = { StringEquals = {
            "aws:SourceArn" = "arn:aws:cloudtrail:eu-west-1:111122223333:trail/account"
            "s3:x-amz-acl"  = "bucket-owner-full-control"
          } }
        },
        {
          Sid       = "TlsOnly"
          Effect    = "Deny"
          Principal = "*"
          Action    = "s3:*"
          Resource  = ["arn:aws:s3:::cloudtrail-111122223333-eu-west-1", "arn:aws:s3:::cloudtrail-111122223333-eu-west-1/*"]
          Condition = { Bool = { "aws:SecureTransport" = "false" } }
        },
      ]
    }))
    error_message = "The bucket's policy is not what was agreed, whole."
  }
}

run "nothing_in_the_account_is_public" {
  command = plan
  assert {
    condition = alltrue([
      for block in [aws_s3_account_public_access_block.account, aws_s3_bucket_public_access_block.trail] :
      block.block_public_acls && block.block_public_policy && block.ignore_public_acls && block.restrict_public_buckets
    ])
    error_message = "A bucket could be public."
  }
}

run "disks_are_encrypted_access_is_analysed_and_passwords_are_long" {
  command = plan
  assert {
    condition     = aws_ebs_encryption_by_default.account.enabled && aws_accessanalyzer_analyzer.account.type == "ACCOUNT"
    error_message = "A new disk would be in the clear, or nobody looks for access from outside."
  }
  assert {
    condition     = aws_iam_account_password_policy.account.minimum_password_length == 16 && aws_iam_account_password_policy.account.password_reuse_prevention == 24
    error_message = "Short or old passwords pass."
  }
}

run "refused_inputs" {
  command = plan
  variables {
    region               = "europe"
    trail_retention_days = 30
  }
  expect_failures = [var.region, var.trail_retention_days]
}
