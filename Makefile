# moorage: `make help` lists what there is. Everything is set up on first use.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
RUN_STAMP := $(VENV)/.ready-to-run
BROWSER_STAMP := $(VENV)/.browser
DOCS_STAMP := $(VENV)/.ready-for-docs
# What comes from outside is installed from the lock files, and only if it has one of their hashes.
LOCKED := -m pip install --quiet --require-hashes --requirement
# What locks and audits is no part of the project's own environment.
SUPPLY := .venv-supply
SUPPLY_STAMP := $(SUPPLY)/.ready
COMPILE := $(SUPPLY)/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-annotate \
  --custom-compile-command 'make lock' $(LOCK)
# The fast tests leave out property tests (Hypothesis marks them), what is marked as slow, and what starts processes or
# whole clusters.
FAST := -m 'not hypothesis and not slow' --ignore=tests/apiserver --ignore=tests/bench --ignore=tests/client \
  --ignore=tests/controllers --ignore=tests/documents --ignore=tests/end_to_end --ignore=tests/extenders --ignore=tests/manifests \
  --ignore=tests/packages --ignore=tests/plugin_packages --ignore=tests/run --ignore=tests/services --ignore=tests/sim_nodes \
  --ignore=tests/sim_processes --ignore=tests/sweep --ignore=tests/test_examples.py --ignore=tests/testing \
  --ignore=tests/ui/browser --ignore=tests/up --ignore=tests/upgrade
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
BUILD_REQUIRES := $(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])'

.DEFAULT_GOAL := help
.PHONY: help setup up test test-fast test-random screenshots docs fuzz chaos chaos-store soak lint format bench bench-all bench-trend lock audit sbom man dist zipapp interface deploy chart krew alerts clean

help: ## List the targets.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: $(STAMP) ## Make the Python environment (.venv) with all that is needed.

# `make up` needs much less than working on moorage does: no linters, no test tools.
$(RUN_STAMP): pyproject.toml cluster/pyproject.toml requirements/up.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "moorage needs Python 3.11 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(LOCKED) requirements/up.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . --editable cluster
	@touch $@

$(STAMP): $(RUN_STAMP) requirements/development.txt
	$(BIN)/python $(LOCKED) requirements/development.txt
	@touch $@

up: $(RUN_STAMP) ## Run a cluster with a demo workload: API server, controllers, nodes, scheduler.
	@echo 'kubectl is at $(abspath $(BIN))/kubectl, if you have none: export PATH=$(abspath $(BIN)):$$PATH'
	@exec $(BIN)/moorage up --apply examples/demo.yaml $(UP)

lint: setup ## Check style, types and layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Without a browser, the other tests run, and those of the page say what is missing.
$(BROWSER_STAMP): tools/browser.py $(STAMP)
	@$(BIN)/python -m tools.browser && touch $@ || true

test: $(if $(SKIP_LINT),setup,lint) $(BROWSER_STAMP) ## Check everything: style, types, layers and all tests; SKIP_LINT=1: tests only.
	$(BIN)/python -m pytest -n 2

test-fast: setup ## Run the fast tests, which need neither processes nor sockets: under a minute on two cores.
	$(BIN)/python -m pytest -n 2 $(FAST)

test-random: setup ## Look for bugs with new random examples, thirty times as many; takes long.
	MOORAGE_EXAMPLES=30 $(BIN)/python -m pytest -n 2 tests/test_columns_equal_oracle.py tests/test_snapshot_properties.py

screenshots: setup $(BROWSER_STAMP) ## Make the pictures of the page again: docs/images/page-*.png.
	$(BIN)/python -m tests.ui.browser.screenshots

$(DOCS_STAMP): $(RUN_STAMP) requirements/docs.txt
	$(BIN)/python $(LOCKED) requirements/docs.txt
	@touch $@

docs: $(DOCS_STAMP) ## Build the documentation site: build/docs/index.html.
	$(BIN)/python -m tools.docs

fuzz: setup ## Send 100,000 random requests to the API server and check every answer; FUZZ="--requests 1000000" for more.
	$(BIN)/python -m tests.apiserver.fuzzing --requests 100000 --seed 1 --seed 2 --seed 3 $(FUZZ)

chaos: setup ## Try to break the scheduler in 16,000 runs in virtual time; CHAOS="--runs 10 --scenario leaders" for fewer.
	$(BIN)/moorage chaos --runs 1000 $(CHAOS)

chaos-store: setup ## Try to lose what the API server has stored: kills, power failures, bad disks; STORE="--rounds 3" for more.
	$(BIN)/moorage chaos store $(STORE)

soak: setup ## Churn for 24 hours of virtual time, half of them with full caches, and find out what grows; SOAK="--seed 1".
	$(BIN)/moorage soak --virtual --hours 24 $(SOAK)

format: setup ## Format the code.
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

bench: setup ## Measure scheduling at 5,000 nodes and print a table; BENCH="--http --only OneTemplate" for more.
	$(BIN)/moorage bench bench/workloads --label performance $(BENCH)

bench-all: setup ## Measure all that bench/RESULTS.md has rows for, and write its tables; PERF=DIR COMPARE=NAME=BINARY (NEXT_PERF=, NEXT_COMPARE=).
	$(BIN)/python -m bench.publish $(if $(PERF),--perf $(abspath $(PERF))) $(if $(COMPARE),--compare-with $(COMPARE)) \
	  $(if $(NEXT_PERF),--next-perf $(abspath $(NEXT_PERF))) \
	  $(if $(NEXT_COMPARE),--next-compare-with $(NEXT_COMPARE)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-trend: setup ## Add the reports of bench-all to bench/trend.csv, and write the page of all releases; REPORTS=FILES for others.
	$(BIN)/python -m bench.trend $(if $(REPORTS),$(REPORTS),$(wildcard build/bench/*-engine.json))

$(SUPPLY_STAMP): requirements/supply.txt
	$(PYTHON) -m venv $(SUPPLY)
	$(SUPPLY)/bin/python $(LOCKED) requirements/supply.txt
	@touch $@

lock: $(SUPPLY_STAMP) ## Write the lock files as pyproject.toml has it; LOCK=--upgrade for newer versions.
	$(COMPILE) --extra dev --extra docs --extra kubectl --extra profile --output-file requirements/development.txt \
	  pyproject.toml
	$(COMPILE) --constraint requirements/development.txt --output-file requirements/runtime.txt pyproject.toml
	$(BUILD_REQUIRES) | $(COMPILE) --constraint requirements/development.txt --output-file requirements/build.txt -
	$(COMPILE) --constraint requirements/development.txt --extra kubectl --output-file requirements/up.txt \
	  requirements/build.txt pyproject.toml
	$(COMPILE) --constraint requirements/development.txt --extra docs --extra kubectl --output-file requirements/docs.txt \
	  requirements/build.txt pyproject.toml
	$(COMPILE) --group supply --output-file requirements/supply.txt

audit: setup ## Compare what is installed with the lock, and ask for known vulnerabilities if there is a network.
	@$(MAKE) --no-print-directory $(SUPPLY_STAMP) || echo 'pip-audit cannot be installed.'
	@$(BIN)/python -m tools.audit requirements/development.txt --pip-audit $(SUPPLY)/bin/pip-audit

# The time of what is built is that of its source, so that everybody builds the same bytes.
dist zipapp man: export SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),$(shell date +%s))

man: setup ## Write the manual pages of all commands: build/man.
	$(BIN)/python -m tools.manual build/man

dist: man ## Build source distributions and wheels of both packages, and the bill of materials: dist/.
	rm -rf dist
	$(BIN)/python -m hatchling build --directory dist
	cd cluster && $(abspath $(BIN))/python -m hatchling build --directory ../dist
	$(BIN)/python -m tools.sbom requirements/runtime.txt --output dist/moorage-$(VERSION).cdx.json

zipapp: dist $(SUPPLY_STAMP) ## Build one file with everything for this Python and platform, for machines without network: dist/*.pyz.
	$(BIN)/python -m tools.zipapp --pex $(SUPPLY)/bin/pex --wheels dist --lock requirements/runtime.txt

deploy: setup ## Write what deploy/ has from the source: Kustomize's base, rules of the Helm chart, the dashboard.
	$(BIN)/python -m tools.deploy

chart: setup ## Pack the Helm chart: dist/moorage-VERSION.tgz.
	$(BIN)/helm package deploy/chart/moorage --destination dist

krew: setup ## Pack the files of `make zipapp` for krew, with a manifest, in dist/; URL=ADDRESS says where they will be.
	$(BIN)/python -m tools.krew dist/*.pyz --url $(URL) --output dist

# promtool is of Debian's package prometheus, or of Prometheus' releases.
alerts: ## Check the alert rules and their cases with promtool.
	promtool check rules deploy/prometheus/rules.yaml
	promtool test rules deploy/prometheus/tests/rules.yaml

sbom: setup ## Write the bill of materials of what runs (CycloneDX JSON): sbom.cdx.json.
	$(BIN)/python -m tools.sbom requirements/runtime.txt --output sbom.cdx.json

interface: setup ## Bring the listings of what users may depend on up to date; RELEASE=VERSION when one is made.
	$(BIN)/python -m tools.interface $(if $(RELEASE),--release $(RELEASE))

clean: ## Remove the environment and caches.
	rm -rf $(VENV) $(SUPPLY) build/man dist sbom.cdx.json .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
