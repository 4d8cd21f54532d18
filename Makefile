# First Token on Linux and macOS. Windows and plain pip: see README.md.
.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
export HOST PORT MODEL

.PHONY: help run test test-oldest check bench screenshots format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/run.stamp ## the page on 127.0.0.1:7860, or the first free port after it (PORT= HOST= MODEL=)
	@$(BIN)/first-token serve

test: $(VENV)/dev.stamp ## every test that needs no GPU; two at a time (WORKERS=)
	@sh .ci/browser.sh $(BIN)
	@$(BIN)/first-token models fetch
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not gpu" --cache-clear --ignore tests/test_readme.py $(PYTEST) \
	  || { [ $$? -eq 1 ] && sh .ci/again.sh $(BIN); }

test-oldest: $(VENV)/oldest.stamp ## the engine's tests again, on the oldest transformers that is allowed
	@PYTHONPATH=$(abspath $(VENV)/oldest) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not gpu and not model" tests/engine $(PYTEST)

check: $(VENV)/dev.stamp ## format, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q tests/test_readme.py

bench: $(VENV)/run.stamp ## the benchmark; medians and ratios, the last line is JSON
	@$(BIN)/first-token bench $(BENCH)

screenshots: $(VENV)/dev.stamp ## take the README's pictures anew
	@WRITE_SCREENSHOTS=1 $(BIN)/python -m pytest -q tests/browser/test_screenshots.py

format: $(VENV)/dev.stamp ## put the code in its format
	@$(BIN)/ruff check --fix-only -q .
	@$(BIN)/ruff format .

clean: ## remove .venv and what tools have left; models stay in the user's cache
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A stamp says that an installation was finished for these very files; without a change a second
# `make` installs nothing.
$(VENV)/run.stamp: pyproject.toml constraints.txt .ci/install.sh
	@sh .ci/install.sh $(PYTHON) $(VENV) .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	@sh .ci/install.sh $(PYTHON) $(VENV) ".[dev]"
	@touch $@

$(VENV)/oldest.stamp: $(VENV)/dev.stamp constraints-oldest.txt .ci/oldest.sh
	@sh .ci/oldest.sh $(BIN) $(VENV)/oldest
	@touch $@
