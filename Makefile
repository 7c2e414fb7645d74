# Everything a person or a CI runs. Works with GNU Make 3.81 (macOS) and newer.
#
#   make run                             start the gateway
#   make -s run ARGS="chat --linger 10"  the same with arguments; standard output is the gateway's
#
# All installing is done once, into .venv, and again when pyproject.toml or the pins change. It
# speaks on standard error only. make has its own exit codes: 0 if the command ended with 0, else
# 2; the gateway's own code is in the last line on standard error (`Error 5`). Who needs it runs
# `.venv/bin/gateway` after the first `make run`.

VENV := .venv
PY := $(VENV)/bin/python
UV := $(shell command -v uv 2>/dev/null)
PYTEST := pytest
COVERAGE_MIN := 85

RUN_READY := $(VENV)/.ready
DEV_READY := $(VENV)/.ready-dev

# An environment whose Python is gone, or was replaced by another version, is made anew.
FIND_TYPER := import importlib.util as i; i.find_spec("typer") and print("yes")
ifneq ($(shell test -x $(PY) && $(PY) -c '$(FIND_TYPER)' 2>/dev/null),yes)
$(shell rm -f $(RUN_READY) $(DEV_READY))
endif

.PHONY: help run test check bench format requirements reference
.DEFAULT_GOAL := help

help:  ## list what make can do
	@sed -n 's/^\([a-z-]*\):.*## */make \1|/p' Makefile | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

run: $(RUN_READY)  ## start the gateway, with ARGS if given
	@exec $(PY) -m gateway $(ARGS)

test: $(DEV_READY)  ## run the tests, with ARGS for pytest if given
	@$(PY) -m $(PYTEST) -n auto --dist worksteal $(ARGS)

check: $(DEV_READY)  ## format, lint, types, import contracts, tests with branch coverage
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PY) -c 'from importlinter.cli import lint_imports_command as main; main()'
	@$(PY) -m coverage erase
	@$(MAKE) --no-print-directory test PYTEST="coverage run -m pytest"
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage report --fail-under=$(COVERAGE_MIN)

bench: $(DEV_READY)  ## measure the budgets on this machine
	@$(PY) -m benchmarks $(ARGS)

format: $(DEV_READY)  ## format the code and mend what the linter can mend
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

reference: $(RUN_READY)  ## write .env.example and docs/settings.md anew
	@$(PY) -c 'import pathlib, gateway.settings_reference as r; r.write_reference(pathlib.Path())'

# The build backend is pinned with the rest, so that the project itself installs without a download.
COMPILE = echo 'setuptools>=77' | uv pip compile pyproject.toml - --universal \
	--python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command 'make requirements' --quiet $(UPGRADE)

requirements:  ## pin all dependencies anew (needs uv; UPGRADE=--upgrade for newer releases)
	@command -v uv >/dev/null || { echo 'make requirements needs uv' >&2; exit 1; }
	@$(COMPILE) --output-file requirements.txt >/dev/null
	@$(COMPILE) --extra dev --constraint requirements.txt --output-file requirements-dev.txt \
		>/dev/null

$(RUN_READY): pyproject.toml requirements.txt
	@{ $(MAKE_VENV); $(INSTALL) --require-hashes -r requirements.txt; $(INSTALL_PROJECT); } \
		</dev/null >&2
	@touch $@

$(DEV_READY): pyproject.toml requirements-dev.txt
	@{ $(MAKE_VENV); $(INSTALL) --require-hashes -r requirements-dev.txt; $(INSTALL_PROJECT); } \
		</dev/null >&2
	@touch $(RUN_READY) $@

# ---- how .venv is made: with uv where it is there, else with what Python brings -----------------

NO_PYTHON = Python 3.11 or newer is needed, and none was found.\n\
	Debian, Ubuntu: sudo apt install python3 python3-venv\n\
	macOS: brew install python@3.13\n\
	If it is elsewhere: make run PYTHON=/path/to/python3\n

NO_VENV = This Python cannot make virtual environments: venv or ensurepip is missing.\n\
	Debian, Ubuntu: sudo apt install python3-venv (or python3.12-venv, to match its version)\n

FIND_PYTHON = found=; \
	for name in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14; do \
		if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
		then found=$$name; break; fi; \
	done

ifneq ($(UV),)
IS_USABLE = $(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))'
CREATE = uv venv --quiet --python "$${found:->=3.11}" $(VENV)
INSTALL = uv pip install --quiet --python $(PY)
else
IS_USABLE = $(PY) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))'
CREATE = if [ -z "$$found" ]; then printf '$(NO_PYTHON)'; exit 1; fi; \
	if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null; then printf '$(NO_VENV)'; exit 1; fi; \
	"$$found" -m venv $(VENV)
INSTALL = $(PY) -m pip install --quiet --quiet --disable-pip-version-check
endif

MAKE_VENV = set -e; echo 'Installing into $(VENV), which takes a minute once ...'; \
	if ! $(IS_USABLE) 2>/dev/null; then rm -rf $(VENV); $(FIND_PYTHON); $(CREATE); fi

INSTALL_PROJECT = $(INSTALL) --no-deps --no-build-isolation -e .
