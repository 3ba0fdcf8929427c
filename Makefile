SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
# The versions with which everything passed. Those of what builds the package newer versions of pip
# take from the second name, older ones from the first.
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip --disable-pip-version-check --quiet
# uv takes a third of pip's time. Where there is none, or it finds nothing (it does not read pip's
# settings), pip does it.
INSTALL = { test -x $(BIN)/uv || $(PIP) install --only-binary uv uv; } && \
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode \
	    --constraint constraints.txt --build-constraint constraints.txt $(1) || $(PIP) install $(1)
PYTEST := -m pytest -n 2 --dist worksteal

# make PYTHON=/path/to/python chooses the interpreter; otherwise the first suitable one is taken.
PYTHON ?=
SUITABLE := import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

.PHONY: help test precompile test-latest test-oldest constraints lint lists bench demo docs clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

lint: $(VENV)/.stamp-test  ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(VENV)/.stamp-test  ## lint, then all tests, and the compiled core's once more without compiling
	$(MAKE) --no-print-directory --jobs 2 lint precompile
	$(MAKE) --no-print-directory --jobs 2 test-compiled test-interpreted

.PHONY: test-compiled test-interpreted
test-compiled:
	$(BIN)/python $(PYTEST)

# One process beside the two above, for the moments in which those wait for others. What it says is
# shown in one piece when it has ended.
test-interpreted:
	@said=$$(NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 0 -p no:cacheprovider -m "not slow" \
	    tests/core 2>&1); status=$$?; printf '\n%s\n' "$$said"; exit $$status

precompile: $(VENV)/.stamp-test
	$(BIN)/python -m tests.precompile

test-latest: ENVIRONMENT := .venv-latest
test-latest: RESOLUTION := highest
test-latest: $(BIN)/uv  ## all tests with the newest versions that pyproject.toml allows
	$(TEST_INSTALLED)

# Old packages warn about newer ones beside them, old SciPy about small samples, and Ray leaves
# files open: no fault of ours.
test-oldest: ENVIRONMENT := .venv-oldest
test-oldest: RESOLUTION := lowest-direct
test-oldest: WARNINGS := -W default::DeprecationWarning -W default::PendingDeprecationWarning \
    -W default::ResourceWarning -W "default:Sample size too small:UserWarning"
test-oldest: $(BIN)/uv  ## all tests with the oldest versions that pyproject.toml allows
	$(TEST_INSTALLED)

# The package is installed as a wheel: its compiled code is then cached in its own environment, and
# not beside the sources, where another Numba would replace it.
define TEST_INSTALLED
$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(ENVIRONMENT)
$(BIN)/uv pip install --quiet --python $(ENVIRONMENT) --upgrade --resolution $(RESOLUTION) \
    --only-binary :all: --no-binary kernelstream --reinstall-package kernelstream '.[test]'
$(ENVIRONMENT)/bin/python -m tests.precompile
$(ENVIRONMENT)/bin/python $(PYTEST) $(WARNINGS) tests --pyargs kernelstream
endef

constraints: $(BIN)/uv  ## renew constraints.txt: the newest versions that pyproject.toml allows
	printf '%s\n' hatchling editables uv | $(BIN)/uv pip compile --quiet --upgrade --all-extras \
	    --universal --python-version 3.11 --fork-strategy fewest --annotation-style line \
	    --custom-compile-command 'make constraints' --output-file constraints.txt pyproject.toml -

lists: $(VENV)/.stamp-test  ## write the lists of methods: README, reference and exported names
	$(BIN)/python docs/lists.py
	$(BIN)/ruff format --quiet src
	$(BIN)/ruff check --quiet --fix src

bench: $(VENV)/.stamp-bench  ## measure against other programs
	$(BIN)/python -m benchmarks

demo: $(VENV)/.stamp-cli  ## learn two streams and write their reports into demo-output
	$(BIN)/kernelstream demo

# The pages' matrices are small: threads of BLAS would wait for one another, and take more time.
docs: $(VENV)/.stamp-docs  ## build the documentation in docs/_build/html
	@echo "All examples and blocks of pages are run: some minutes; later only where pages have changed."
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -d docs/_build/doctrees -W --keep-going docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:  ## remove caches, build and demo outputs (the .venv folders stay)
	rm -rf build dist demo-output docs/_build docs/gallery docs/reference/generated docs/reference/command_line.md
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path './.venv*' -prune -o -path ./.git -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf

$(BIN)/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	    if $$python -c '$(SUITABLE)' 2>/dev/null; then \
	        $$python -m venv $(VENV) && exit 0; \
	        rm -rf $(VENV); exit 1; \
	    fi; \
	done; \
	echo "kernelstream needs Python 3.11, 3.12 or 3.13 with venv: install one, or name it with make PYTHON=..." >&2; \
	exit 1

$(BIN)/uv: | $(BIN)/python
	$(PIP) install uv

$(VENV)/.stamp-test: pyproject.toml constraints.txt | $(BIN)/python
	$(call INSTALL,-e '.[test]')
	@touch $@

$(VENV)/.stamp-cli: pyproject.toml constraints.txt | $(BIN)/python
	$(call INSTALL,-e '.[cli]')
	@touch $@

$(VENV)/.stamp-docs: pyproject.toml constraints.txt | $(BIN)/python
	$(call INSTALL,-e '.[docs]')
	@touch $@

# The other programs are optional: one that has no wheel here is left out, and tried again next time.
$(VENV)/.stamp-bench: $(VENV)/.stamp-cli
	@complete=yes; \
	for peer in $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["bench"])'); do \
	    { $(call INSTALL,--only-binary :all: "$$peer"); } || { complete=no; echo "bench: $$peer did not install and is left out"; }; \
	done; \
	if [ $$complete = yes ]; then touch $@; fi
