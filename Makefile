# Every command of the project. `make help` lists the ones that people type.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
# Tools run as modules: a console script can break in a folder whose path has a space.
RUN := .venv/bin/python
INSTALLED := .venv/.installed

##@ Every day
.PHONY: run
run: $(INSTALLED) ## Serve PayPilot on this machine (PORT, PAYPILOT_DATA_DIR, DECISION_API_TOKEN)
	@exec $(RUN) scripts/serve.py

.PHONY: test
test: $(INSTALLED) ## Run the tests
	$(RUN) -m pytest -n 2 --dist loadfile

.PHONY: demo
demo: $(INSTALLED) ## Send a request through every gate and show the rows that each one left
	@$(RUN) scripts/demo.py

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: $(INSTALLED) .venv-checkov/.installed ## Lint, types, formats and the Terraform configuration; changes no tracked file
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy lambda/paypilot bootstrap/paypilot_bootstrap scripts tests
	.venv-checkov/bin/python -m checkov.main --config-file .checkov.yaml
	@if command -v terraform >/dev/null; then terraform fmt -check -recursive infra; else echo "NOT CHECKED: install terraform to check the format of infra/"; fi

.PHONY: fmt
fmt: $(INSTALLED) ## Format the code
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

##@ Deploy (docs/operations.md says what each of these needs and leaves behind)
TOKENS ?= infra/tokens.auto.tfvars.json
TERRAFORM := terraform -chdir=infra
# TF_PLUGIN_DIR names a filesystem mirror of the provider, for a machine without a network.
TF_INIT := init -input=false $(if $(TF_PLUGIN_DIR),-plugin-dir="$(TF_PLUGIN_DIR)")

.PHONY: token
token: $(INSTALLED) ## Issue a token, shown once: CLIENT=acme; its digest goes into TOKENS=infra/tokens.auto.tfvars.json
	@$(RUN) scripts/issue_token.py $(if $(CLIENT),--into="$(TOKENS)" -- "$(CLIENT)",--help)

.PHONY: revoke
revoke: $(INSTALLED) ## Remove a token's DIGEST=sha256:... from TOKENS
	@$(RUN) scripts/issue_token.py $(if $(DIGEST),--into="$(TOKENS)" --revoke="$(DIGEST)",--help)

.PHONY: package
package: $(INSTALLED) ## Build dist/decision.zip and dist/bootstrap.zip for Lambda (PACKAGE=--local for this machine)
	$(RUN) scripts/deploy/package.py $(PACKAGE)

.PHONY: package-check
package-check: $(INSTALLED)
	$(RUN) scripts/deploy/package.py --check $(PACKAGE)

.PHONY: preflight
preflight: $(INSTALLED)
	$(RUN) scripts/deploy/preflight.py

.PHONY: plan
plan: package preflight ## Show what a deployment would change, and keep it in infra/deploy.tfplan
	$(TERRAFORM) $(TF_INIT)
	$(TERRAFORM) plan -input=false -out=deploy.tfplan

.PHONY: deploy
deploy: plan ## Deploy to AWS: package, preflight, plan, apply
	$(TERRAFORM) apply -input=false deploy.tfplan
	@rm -f infra/deploy.tfplan
	@# A role is read before its policy is made, a group before its rules: once more, so that the state is what is there.
	$(TERRAFORM) apply -input=false -refresh-only -auto-approve

.PHONY: prove
prove: $(INSTALLED) ## Prove again, on the deployed slice, what the service's database role can't do
	@function=$$($(TERRAFORM) output -raw bootstrap_function) && region=$$($(TERRAFORM) output -raw region) && \
	$(RUN) scripts/deploy/invoke_bootstrap.py prove --function "$$function" --region "$$region"

.PHONY: contract
contract: $(INSTALLED) ## Run the contract suite: URL=https://... with PAYPILOT_CONTRACT_TOKEN, or on this machine
	$(if $(URL),PAYPILOT_CONTRACT_BASE_URL="$(URL)") $(RUN) -m pytest tests/contract

.PHONY: destroy
destroy: ## Destroy the deployed slice: CONFIRM=<its name>, and SNAPSHOT=false to keep no final snapshot
	@name=$$($(TERRAFORM) output -raw name) || exit 1; if [ "$(CONFIRM)" != "$$name" ]; then \
	  echo "This deletes the database and every recorded decision. If you mean it: make destroy CONFIRM=$$name"; exit 1; fi
	$(TERRAFORM) apply -input=false -auto-approve -target=aws_db_instance.record -var=deletion_protection=false -var=final_snapshot=$(or $(SNAPSHOT),true)
	$(TERRAFORM) destroy -input=false -auto-approve -var=deletion_protection=false -var=final_snapshot=$(or $(SNAPSHOT),true)

##@ Tables and documents
GENERATED := lambda/paypilot/openapi.json docs/cards.md docs/cards.html docs/rails THIRD_PARTY_LICENSES

.PHONY: explain
explain: $(INSTALLED) ## Explain a recorded decision and decide it again: FILE=decision.json
	@$(RUN) scripts/explain.py $(if $(FILE),-- "$(FILE)")

.PHONY: generate
generate: $(INSTALLED) ## Write every generated file again: the OpenAPI document, the printed tables, the licences
	$(RUN) scripts/contract/openapi.py
	$(RUN) scripts/tables/pages.py
	$(RUN) scripts/deploy/third_party.py

# A file that a generator adds counts as a difference too.
.PHONY: generate-check
generate-check: generate
	git add --intent-to-add $(GENERATED)
	git diff --exit-code -- $(GENERATED)

.PHONY: witness
witness: $(INSTALLED) ## Start the MCP server as a client does and check what it must and must not match
	$(RUN) scripts/witness.py

.PHONY: mcp-wheel
mcp-wheel: $(INSTALLED) ## Build the MCP server's wheel into dist
	$(RUN) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist scripts/mcp_server

UPGRADE ?= --upgrade
LOCK := $(RUN) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

.PHONY: lock
lock: $(INSTALLED) ## Pin the newest dependencies, with hashes, from requirements/*.in (UPGRADE= to keep the versions)
	$(LOCK) $(UPGRADE) requirements/lambda.in -o requirements.lock
	$(LOCK) $(UPGRADE) -c requirements.lock requirements/dev.in -o requirements/dev.lock
	$(LOCK) $(UPGRADE) -c requirements/dev.lock requirements/bench.in -o requirements/bench.lock
	$(LOCK) $(UPGRADE) requirements/e2e.in -o requirements/e2e.lock
	$(LOCK) $(UPGRADE) requirements/checkov.in -o requirements/checkov.lock

##@ Labs
.PHONY: bench
bench: .venv-bench/.installed ## Measure beside references, into dist/bench.json (ARGS=--quick tries it, ARGS=--targets compares)
	.venv-bench/bin/python scripts/labs/bench.py $(ARGS)

.PHONY: faults
faults: $(INSTALLED) ## Break database, network, clock and function under load (SHORT=1 for a minute of it, SEED=2)
	$(RUN) scripts/labs/faults.py $(if $(SHORT),--short) --seed $(or $(SEED),1)

.PHONY: faults-short
faults-short:
	$(MAKE) faults SHORT=1

.PHONY: hostile
hostile: .venv-bench/.installed ## Send 100,000 hostile inputs, and look for them in answers, rows and logs (ARGS=--help)
	.venv-bench/bin/python scripts/labs/hostile.py $(ARGS)

.PHONY: mutate
mutate: .venv-bench/.installed ## Change the core and the parser in small ways, and see whether the unit tests notice
	.venv-bench/bin/python scripts/labs/mutate.py

.PHONY: e2e
e2e: $(INSTALLED) .venv-e2e/.installed ## Deploy, prove, change and destroy the slice on an emulated AWS, as the deploy identity
	PAYPILOT_E2E=1 $(RUN) -m pytest -p no:randomly tests/e2e

# A root's Postgres runs as another user, who must be able to read the folder that mktemp closes.
.PHONY: test-in-spaces
test-in-spaces:
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && chmod 755 "$$folder" && \
	git clone --quiet . "$$folder/with space/paypilot" && $(MAKE) -C "$$folder/with space/paypilot" setup test

# Every step is a target of this file. `make ci STEPS="check test"` runs some of them.
STEPS ?= setup check generate-check test demo package-check witness faults-short e2e test-in-spaces

.PHONY: ci
ci: ## Run what CI runs, every step whatever failed before it (STEPS="check test" for some of it)
	@scripts/ci.sh $(STEPS)

# The environments: .venv for the project, and one each for tools that pin what the project pins otherwise.
.PHONY: setup
setup: $(INSTALLED)

.venv/.installed: requirements/dev.lock pyproject.toml
.venv-bench/.installed: requirements/bench.lock pyproject.toml
.venv-checkov/.installed: requirements/checkov.lock
.venv-e2e/.installed: requirements/e2e.lock

.venv/.installed .venv-bench/.installed .venv-checkov/.installed .venv-e2e/.installed:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "PayPilot needs Python 3.11 or later, and this is " + sys.version.split()[0])'
	@echo "Installing into $(@D), once: this takes one to three minutes, and pip prints nothing meanwhile."
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(filter %.lock,$^)
	$(if $(filter pyproject.toml,$^),$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .)
	@touch $@
