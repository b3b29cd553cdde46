# Every target sets up what it needs on a machine that has Python 3.10+, make and a package index.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO   := $(VENV)/.installed-demo

# The tests start many processes, each of which would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-full check test test-slow lint types bench wheel sdist try-wheel clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "drift-envs needs Python 3.10 or later: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "could not make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(STAMP): setup.cfg pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(DEMO)

$(DEMO): setup.cfg pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[agents,plots]"
	@touch $@

demo: $(DEMO)  ## play a small experiment in about a minute, with a table and a picture
	$(BIN)/python examples/demo.py

.PHONY: map map-all map-short
map: $(STAMP)  ## play what the map's claims need, the rules on lakes and shop, 30 instances: about an hour; resumes
	$(BIN)/drift-agents run research/experiments/verify-map.yaml --schedules frozen_lake/verify-6x6,frozen_lake/verify-8x8,webshop/verify \
		--jobs 2 --out runs/map --resume
	$(BIN)/python -m research map runs/map --out build/map

map-all: map  ## the whole map, with the house and the memories: two and a half hours more; resumes
	$(BIN)/drift-agents run research/experiments/verify-map.yaml --schedules house/verify-keys,house/verify-locked --jobs 2 --out runs/map-house --resume
	$(BIN)/drift-agents run research/experiments/verify-map-memories.yaml --jobs 2 --out runs/map-memories --resume
	$(BIN)/python -m research map runs/map runs/map-house runs/map-memories --out build/map

map-short: $(STAMP)  ## its short form, one instance of one environment: a minute
	$(BIN)/drift-agents run research/experiments/verify-map.yaml --schedules frozen_lake/verify-6x6:often-3 --seeds 2 --jobs 2 --fresh --out runs/map-short
	$(BIN)/python -m research map runs/map-short --out build/map-short

.PHONY: tables
tables: $(STAMP)  ## compute every number of README, board and map from research/results/, without playing
	$(BIN)/python -m research tables

demo-full: $(DEMO)  ## play the experiment glove-quick and print its report
	$(BIN)/drift-agents run glove-quick --out runs/demo-full

.PHONY: demo-llm
demo-llm: $(DEMO)  ## a lake without and with GLOVE, by a small trained network; MODEL=NAME BASE_URL=URL for a model of yours
	$(if $(MODEL),$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[llm]")
	$(BIN)/drift-agents run demo-llm --trace all --fresh --out runs/demo-llm $(if $(MODEL),--policy llm --model $(MODEL)) $(if $(BASE_URL),--base-url $(BASE_URL))
	$(BIN)/drift-agents inspect runs/demo-llm --out runs/demo-llm/inspect.html

.PHONY: chromium
chromium:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -qq --no-install-recommends chromium chromium-driver >/dev/null; \
	else \
		echo "the shop's browser tests need Chromium; on Debian and Ubuntu: apt-get install chromium chromium-driver" >&2; \
	fi

# A worker begins with neighbouring tests, which share what they make, and takes over others at the end.
SHARE := --dist worksteal

check: $(STAMP) lint types  ## between edits: lint, types, the tests that start no process, server or browser
	$(BIN)/python -m pytest -n 2 $(SHARE) -m "not slow and not integration" --hypothesis-profile=check

test: $(STAMP) chromium  ## lint, types, the whole test suite: what CI runs
	@$(MAKE) --no-print-directory -j 2 lint types suite

# Tests make and remove thousands of folders; on some disks removing one takes 4 ms. Where memory has room they lie there.
ROOM := $(shell df -k --output=avail /dev/shm 2>/dev/null | tail -1)
suite test-slow test-research: export TMPDIR := $(or $(TMPDIR),$(shell [ "0$(ROOM)" -gt 4000000 ] && echo /dev/shm),/tmp)

.PHONY: suite
suite: $(STAMP)
	$(BIN)/python -m pytest -n 3 $(SHARE) -m "not slow"

test-slow: $(STAMP)  ## the long tests too
	$(BIN)/python -m pytest -n 2 $(SHARE)

.PHONY: test-research
test-research: $(STAMP)  ## the tests of research/, which no other target runs: SLOW=1 for the long ones too
	$(BIN)/python -m pytest -n 2 $(if $(SLOW),,-m "not slow") research tests/research

# An environment for each folder of tests/extras, so that what one needs cannot change what another tests. It has the
# extra of that name, or what `requirements.txt` there says: packages that only the tests need are no extras. What
# `no-deps.txt` names is installed without its dependencies.
COMMA := ,
EXTRAS_READY = $(filter-out %__pycache__,$(patsubst %/,%,$(wildcard tests/extras/*/)))
.PHONY: test-extras test-extras-all
test-extras: $(if $(filter $(EXTRA),$(notdir $(EXTRAS_READY))),.venvs/$(EXTRA)/.installed)  ## the tests of one extra in an environment of its own: EXTRA=minigrid
	@test -n "$(EXTRA)" || { echo "name one: make test-extras EXTRA=$(firstword $(notdir $(EXTRAS_READY)))   ($(notdir $(EXTRAS_READY)))" >&2; exit 2; }
	@test -d tests/extras/$(EXTRA) || { echo "no tests of an extra $(EXTRA); there are: $(notdir $(EXTRAS_READY))" >&2; exit 2; }
	.venvs/$(EXTRA)/bin/python -m pytest -n 2 -m "not slow" tests/extras/$(EXTRA)

test-extras-all:  ## the tests of every extra, one after the other
	@for extra in $(notdir $(EXTRAS_READY)); do $(MAKE) --no-print-directory test-extras EXTRA=$$extra || exit 1; done

.venvs/%/.installed: setup.cfg pyproject.toml .ci/constraints.txt
	$(PYTHON) -m venv .venvs/$*
	.venvs/$*/bin/python -m pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt --editable \
		".[agents,test$(if $(wildcard tests/extras/$*/requirements.txt),,$(COMMA)$*)]" \
		$(addprefix --requirement ,$(wildcard tests/extras/$*/requirements.txt))
	$(if $(wildcard tests/extras/$*/no-deps.txt),.venvs/$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--requirement tests/extras/$*/no-deps.txt)
	@touch $@

RL_BOARD := .venvs/baselines/bin/python -m baselines
.PHONY: rl-board rl-board-sb3 rl-board-short
rl-board: .venvs/baselines/.installed  ## learners under drift: about an hour on two idle cores, goes on where it was
	$(RL_BOARD) run --jobs 2 --out runs/rl_board
	$(RL_BOARD) table runs/rl_board --page docs/research/rl_board.md --pictures docs/pictures

rl-board-sb3: .venvs/baselines/.installed  ## its second table, on MiniGrid and MuJoCo: half an hour on two idle cores, goes on where it was
	$(RL_BOARD) sb3 --jobs 2 --out runs/rl_board_sb3
	$(RL_BOARD) table --page docs/research/rl_board.md

rl-board-short: .venvs/baselines/.installed  ## its short form: one cell, two lifetimes
	$(RL_BOARD) run --short --jobs 2 --out runs/rl_board_short
	$(RL_BOARD) table runs/rl_board_short --results build/rl_board_short

.PHONY: docs
docs: .venvs/docs/.installed  ## build the site into build/site, which opens from files
	NO_MKDOCS_2_WARNING=1 .venvs/docs/bin/python -m mkdocs build --quiet

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

.PHONY: hooks
hooks: $(STAMP)  ## check every commit: linter, formatter, spelling, types
	$(BIN)/pre-commit install

types: $(STAMP)
	$(BIN)/mypy

.PHONY: fuzz audit bandit lock
fuzz: .venvs/mcp/.installed  ## the property tests of all readers, with a hundred times as many examples
	.venvs/mcp/bin/python -m pytest -n 2 -o faulthandler_timeout=0 --hypothesis-profile=fuzz tests/test_readers.py

AUDIT := .venvs/audit/.installed
$(AUDIT): .ci/audit.txt
	$(PYTHON) -m venv .venvs/audit
	.venvs/audit/bin/python -m pip install --quiet --disable-pip-version-check --requirement .ci/audit.txt
	@touch $@

bandit: $(AUDIT)
	.venvs/audit/bin/bandit --quiet --recursive --configfile pyproject.toml drift_envs webshop_server agents/drift_agents research

audit: bandit  ## bandit for the code, pip-audit for the locked dependencies, whose database it needs to reach
	.venvs/audit/bin/pip-audit --requirement .ci/requirements.lock --no-deps --disable-pip --progress-spinner off

lock: $(AUDIT)  ## make .ci/requirements.lock again, for all versions of Python
	.venvs/audit/bin/uv pip compile setup.cfg --extra dev --universal --python-version 3.10 --no-header --no-annotate --quiet --upgrade --output-file .ci/lock.tmp
	{ grep '^#' .ci/requirements.lock; cat .ci/lock.tmp; } > .ci/lock.new && mv .ci/lock.new .ci/requirements.lock && rm .ci/lock.tmp

bench: $(STAMP)  ## speed, as ratios measured in one run
	$(BIN)/python -m benchmarks

wheel: $(STAMP)  ## build dist/*.whl
	$(BIN)/python -m build --wheel --outdir dist .

sdist: $(STAMP)  ## build dist/*.tar.gz, with all tests
	$(BIN)/python -m build --sdist --outdir dist .

try-wheel: wheel  ## try the wheel in empty environments; PYTHONS="python3.10 python3.13"
	.ci/try-wheel dist/*.whl $(or $(PYTHONS),$(PYTHON))

clean:  ## remove everything that the targets made
	rm -rf $(VENV) .venvs build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
