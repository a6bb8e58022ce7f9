# moorage: `make help` lists what there is. Everything is set up on first use.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup up test hunt lint format bench clean

help: ## List the targets.
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: $(STAMP) ## Make the Python environment (.venv) with all that is needed.

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "moorage needs Python 3.11 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

up: setup ## Show the engine at work: one decision in a small bundled cluster.
	$(BIN)/moorage decide examples/cluster.yaml --pod examples/pod.yaml
	@echo
	@echo 'Next, try your own pod, or ask for the reasons as data:'
	@echo '  $(BIN)/moorage decide examples/cluster.yaml --pod examples/pod.yaml --json'
	@echo '  $(BIN)/moorage config defaults'
	@echo '  $(BIN)/moorage --help'

lint: setup ## Check style, types and layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## Check everything: style, types, layers and all tests.
	$(BIN)/python -m pytest -n 2

hunt: setup ## Look for bugs with new random examples, thirty times as many; takes long.
	MOORAGE_EXAMPLES=30 $(BIN)/python -m pytest -n 2 tests/test_columns_equal_oracle.py tests/test_snapshot_properties.py

format: setup ## Format the code.
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

bench: setup ## Measure the engine and print a table.
	$(BIN)/python bench/run.py

clean: ## Remove the environment and caches.
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
