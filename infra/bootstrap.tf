# The order of a bootstrap: a new master password, and the schema by an invocation that leaves no trace -> the proof, by
# one that may speak.

# Terraform hides all output of a provisioner that was handed a secret. So the first one only leaves the function's
# answer in a file, and the second, which holds no secret, shows it and fails the apply; then both run again next time.
resource "terraform_data" "schema" {
  triggers_replace = [local.bootstrap_hash, aws_db_instance.record.resource_id]

  provisioner "local-exec" {
    command = "\"$PAYPILOT_PYTHON\" ../scripts/deploy/invoke_bootstrap.py invoke"

    environment = {
      PAYPILOT_PYTHON          = var.python
      PAYPILOT_REGION          = var.region
      PAYPILOT_DATABASE        = aws_db_instance.record.identifier
      PAYPILOT_FUNCTION        = aws_lambda_function.bootstrap.function_name
      PAYPILOT_MASTER_PASSWORD = ephemeral.aws_secretsmanager_random_password.master.random_password
    }
  }

  provisioner "local-exec" {
    command     = "\"$PAYPILOT_PYTHON\" ../scripts/deploy/invoke_bootstrap.py report"
    environment = { PAYPILOT_PYTHON = var.python }
  }

  # Everything that the function needs to be of use.
  depends_on = [
    aws_vpc_security_group_egress_rule.function_to_database,
    aws_vpc_security_group_ingress_rule.database_from_function,
  ]
}

# The same proof once more, as `make prove` and the schedule run it: with no secret, so the plan and the state may hold
# what it found.
resource "aws_lambda_invocation" "proof" {
  function_name = aws_lambda_function.bootstrap.function_name
  input         = jsonencode({ action = "prove" })

  triggers = {
    schema   = terraform_data.schema.id
    database = local.bootstrap_hash
  }

  lifecycle {
    postcondition {
      condition = try(jsondecode(self.result).proved, false) == true
      error_message = format("The database does not refuse all that it must: %s", try(join("; ", [
        for proof in jsondecode(self.result).proofs : "${proof.name}: expected ${proof.expected}, got ${proof.got}" if !proof.passed
      ]), self.result))
    }
  }
}

resource "aws_cloudwatch_event_rule" "proof" {
  name                = "${var.name}-proof"
  description         = "Proves every day what the service's database role can't do"
  schedule_expression = var.proof_schedule
}

resource "aws_cloudwatch_event_target" "proof" {
  rule  = aws_cloudwatch_event_rule.proof.name
  arn   = aws_lambda_function.bootstrap.arn
  input = jsonencode({ action = "prove" })
}

resource "aws_lambda_permission" "proof" {
  statement_id  = "daily-proof"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.bootstrap.function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.proof.arn
}
