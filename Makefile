# Two commands set up everything they need, in .venv:
#
#   make demo     compile a small language model both ways, check it against eager, and show what fusion did
#   make test     lint, type check, lit and pytest; no GPU needed
#
# Others: make lint, make lit, make pytest, make test-long (random tests at full length), make clean,
# make fuzz MINUTES=60 (new random PyTorch programs),
# make coverage-ops (PyTorch's operator database; takes hours, and goes on where it stopped).

PYTHON ?= python3
# torch alone resolves to a CUDA build of several gigabytes; this version to a small one where that is on offer
TORCH ?= torch==2.13.0

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-long fuzz coverage-ops lint lit pytest clean

demo: $(READY)
	@$(BIN)/python bench/demo.py

test: lint lit pytest

# Where a torch can be imported already (a GPU machine's image), it is used instead of another
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; say which: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(VENV): downloads PyTorch, torch-mlir and what tests need; this takes minutes, once"
	@if $(PYTHON) -c 'import torch; v = tuple(map(int, torch.__version__.split(".")[:2])); assert v >= (2, 10)' 2>/dev/null; \
	  then $(PYTHON) -m venv --system-site-packages $(VENV); \
	  else $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet "$(TORCH)"; fi
	@$(BIN)/python -m pip install --quiet -e ".[test,dev]"
	@touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

lit: $(READY)
	$(BIN)/lit --order=lexical test

# (on a card one at a time: a test fills it)
pytest: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile test/python
	$(BIN)/python -m pytest test/gpu

# Random programs, compared with eager PyTorch, for a while
MINUTES ?= 60
fuzz: $(READY)
	$(BIN)/python test/python/fuzz.py $(MINUTES)

test-long: $(READY)
	MLIR_FUSION_TEST_LONG=1 $(BIN)/python -m pytest --durations=20 test/python

coverage-ops: $(READY)
	$(BIN)/python test/python/op_coverage.py --state build/op-coverage.jsonl --table docs/op-coverage.md

clean:
	rm -rf $(VENV) build .pytest_cache .hypothesis .ruff_cache *.egg-info

# Programs that nobody should write, for fusion-opt: make attack COUNT=100000
.PHONY: attack
COUNT ?= 100000
attack: $(READY)
	$(BIN)/python test/python/mutated_ir.py $(COUNT)
