# Every target makes .venv when it is missing and installs into it again when pyproject.toml has changed.
# PYTHON is the interpreter that makes .venv; to change it, run `make clean` first.

PYTHON ?= python3
TEST_RUNNER ?= pytest --numprocesses=2 --dist=loadfile

RUN := .venv/bin/python -m
STAMP := .venv/.installed

.PHONY: demo test check check-format check-lint check-types format bench clean venv

demo: $(STAMP)
	@$(RUN) callboard demo

test: $(STAMP)
	@$(RUN) $(TEST_RUNNER) -q

check: check-format check-lint check-types

check-format: $(STAMP)
	$(RUN) ruff format --check .

check-lint: $(STAMP)
	$(RUN) ruff check .

check-types: $(STAMP)
	$(RUN) mypy --strict

format: $(STAMP)
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

bench: $(STAMP)
	@$(RUN) benchmarks

clean:
	rm -rf .venv build dist htmlcov .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@$(RUN) pip --version >/dev/null 2>&1 || $(MAKE) --no-print-directory venv
	@echo "installing callboard and its tools into .venv (once)"
	@$(RUN) pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "callboard needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)"; \
	    echo "name another one: make PYTHON=python3.12"; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$(PYTHON) cannot make virtual environments: install its venv module"; \
	    echo "(on Debian and Ubuntu: apt install python3-venv)"; exit 1; } >&2
	@$(PYTHON) -m venv --clear .venv
