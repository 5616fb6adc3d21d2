# SPDX-License-Identifier: Apache-2.0
# `make help` lists the targets. The only things needed beforehand are make and Python 3.11 or later.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# Looked for only when .venv is made; PYTHON=... chooses another one.
PYTHON ?= $(shell deploy/which-python)

LOCKS := requirements.lock requirements-build.lock
# A stamp is named after what it depends on, so an unchanged tree costs one checksum, whatever the file times say.
sum = $(shell cat $(1) 2>/dev/null | cksum | cut -d ' ' -f 1)
SOURCES := $(shell find audit coordinator protocol storage -name '*.py' -o -name '*.j2') hatch_build.py pyproject.toml
STAMP := $(VENV)/.run-$(call sum,$(LOCKS) $(SOURCES))
AUDIT_STAMP := $(VENV)/.audit-$(call sum,requirements-audit.lock)
DEV_STAMP := $(VENV)/.dev-$(call sum,$(LOCKS) pyproject.toml requirements-audit.lock requirements-dev.lock)
DEMO_STAMP := $(VENV)/.demo-$(call sum,requirements-demo.lock)
PIP = $(BIN)/python -m pip --disable-pip-version-check install --quiet
OURS := --no-deps --no-build-isolation --force-reinstall .

CHECKED = hatch_build.py docs/site_hooks.py $(wildcard audit coordinator protocol storage tests bench)
ARGS ?=

.PHONY: help audit-package install install-audit install-dev run test-quick test test-all explore simulate golden lint format demo bench screenshots docs lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@python="$(PYTHON)"; \
	test -n "$$python" || { echo "Groupkeeper needs Python 3.11 or later (on Debian and Ubuntu with python3-venv): install it, or name one with PYTHON=..." >&2; exit 1; }; \
	echo "creating $(VENV) with $$("$$python" --version), $$python"; \
	"$$python" -m venv $(VENV) || { rm -rf $(VENV); echo "could not create $(VENV); on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

$(STAMP): | $(BIN)/python
	@echo "installing Groupkeeper into $(VENV)"
	@$(PIP) --require-hashes $(addprefix -r ,$(LOCKS))
	@echo "compiling what every request passes, which takes a minute or two"
	@$(BIN)/python -m pip --disable-pip-version-check install --verbose $(OURS) >$(VENV)/compile.log 2>&1 || { \
		cat $(VENV)/compile.log >&2; exit 1; }
	@$(BIN)/groupkeeper --version | grep -q compiled || \
		echo "not compiled, as $(VENV)/compile.log says (it wants a C compiler and Python's headers): it works, but slower" >&2
	@rm -f $(VENV)/.run-* && touch $@

# pyspark comes as source, half a gigabyte with its jars. Python compiles what is used of these packages when it is
# imported: to compile all of them takes a minute.
$(AUDIT_STAMP): $(STAMP)
	@echo "installing Spark into $(VENV), for the audit"
	@$(PIP) --no-compile --require-hashes -r requirements-audit.lock
	@rm -f $(VENV)/.audit-* && touch $@

$(DEV_STAMP): $(AUDIT_STAMP)
	@echo "installing the development packages into $(VENV)"
	@$(PIP) --no-compile --require-hashes -r requirements-dev.lock
	@rm -f $(VENV)/.dev-* && touch $@

# one package instead of all development packages: a newcomer's first look should not take minutes
$(DEMO_STAMP): $(STAMP)
	@echo "installing the demo's Kafka client into $(VENV)"
	@$(PIP) --require-hashes -r requirements-demo.lock
	@rm -f $(VENV)/.demo-* && touch $@

install: $(STAMP) ## prepare .venv with the command .venv/bin/groupkeeper

install-audit: $(AUDIT_STAMP) ## the same plus Spark, for `groupkeeper audit` (needs Java 17 as well)
	@if [ -z "$$(ls $(VENV)/share/groupkeeper/*.jsa 2>/dev/null)" ] && command -v java >/dev/null; then \
		echo "letting Java write down Spark's classes, so that audits start sooner"; \
		$(BIN)/python -m audit.class_archive >$(VENV)/class-archive.log 2>&1 || \
			echo "audits will start as slowly as before, as $(VENV)/class-archive.log says"; \
	fi

install-dev: $(DEV_STAMP) ## all that plus what the tests, lint and bench need

run: $(STAMP) ## serve on 127.0.0.1:9092, data in ./data, metrics on 127.0.0.1:9308 (more flags: ARGS="...")
	@exec $(BIN)/groupkeeper serve --data-dir data $(ARGS)

# JOBS processes share the files, since what a file's fixtures start should start once; tests/conftest.py orders them.
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
# Compiled modules are kept: without them each process that a test starts would compile our sources again.
unexport PYTHONDONTWRITEBYTECODE
# tests.verdict runs pytest, and then up to three failed tests once more.
RUNNER ?= pytest
TESTS = $(BIN)/python -m $(RUNNER) $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --dist loadfile --no-loadscope-reorder)

test-quick: $(DEV_STAMP) ## the tests that need nothing but their own process (choose: ARGS="tests/config -k environment")
	$(TESTS) -m quick $(ARGS)

test: $(DEV_STAMP) ## those, and one short pass through each real component (needs Java 17, Maven and Chromium)
	$(TESTS) -m "quick or gate" --durations=10 $(ARGS)

test-all: RUNNER = tests.verdict
# Its tests wait for other processes a third of their time.
test-all: JOBS = $(shell expr $$(nproc 2>/dev/null || echo 1) + 1)
test-all: $(DEV_STAMP) install-audit ## every test (a part: ARGS="tests/workers"); skips what lacks a tool, with CI_ALL=1 fails it
	CI=$(CI_ALL) HYPOTHESIS_PROFILE=all $(TESTS) --durations=25 $(ARGS)

explore: $(DEV_STAMP) ## look for what no test knows yet: fresh examples, orders and seeds (SECONDS=600), printed where they fail
	$(BIN)/python -m tests.explore --seconds $(or $(SECONDS),600)

simulate: $(DEV_STAMP) ## whole nodes on simulated time: fresh seeds (SECONDS=120), one again (SEED=7 TRACE=1), with a gateway (GATEWAY=1), or planted bugs (MUTANTS=1)
	$(BIN)/python -m tests.simulation $(if $(GATEWAY),--gateway) $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) \
		$(if $(SIMULATED),--simulated $(SIMULATED)) $(if $(TRACE),--trace) $(if $(MUTANTS),--mutants)

golden: $(DEV_STAMP) ## make the transcripts anew that our answers are compared with, on a real Kafka (Java 17, Maven)
	$(BIN)/python -m tests.kafka.differential.refresh $(ARGS)

lint: $(DEV_STAMP) ## ruff, mypy --strict, import rules, generated code, limits of bench/code_limits.json
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports
	$(BIN)/python -m protocol.codegen --check
	$(BIN)/python bench/code.py --check

format: $(DEV_STAMP) ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(DEMO_STAMP) ## two consumers, a takeover and a crash; and (with Java) a real Kafka behind it, told step by step
	@exec $(BIN)/python -m bench.demo $(ARGS)

bench: $(DEV_STAMP) ## measure a node (bench/ says how)
	@exec $(BIN)/python -m bench $(ARGS)

screenshots: $(DEV_STAMP) ## the pictures of the page for browsers in docs/images
	@exec $(BIN)/python -m bench screenshots docs/images

docs: $(DEV_STAMP) ## the documentation as a site of files: site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "see site/index.html"

audit-package: $(AUDIT_STAMP) ## dist/groupkeeper-audit*.zip: what spark-submit takes to a cluster
	$(BIN)/python -m audit.spark_package dist

lock: $(DEV_STAMP) ## renew the locks; UPGRADE=--upgrade takes newer versions
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header $(UPGRADE) \
		pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header $(UPGRADE) \
		--group build -c requirements.lock -o requirements-build.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header $(UPGRADE) \
		pyproject.toml --group dev -c requirements.lock -c requirements-build.lock -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header $(UPGRADE) \
		pyproject.toml --extra audit -c requirements.lock -c requirements-dev.lock -o requirements-audit.lock
	echo confluent-kafka | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header \
		- -c requirements-dev.lock -o requirements-demo.lock

clean: ## remove .venv, caches and build results; data stays
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .import_linter_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
