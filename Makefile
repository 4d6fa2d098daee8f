# Everything a newcomer and CI need; `make help` lists it. State goes to .venv and to caches outside the checkout only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/trainmaster-tests
# With FULL=1 a tier runs everything, else its fixed slice.
SLICE = $(if $(filter 1,$(FULL)),$(1),$(1) and not full)
# Nothing may be left behind by a run: processes, namespaces, mounts, links, control groups, sockets, files.
PYTEST = $(BIN)/python tools/counted.py $(BIN)/python -m pytest
PARALLEL ?= 2
FAST = not frameworks and not kubernetes and not faults
PINS = --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

.DEFAULT_GOAL := help
.PHONY: help run test test-frameworks test-kubernetes test-faults lint bench docs lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.run ## train the first example on the embedded cluster, here, now
	@$(BIN)/trainmaster status > /dev/null 2>&1 && up=1 || up=0; \
	trap : INT; \
	$(BIN)/trainmaster run examples/tfjob/dist-mnist.yaml; code=$$?; \
	if [ $$up = 0 ]; then $(BIN)/trainmaster down; fi; \
	exit $$code

test: $(VENV)/.dev ## the fast tier: everything a laptop can run in under 10 minutes
	$(PYTEST) -n $(PARALLEL) -m "$(call SLICE,$(FAST) and not machine)" tests
	$(PYTEST) -m "$(call SLICE,$(FAST) and machine)" tests

test-frameworks: $(VENV)/.dev ## real frameworks train
	TRAINMASTER_ENVS=$(CACHE)/envs $(PYTEST) -m "$(call SLICE,frameworks)" tests

test-kubernetes: $(VENV)/.dev ## the real kube-apiserver, kubectl and conformance suite (needs Go; builds them once)
	$(PYTEST) -m "$(call SLICE,kubernetes)" tests

test-faults: $(VENV)/.dev ## long fault runs, bounded in time
	$(PYTEST) -n $(PARALLEL) -m "$(call SLICE,faults and not machine)" tests
	$(PYTEST) -m "$(call SLICE,faults and machine)" tests

lint: $(VENV)/.dev ## ruff and mypy --strict
	$(BIN)/ruff check
	$(BIN)/mypy

bench: $(VENV)/.dev ## benchmarks: a peer beside us, ratios out
	$(BIN)/python benchmarks/apiserver/scaling.py
	$(BIN)/python benchmarks/apiserver/waiting.py
	$(BIN)/python benchmarks/apiserver/compare.py
	$(BIN)/python benchmarks/apiserver/access.py
	$(BIN)/python benchmarks/operator/compare.py
	$(BIN)/python benchmarks/operator/standing.py
	$(BIN)/python benchmarks/scheduler/decide.py
	$(BIN)/python benchmarks/scheduler/compare.py
	$(BIN)/python benchmarks/launch/compare.py
	$(BIN)/python benchmarks/node/compare.py

docs: $(VENV)/.dev ## write the reference from the code, and check the manual
	PYTHONPATH=. $(BIN)/python tools/operator_page.py
	PYTHONPATH=. $(BIN)/python tools/reference.py
	$(PYTEST) -q tests/docs
	@echo "The manual begins at docs/README.md."

lock: $(VENV)/.dev ## pin dependencies anew
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet $(PINS) --group build pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet $(PINS) --group dev -c requirements.lock -o requirements-dev.lock
	for client in tests/conformance/clients/*.in; do \
		$(BIN)/uv pip compile --quiet $(PINS) "$$client" -o "$${client%.in}.lock" || exit; \
	done

clean: ## remove the virtual environment and caches of the checkout
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

# .venv with what runs; .dev with what tests need as well. Both follow the lock files, so that everybody has the same.
$(VENV)/.run: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	|| { echo "Trainmaster needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || { echo "Making .venv"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing Trainmaster and what it needs"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@# As pip does for a package: also where PYTHONDONTWRITEBYTECODE is set, a start takes a third of a second less.
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.lock
	@echo "Installing what the tests need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@
