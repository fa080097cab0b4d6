# The deploy identity, whole: each policy beside its copy in this folder, so that one more action fails here first.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_iam_policy" {
    defaults = { arn = "arn:aws:iam::111122223333:policy/mock" }
  }
}

variables {
  region = "eu-west-1"
}

run "each_policy_is_what_was_agreed_whole" {
  assert {
    condition     = toset(keys(aws_iam_policy.deploy)) == toset(["data", "edge", "functions", "limits", "network"])
    error_message = "A policy was added or lost."
  }
  assert {
    condition = alltrue([
      for name, policy in aws_iam_policy.deploy : jsondecode(policy.policy) == jsondecode(file("tests/${name}.json"))
    ])
    error_message = "A policy differs from its copy: if that is meant, `scripts/deploy/policy_copies.py` writes the copies anew, to be read in the diff."
  }
  assert {
    condition     = jsondecode(aws_iam_policy.boundary.policy) == jsondecode(file("tests/boundary.json"))
    error_message = "The boundary differs from its copy: every role of the stack could do more."
  }
}

run "each_policy_fits_the_size_that_iam_takes" {
  assert {
    condition     = alltrue([for policy in aws_iam_policy.deploy : length(policy.policy) <= 6144])
    error_message = "A managed policy has more than 6,144 characters: IAM refuses it."
  }
}

run "no_statement_allows_every_action_of_a_service" {
  assert {
    condition     = alltrue([for action in output.actions : !strcontains(action, "*")])
    error_message = "A wildcard in an action grants what nobody has read."
  }
}

run "the_identity_has_no_key_and_its_trust_is_this_account" {
  assert {
    condition     = jsondecode(aws_iam_role.deploy.assume_role_policy).Statement[0].Principal.AWS == ["arn:aws:iam::111122223333:root"]
    error_message = "Somebody outside the account may assume the deploy role."
  }
}

run "its_trust_can_be_narrowed_to_the_operators" {
  variables {
    trusted_principal_arns = ["arn:aws:iam::111122223333:role/operators"]
  }
  assert {
    condition     = jsondecode(aws_iam_role.deploy.assume_role_policy).Statement[0].Principal.AWS == ["arn:aws:iam::111122223333:role/operators"]
    error_message = "The operators' roles are not all that may assume it."
  }
}

run "a_remote_state_gives_it_one_object_and_its_lock" {
  variables {
    state_bucket = "acme-terraform-state"
  }
  assert {
    condition = [for statement in jsondecode(aws_iam_role_policy.state[0].policy).Statement : statement.Resource] == [
      "arn:aws:s3:::acme-terraform-state",
      "arn:aws:s3:::acme-terraform-state/paypilot.tfstate",
      "arn:aws:s3:::acme-terraform-state/paypilot.tfstate.tflock",
    ]
    error_message = "The identity reaches more of the state's bucket than its own state and lock."
  }
}

run "without_a_remote_state_it_reaches_no_bucket" {
  assert {
    condition     = length(aws_iam_role_policy.state) == 0
    error_message = "The identity may write to a bucket that nobody named."
  }
}

run "the_outputs_name_the_role_and_the_boundary" {
  assert {
    condition     = output.role_arn == aws_iam_role.deploy.arn && output.boundary_arn == aws_iam_policy.boundary.arn
    error_message = "An output names something else."
  }
}

run "refused_inputs" {
  command = plan
  variables {
    region                 = "europe"
    name                   = "PayPilot"
    trusted_principal_arns = ["*"]
    state_bucket           = "arn:aws:s3:::bucket"
  }
  expect_failures = [var.region, var.name, var.trusted_principal_arns, var.state_bucket]
}
