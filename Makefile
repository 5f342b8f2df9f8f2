# Each target does its own set-up in .venv; all that is needed is Python 3.11 or newer, make and a compiler.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: install demo test check bench clean

install: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

# The demo installs what it needs and no more, so that it begins soon.
demo:
	test -x $(BIN)/mcode || ($(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --editable '.[cli]')
	$(BIN)/mcode demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/detection.py
	$(BIN)/python benchmarks/scores.py
	$(BIN)/python benchmarks/review.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/reading.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
