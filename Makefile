# Needs Linux, make, and Python 3.11 to 3.14 with pip; `make` alone lists the targets.
# Another interpreter: make PYTHON=python3.13 test

PYTHON ?= python3
VENV ?= .venv
PACKAGE ?= --editable '.[dev]'
PYTEST_ARGS ?=

# The tests start a hundred processes that import the package: with its bytecode they start sooner.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
PYTHON_VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)
INSTALLED := $(VENV)/.installed-$(PYTHON_VERSION)

.PHONY: help demo test lint docs fuzzing notebooks benchmarks environment clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 20

demo: $(INSTALLED)  ## anonymize a built-in table, compare with the optimum; files in out/
	$(BIN)/anonymip demo

# Without pytest's rewriting of assertions, which takes longer than to collect the tests of a fresh clone.
test: $(INSTALLED)  ## run the tests; more options by PYTEST_ARGS="-k bounds"
	$(BIN)/anonymip warm-up
	$(BIN)/python -m pytest -n 2 --dist worksteal --assert=plain $(PYTEST_ARGS) || \
		{ echo "Once more what failed, with the values of its assertions:"; \
		$(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(PYTEST_ARGS); exit 1; }

lint: $(INSTALLED)  ## ruff and mypy
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy --strict

docs: $(INSTALLED)  ## build the pages, with notebooks and reference, as a site under out/site
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open out/site/index.html"

fuzzing: $(INSTALLED)  ## solve 20,000 random problems, read 2,000 damaged files, judge what comes out
	$(BIN)/python -m tests.fuzzing --solves 20000 --seed 1 --jobs 2
	$(BIN)/python -m tests.fuzzing --files 2000 --seed 1 --jobs 2

benchmarks: $(INSTALLED)  ## run the benchmarks
	$(BIN)/python -m benchmarks

notebooks: $(INSTALLED)  ## run the notebooks, each from a clean kernel; they stay without output
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[notebooks]'
	$(BIN)/jupyter execute notebooks/*.ipynb
	@echo "To open them: $(BIN)/python -m pip install jupyterlab && $(BIN)/jupyter lab notebooks"

environment: $(INSTALLED)  ## install into .venv what the other targets need

# Debian's Python comes without ensurepip: there the interpreter's own pip puts one into the
# environment. A change of interpreter, dependencies or constraints starts it afresh.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || \
		{ echo "'$(PYTHON)' is no Python 3.11 to 3.14; choose one: make PYTHON=python3.13 ..." >&2; exit 1; }
	@echo "Installing into $(VENV), once; this takes a minute or two and about 1 GB."
	@$(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 || { \
		$(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check pip; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(PACKAGE)
	@touch $@

clean:  ## remove the environment, caches and outputs
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis out build dist
	find anonymip tests benchmarks reproductions -name __pycache__ -type d -prune -exec rm -rf {} +
