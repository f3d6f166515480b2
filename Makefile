# Five commands. Each makes the environment it needs on a fresh machine; later runs only look at stamps.
#
#   make serve [ARGS="server.properties --override k=v"]    a broker on localhost:9092
#   make test  [PYTEST="-k name"]                            lint, types, layers and every test
#   make check                                               the same without the tests
#   make bench [AGAINST=kafka|HOST:PORT]                     the benchmark's table
#   make cluster                                             a ZooKeeper and three brokers, until Ctrl-C

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11, \
	$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
PACKAGES := ottla broker replication coordinator storage protocol runtime spark_jobs
SOURCES := $(PACKAGES) bench tests
ARGS ?=
PYTEST ?=
AGAINST ?=
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(8, 2 * os.cpu_count()))')

.DELETE_ON_ERROR:
.PHONY: serve test check bench cluster clean compiled

serve: $(VENV)/.ottla-installed compiled
	@$(BIN)/ottla serve $(ARGS)

# Two workers for a processor: with one, the processors are idle for 59 % of the time, as tests wait for brokers.
test: compiled $(VENV)/.ottla-test-installed
	@$(MAKE) --no-print-directory -j 2 check collected machine
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST)

# pytest compiles the tests in its own way. Here it does that once, while mypy leaves a processor idle; else
# each of its processes would. What cannot be collected is told by the run itself.
.PHONY: collected
collected: $(VENV)/.ottla-test-installed
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -q -p no:cacheprovider tests > $(VENV)/collected.txt 2>&1 || true

# What the tests need beside Python's packages, which mypy leaves a processor to fetch and to make.
.PHONY: machine
machine: $(VENV)/.ottla-test-installed
	$(BIN)/python -m tests.support.machine

check: $(VENV)/.ottla-test-installed
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.ottla-test-installed compiled
	@$(BIN)/python -m bench $(if $(AGAINST),--against $(AGAINST))

cluster: $(VENV)/.ottla-test-installed compiled
	@$(BIN)/python -m tests.support.local_cluster

# An installed wheel has its bytecode from pip; a checkout gets it here, also where Python is told to write none.
compiled: | $(VENV)/bin/python
	@$(BIN)/python -m compileall -q $(PACKAGES)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Ottla needs Python 3.11 or later, and none is on the PATH." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	    echo "No virtual environment could be made. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
	    rm -rf $(VENV); exit 1; }

$(VENV)/.ottla-installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.ottla-test-installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $(VENV)/.ottla-installed $@
