# Every command of the project. `make help` explains them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(INSTALLED): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "PayPilot needs Python 3.11 or later, and this is " + sys.version.split()[0])'
	@echo "Installing into $(VENV), once: this takes one to three minutes, and pip says nothing meanwhile."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: setup
setup: $(INSTALLED) ## Create .venv from the locks

.PHONY: run
run: $(INSTALLED) ## Serve the slice on this machine (PORT, PAYPILOT_DATA_DIR, DECISION_API_TOKEN)
	@exec $(BIN)/python scripts/serve.py

.PHONY: demo
demo: $(INSTALLED) ## Walk every gate of a slice of its own and show the rows that each request left
	@$(BIN)/python scripts/demo.py

TOKENS ?= infra/tokens.auto.tfvars.json

.PHONY: token
token: $(INSTALLED) ## Issue a token, shown once: CLIENT=acme, its digest into TOKENS=infra/tokens.auto.tfvars.json
	@$(BIN)/python scripts/issue_token.py $(if $(CLIENT),--into="$(TOKENS)" -- "$(CLIENT)",--help)

.PHONY: revoke
revoke: $(INSTALLED) ## Take a token's DIGEST=sha256:... out of TOKENS
	@$(BIN)/python scripts/issue_token.py $(if $(DIGEST),--into="$(TOKENS)" --revoke="$(DIGEST)",--help)

.PHONY: explain
explain: $(INSTALLED) ## Say why a recorded decision was taken and decide it again: FILE=decision.json
	@$(BIN)/python scripts/explain.py $(if $(FILE),-- "$(FILE)")

.PHONY: test
test: $(INSTALLED) ## Run the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: contract
contract: $(INSTALLED) ## Hold a slice to its contract: URL=https://... with PAYPILOT_CONTRACT_TOKEN, or the local one
	$(if $(URL),PAYPILOT_CONTRACT_BASE_URL="$(URL)") $(BIN)/python -m pytest tests/contract

.PHONY: openapi
openapi: $(INSTALLED) ## Write lambda/paypilot/openapi.json again from scripts/contract/openapi.py
	$(BIN)/python scripts/contract/openapi.py

BENCH := .venv-bench
$(BENCH)/.installed: requirements-bench.lock pyproject.toml
	@echo "Installing into $(BENCH), once: this takes a few minutes, and pip says nothing meanwhile."
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: bench
bench: $(BENCH)/.installed ## Measure beside references, into dist/bench.json (ARGS=--quick to try it)
	$(BENCH)/bin/python scripts/labs/bench.py $(ARGS)

.PHONY: bench-targets
bench-targets: $(BENCH)/.installed ## Compare the last bench run with its targets
	$(BENCH)/bin/python scripts/labs/bench_targets.py

.PHONY: faults
faults: $(INSTALLED) ## Break database, network, clock and function under load (SHORT=1 for a minute of it, SEED=2)
	$(BIN)/python scripts/labs/faults.py $(if $(SHORT),--short) --seed $(or $(SEED),1)

.PHONY: faults-short
faults-short: ## The minute of `make faults` that CI runs
	$(MAKE) faults SHORT=1

.PHONY: hostile
hostile: $(BENCH)/.installed ## Send 100,000 hostile inputs, and look for them in answers, rows and logs (ARGS=--help)
	$(BENCH)/bin/python scripts/labs/hostile.py $(ARGS)

.PHONY: mutate
mutate: $(BENCH)/.installed ## Change the core and the parser in small ways, and see whether the unit tests notice
	$(BENCH)/bin/python scripts/labs/mutate.py

.PHONY: check
check: $(INSTALLED) .venv-checkov/.installed ## Lint, types, formats and the Terraform configuration; changes no tracked file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy lambda/paypilot bootstrap/paypilot_bootstrap scripts
	.venv-checkov/bin/checkov --config-file .checkov.yaml
	@if command -v terraform >/dev/null; then terraform fmt -check -recursive infra; else echo "NOT CHECKED: no terraform here to check the format of infra/"; fi

.PHONY: witness
witness: $(INSTALLED) ## Start the MCP server as a client does and check what it must and must not match
	$(BIN)/python scripts/witness.py

.PHONY: mcp-wheel
mcp-wheel: $(INSTALLED) ## Build the MCP server's wheel into dist
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist scripts/mcp_server

.PHONY: rails-pages
rails-pages: $(INSTALLED) ## Print the rail tables again into docs/rails
	$(BIN)/python scripts/rails/pages.py

.PHONY: fmt
fmt: $(INSTALLED) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: lock
lock: $(INSTALLED) ## Pin the dependencies again, with hashes, from requirements*.in
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade requirements.in -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -c requirements.lock requirements-dev.in -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -c requirements-dev.lock requirements-bench.in -o requirements-bench.lock
	for tool in e2e checkov; do $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade requirements-$$tool.in -o requirements-$$tool.lock; done

# The slice on AWS: docs/operations.md tells what each of these needs and leaves behind.
TERRAFORM := terraform -chdir=infra
# TF_PLUGIN_DIR names a filesystem mirror of the provider, for a machine without a network.
TF_INIT := init -input=false $(if $(TF_PLUGIN_DIR),-plugin-dir=$(TF_PLUGIN_DIR))

.PHONY: package
package: $(INSTALLED) ## Build dist/decision.zip and dist/bootstrap.zip for Lambda (PACKAGE=--local for this machine)
	$(BIN)/python scripts/deploy/package.py $(PACKAGE)

.PHONY: package-check
package-check: $(INSTALLED) ## Build the packages twice, in two folders, and compare the bytes
	$(BIN)/python scripts/deploy/package.py --check $(PACKAGE)

.PHONY: preflight
preflight: $(INSTALLED) ## Say what a deployment still lacks, before anything is made
	$(BIN)/python scripts/deploy/preflight.py

.PHONY: plan
plan: package preflight ## Show what a deployment would change, and keep it in infra/deploy.tfplan
	$(TERRAFORM) $(TF_INIT)
	$(TERRAFORM) plan -input=false -out=deploy.tfplan

.PHONY: deploy
deploy: plan ## Deploy the slice to AWS: package, preflight, plan to a file, apply that file
	$(TERRAFORM) apply -input=false deploy.tfplan
	@rm -f infra/deploy.tfplan
	@# A role is read before its policy is made, a group before its rules: once more, so that the state is what is there.
	$(TERRAFORM) apply -input=false -refresh-only -auto-approve

.PHONY: prove
prove: $(INSTALLED) ## Prove again, on the deployed slice, what the service's database role can't do
	@function=$$($(TERRAFORM) output -raw bootstrap_function) && region=$$($(TERRAFORM) output -raw region) && \
	$(BIN)/python scripts/deploy/invoke_bootstrap.py prove --function "$$function" --region "$$region"

.PHONY: destroy
destroy: ## Destroy the deployed slice: CONFIRM=<its name>, and SNAPSHOT=false to keep no final snapshot
	@name=$$($(TERRAFORM) output -raw name) || exit 1; if [ "$(CONFIRM)" != "$$name" ]; then \
	  echo "This deletes the database and every recorded decision. If that is meant: make destroy CONFIRM=$$name"; exit 1; fi
	$(TERRAFORM) apply -input=false -auto-approve -target=aws_db_instance.record -var=deletion_protection=false -var=final_snapshot=$(or $(SNAPSHOT),true)
	$(TERRAFORM) destroy -input=false -auto-approve -var=deletion_protection=false -var=final_snapshot=$(or $(SNAPSHOT),true)

# Tools that pin what the project pins otherwise have an environment of their own.
.venv-%/.installed: requirements-%.lock
	@echo "Installing into .venv-$*, once: this takes a few minutes, and pip says nothing meanwhile."
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-$*.lock
	@touch $@

.PHONY: e2e
e2e: $(INSTALLED) .venv-e2e/.installed ## Deploy, prove, change and destroy the slice on an emulated AWS, as the deploy identity
	PAYPILOT_E2E=1 $(BIN)/python -m pytest tests/e2e
