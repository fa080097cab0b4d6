output "role_arn" {
  description = "The role that Terraform assumes to deploy the slice."
  value       = aws_iam_role.deploy.arn
}

output "boundary_arn" {
  description = "The permissions boundary that every role of the stack must carry."
  value       = aws_iam_policy.boundary.arn
}

output "actions" {
  description = "Every IAM action that the deploy identity is allowed, sorted."
  value = sort(distinct(flatten([
    for policy in values(local.deploy_policies) : [for statement in policy.Statement : statement.Action if statement.Effect == "Allow"]
  ])))
}
