# Memory OS: `make help` lists the targets.
SHELL := /bin/bash
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
TEST_PROCESSES ?= 2
DATA ?= ../shared/data
ARGS ?=

.PHONY: help run test test-long test-quick check fix docs bench bench-quality bench-retrieval clean lock

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.run: requirements/run.txt pyproject.toml
	@echo "==> [1/2] virtual environment and pinned dependencies (once; about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/run.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	@echo "==> [2/2] tools of tests and checks"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

run: $(VENV)/.run ## Run everything on this machine: stores, API, console, a worker
	@$(BIN)/memory-os up

test: $(VENV)/.dev check ## Everything that has to pass: checks and all tests
	@scripts/ensure-chromium
	@echo "==> tests on real stores, $(TEST_PROCESSES) processes"
	@$(PYTEST) -n $(TEST_PROCESSES) --dist loadgroup -m "not chaos"
	@echo "==> chaos: killed workers, stopped stores"
	@$(PYTEST) -n $(TEST_PROCESSES) --dist loadgroup -m chaos

test-long: $(VENV)/.dev ## The histories of the property test, ten times as many (an hour on two cores)
	@MEMORY_OS_HISTORIES=20000 $(PYTEST) -n $(TEST_PROCESSES) --timeout=14400 tests/property/test_projection_histories.py

test-quick: $(VENV)/.dev ## The unit tests alone
	@$(PYTEST) tests/unit -q

check: $(VENV)/.dev ## Format, lint, types, direction of imports
	@echo "==> checks"
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

fix: $(VENV)/.dev ## Format, and mend what the linter can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.dev ## Build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.run ## Every benchmark but those of retrieval, JSON into benchmarks/results/
	@for b in writes gated_writes dedup job_queue projection lag bloat rebuild path_eval newest_fact; do $(BIN)/python benchmarks/$$b.py || exit 1; done

bench-quality: $(VENV)/.dev ## How good retrieval is, on the data in DATA=../shared/data; options of the benchmark in ARGS
	@$(BIN)/python benchmarks/quality.py --data $(DATA) $(ARGS)

bench-retrieval: $(VENV)/.dev ## How fast retrieval is, up to 100,000 memories of a tenant among 1,000,000 (an hour)
	@$(BIN)/python benchmarks/retrieval.py $(ARGS)

lock: $(VENV)/.dev ## Pin the dependencies anew
	@$(BIN)/pip-compile -q --strip-extras --no-emit-index-url --no-emit-find-links --extra embedded -o requirements/run.txt pyproject.toml requirements/build.in
	@$(BIN)/pip-compile -q --strip-extras --no-emit-index-url --no-emit-find-links -c requirements/run.txt -o requirements/dev.txt requirements/dev.in

clean: ## Remove the virtual environment and build products; data in .memory-os stays
	@rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .mypy_cache .hypothesis
