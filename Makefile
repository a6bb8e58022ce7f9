# moorage: `make help` lists what there is. Everything is set up on first use.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
RUN_STAMP := $(VENV)/.ready-to-run

.DEFAULT_GOAL := help
.PHONY: help setup up test hunt fuzz lint format bench clean

help: ## List the targets.
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: $(STAMP) ## Make the Python environment (.venv) with all that is needed.

# `make up` needs much less than working on moorage does: no linters, no test tools.
$(RUN_STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "moorage needs Python 3.11 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[kubectl]'
	@touch $@

$(STAMP): $(RUN_STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

up: $(RUN_STAMP) ## Run a cluster with a demo workload: API server, controllers, nodes, scheduler.
	@echo 'kubectl is at $(abspath $(BIN))/kubectl, if you have none: export PATH=$(abspath $(BIN)):$$PATH'
	@exec $(BIN)/moorage up --apply examples/demo.yaml $(UP)

lint: setup ## Check style, types and layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## Check everything: style, types, layers and all tests.
	$(BIN)/python -m pytest -n 2

hunt: setup ## Look for bugs with new random examples, thirty times as many; takes long.
	MOORAGE_EXAMPLES=30 $(BIN)/python -m pytest -n 2 tests/test_columns_equal_oracle.py tests/test_snapshot_properties.py

fuzz: setup ## Send 100,000 random requests to the API server and check every answer; takes minutes.
	$(BIN)/python -m tests.apiserver.fuzzing --requests 100000 --seed 1

format: setup ## Format the code.
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

bench: setup ## Measure scheduling at 5,000 nodes and print a table; BENCH="--http --only OneTemplate" for more.
	$(BIN)/moorage bench bench/workloads --label performance $(BENCH)

clean: ## Remove the environment and caches.
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
