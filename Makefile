# `make help` lists the targets. Every target sets up what it needs; nothing but Python 3.11+, git and make is assumed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Tests wait for the disk more than for anything else, and what they show does not depend on it: where memory is plenty
# their graphs lie there.
ROOMY  := $(shell free=$$(awk '/MemAvailable/ {print $$2}' /proc/meminfo 2>/dev/null); \
            test "$${free:-0}" -gt 12000000 && df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 8000000 {print "TMPDIR=/dev/shm"}')
PYTEST := $(ROOMY) $(BIN)/python -m pytest
# Three processes, for most suites wait for others; a file's tests stay together, as they share what they started, and
# files keep the order of `tests/conftest.py`: the dearest first.
SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: help demo test quick test-full lint strace bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */  \1\t/' | expand -t 14

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "OmniGraph needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

demo: $(READY)  ## a lake of a million rows through a pipeline on Spark, and what landed
	$(BIN)/python -m demo

test: $(READY) lint strace  ## lint and all tests but the whole products of cases
	$(PYTEST) $(SIDE_BY_SIDE) -m "not full"

quick: $(READY)  ## the fast ring
	$(PYTEST) $(SIDE_BY_SIDE) -m "not slow and not spark and not full"

test-full: $(READY) lint strace  ## everything, whole products included
	$(PYTEST)

lint: $(READY)  ## ruff, mypy --strict, import borders
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

strace:  # the power-cut tests need it; where it cannot be installed they are skipped and say so
	@command -v strace >/dev/null || apt-get install -y -qq strace || { apt-get update -qq && apt-get install -y -qq strace; } || true

bench: $(READY)  ## print benchmark ratios beside the raw substrate and a peer; takes hours
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	for part in commit stores writes reads branches soak pipeline; do $(BIN)/python -m benchmarks.$$part || exit 1; done

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache demo-out
