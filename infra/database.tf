locals {
  database = {
    name    = "paypilot"
    service = "paypilot_service"
    master  = "paypilot_master"
  }

  # Bootstrap runs again, and the master password is a new one, when the schema or the code that applies it changes.
  bootstrap_hash = filesha256(var.bootstrap_package)
}

# Nobody holds the master password: made in the apply, set by a write-only argument or by the bootstrap that needs it,
# handed over in the payload of one invocation, and in no state, plan or log. The next bootstrap sets another.
ephemeral "aws_secretsmanager_random_password" "master" {
  provider = aws.untagged # which a test can keep real: Terraform's mock providers know no ephemeral resources

  password_length            = 40
  exclude_punctuation        = true
  require_each_included_type = true
}

resource "aws_db_subnet_group" "private" {
  name       = var.name
  subnet_ids = aws_subnet.private[*].id
}

resource "aws_db_parameter_group" "tls_required" {
  name_prefix = "${var.name}-"
  family      = "postgres${var.database_major_version}"

  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }

  # A role may always change its own password, unless RDS is told that only its own administrators may.
  parameter {
    name         = "rds.restrict_password_commands"
    value        = "1"
    apply_method = "pending-reboot" # static: in force from the first start
  }

  # A statement that takes a second is worth a line in the log; its text holds no parameter.
  parameter {
    name  = "log_min_duration_statement"
    value = "1000"
  }

  parameter {
    name  = "log_parameter_max_length"
    value = "0"
  }

  lifecycle { create_before_destroy = true }
}

# Kept in the state so that the name is unique for each database, and the same in each plan of one.
resource "terraform_data" "final_snapshot" {
  triggers_replace = [var.database_restore_from]

  input = "${var.name}-final-${formatdate("YYYYMMDDhhmmss", timestamp())}"

  lifecycle { ignore_changes = [input] }
}

resource "aws_db_instance" "record" {
  identifier     = var.name
  engine         = "postgres"
  engine_version = var.database_major_version
  instance_class = var.database_instance_class
  db_name        = local.database.name
  port           = var.database_port
  multi_az       = var.database_multi_az

  snapshot_identifier = var.database_restore_from

  username                            = local.database.master
  password_wo                         = ephemeral.aws_secretsmanager_random_password.master.random_password
  password_wo_version                 = 1 # the first only: each bootstrap sets its own, so that a failed one can be repeated
  iam_database_authentication_enabled = true

  storage_type          = "gp3"
  allocated_storage     = var.database_storage_gb.initial
  max_allocated_storage = var.database_storage_gb.cap
  storage_encrypted     = true

  db_subnet_group_name   = aws_db_subnet_group.private.name
  vpc_security_group_ids = [aws_security_group.database.id]
  publicly_accessible    = false
  parameter_group_name   = aws_db_parameter_group.tls_required.name

  auto_minor_version_upgrade = true
  backup_retention_period    = var.database_backup_days
  copy_tags_to_snapshot      = true
  delete_automated_backups   = true
  deletion_protection        = var.deletion_protection
  skip_final_snapshot        = !var.final_snapshot
  final_snapshot_identifier  = terraform_data.final_snapshot.output
  apply_immediately          = true

  performance_insights_enabled          = var.database_performance_insights
  performance_insights_retention_period = var.database_performance_insights ? 7 : null
  enabled_cloudwatch_logs_exports       = ["postgresql"]

  depends_on = [aws_cloudwatch_log_group.database]
}

# Made before the database, so that its logs have a limit from the first line and go with the stack.
resource "aws_cloudwatch_log_group" "database" {
  name              = "/aws/rds/instance/${var.name}/postgresql"
  retention_in_days = var.log_retention_days
}
