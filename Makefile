# Every target sets up .venv by itself with what it needs, once, and again when pyproject.toml or constraints.txt change:
# the demo takes the core and its plots, the tests add their tools to the same environment, the checks add theirs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
SEED   ?= 0
ARGS   ?=

VENV  := .venv
BIN   := $(VENV)/bin
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test rl soak mutants check format bench cases lock clean

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev  ## create .venv with everything, in the versions of constraints.txt

# Per extra of pyproject.toml, a stamp that says it is installed.
$(VENV)/.%: pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "surefoot needs Python 3.11 or newer; choose one with: make PYTHON=...")'
	@test -x $(BIN)/python || { echo "setup: creating $(VENV) with $(PYTHON)"; "$(PYTHON)" -m venv $(VENV); }
	@echo "setup: installing surefoot[$*], versions from constraints.txt"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@

demo: $(VENV)/.plot  ## watch it learn on a small world
	$(BIN)/surefoot demo $(ARGS)

test: export OPENBLAS_NUM_THREADS := 1
# Images that forget bytecode would compile every module again in every process that a test starts.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.test  ## run the tests (SEED=3 for another seed, ARGS='-k ridge' for pytest, ARGS=--thorough for ten seeds per claim)
	@echo "test: two processes, seed $(SEED), one BLAS thread each"
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 10 --seed=$(SEED) $(ARGS)

# Learners of other libraries bring torch, which is no part of ours: they have an environment of their own.
rl: export OPENBLAS_NUM_THREADS := 1
rl: $(VENV)-rl/.made  ## train learners from other libraries inside the shield (ARGS='-k dqn' for pytest)
	@echo "rl: Stable-Baselines3, sb3-contrib and a single-file learner, seed $(SEED)"
	$(VENV)-rl/bin/python -m pytest --durations 10 --seed=$(SEED) tests/rl $(ARGS)

$(VENV)-rl/.made: pyproject.toml constraints.txt examples/rl/requirements.txt
	@test -x $(VENV)-rl/bin/python || { echo "setup: creating $(VENV)-rl with $(PYTHON)"; "$(PYTHON)" -m venv $(VENV)-rl; }
	@echo "setup: installing surefoot[plot,power] and the learners of examples/rl"
	@$(VENV)-rl/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  -r examples/rl/requirements.txt -e '.[plot,power]' pytest hypothesis
	@touch $@

soak: $(VENV)/.test  ## crash studies and workers hundreds of times and check that nothing is lost (ARGS='--kills 50')
	@echo "soak: kill -9 and power cuts during studies and a sweep, seed $(SEED)"
	$(BIN)/python -m tests.soak --seed $(SEED) $(ARGS)

# The tool has an environment of its own, which is thrown away: it is no part of ours.
mutants: $(VENV)/.test  ## make mistakes in the safety code and list those that no test notices (ARGS='audit --mutants 9')
	@set -eu; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	"$(PYTHON)" -m venv "$$dir"; \
	"$$dir/bin/python" -m pip install --quiet --disable-pip-version-check 'cosmic-ray>=8.4,<9'; \
	"$$dir/bin/python" tests/mutants.py --python "$(CURDIR)/$(BIN)/python" --seed $(SEED) $(ARGS)

check: $(VENV)/.dev  ## lint, formatting, types, import direction, docs
	@echo "check: lint"
	$(BIN)/ruff check .
	@echo "check: formatting"
	$(BIN)/ruff format --check .
	@echo "check: types"
	$(BIN)/mypy
	@echo "check: import direction"
	$(BIN)/lint-imports
	@echo "check: docs"
# Not --quiet: it drops the warnings before --strict can count them, and a broken link passes.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

format: $(VENV)/.dev  ## rewrite the sources in the house format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(VENV)/.test  ## measure against floors and aims, about twenty minutes (ARGS=bench_plan for a part)
	$(BIN)/python -m benchmarks $(ARGS)

# Simulators that others wrote, in an environment of their own; what they give is recorded in cases/ and docs/images.
cases: cases/.env/.made  ## run the case studies on other people's simulators, a few minutes each (ARGS=reactor for one)
	OPENBLAS_NUM_THREADS=1 cases/.env/bin/python -W ignore -m cases $(ARGS)

cases/.env/.made: pyproject.toml cases/requirements.txt cases/simulators.txt
	@test -x cases/.env/bin/python || { echo "setup: creating cases/.env with $(PYTHON)"; "$(PYTHON)" -m venv cases/.env; }
	@echo "setup: installing the simulators of cases/, a gigabyte or so"
	@cases/.env/bin/python -m pip install --quiet --disable-pip-version-check -r cases/requirements.txt -e .
	@cases/.env/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r cases/simulators.txt
	@touch $@

# A clean environment in a directory that is thrown away; names and versions only, no addresses.
lock:  ## resolve the newest allowed versions into constraints.txt
	@echo "lock: resolving surefoot[dev] in a throw-away environment"
	@set -eu; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	"$(PYTHON)" -m venv "$$dir/venv"; \
	"$$dir/venv/bin/python" -m pip install --quiet --disable-pip-version-check '.[dev]'; \
	{ echo "# Exact versions behind '.[dev]'. Regenerate with: make lock"; \
	  "$$dir/venv/bin/python" -m pip freeze --exclude surefoot; } > "$$dir/constraints.txt"; \
	if tail -n +2 "$$dir/constraints.txt" | grep -vE '^[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+$$'; then \
	  echo "lock: the lines above are not NAME==VERSION; constraints.txt is unchanged" >&2; exit 1; fi; \
	cp "$$dir/constraints.txt" constraints.txt
	@echo "lock: wrote constraints.txt"

clean:  ## remove .venv, build output and caches
	rm -rf $(VENV) $(VENV)-rl benchmarks/.envs cases/.env build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
