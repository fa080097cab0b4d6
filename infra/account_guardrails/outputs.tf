output "trail_arn" {
  description = "The account's trail."
  value       = aws_cloudtrail.account.arn
}

output "trail_bucket" {
  description = "The bucket that the trail writes to."
  value       = aws_s3_bucket.trail.id
}

output "analyzer_arn" {
  description = "The IAM Access Analyzer."
  value       = aws_accessanalyzer_analyzer.account.arn
}
