output "url" {
  description = "Where the API answers: `make contract URL=…` takes it."
  value       = trimsuffix(aws_apigatewayv2_stage.default.invoke_url, "/")
}

output "api_id" {
  description = "Id of the HTTP API, for its metrics and logs."
  value       = aws_apigatewayv2_api.http.id
}

output "bootstrap_function" {
  description = "Name of the bootstrap function: `make prove` invokes it."
  value       = aws_lambda_function.bootstrap.function_name
}

output "database_identifier" {
  description = "Identifier of the database, for its snapshots and metrics."
  value       = aws_db_instance.record.identifier
}

output "final_snapshot" {
  description = "Name that the database's final snapshot will have, if one is kept."
  value       = var.final_snapshot ? aws_db_instance.record.final_snapshot_identifier : null
}

output "proofs" {
  description = "What the last bootstrap proved: each thing that the service's database role was refused."
  value       = [for proof in jsondecode(aws_lambda_invocation.proof.result).proofs : proof.name]
}

output "alarm_topic" {
  description = "The one SNS topic that every alarm notifies."
  value       = aws_sns_topic.alarms.arn
}

output "name" {
  description = "The stack's name: `make destroy` asks for it."
  value       = var.name
}

output "region" {
  description = "The region that the slice runs in."
  value       = var.region
}
