# Everything a person types here. `make` alone prints this list.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests run side by side, a file at a time, those that take long first (tests/conftest.py); their processes must agree on the order of sets to agree on the tests' names.
TESTERS ?= 3
SIDE_BY_SIDE = -n $(TESTERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0
HASHSEED ?= $(shell echo $$RANDOM)
# Where there is no JDK, Spark decodes without it.
JAR = $(BIN)/python -m stele.spark.engines.jvm.build --if-stale --if-possible
# Without bytecode on disk each of the hundreds of processes that tests start compiles all it imports, for seconds.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help demo test test-servers run-server-tests run-lakehouse-tests build-jar test-long test-all coverage serve check format docs site lock audit bench jar clean

help: ## Print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

demo: $(VENV)/demo.stamp ## Registry on SQLite + the Spark pipeline on real data (DEMO_EXIT=1: stop the server at the end)
	@$(JAR)
	@$(BIN)/python examples/flights/demo.py

test: $(VENV)/suites.stamp $(VENV)/tools.stamp $(VENV)/spark.jsa build-jar ## The tests that need only Python, a JDK and PyPI
	PYTHONHASHSEED=$(HASHSEED) $(BIN)/python -m pytest -q -m "not servers" $(SIDE_BY_SIDE)

test-servers: $(VENV)/tools.stamp $(VENV)/spark.jsa build-jar ## The tests against real servers, brokers, foreign clients and in a browser
	@$(MAKE) --no-print-directory -j 2 --output-sync=line run-server-tests run-lakehouse-tests

# Servers mostly wait, lake houses compute: side by side, two processes of each keep two cores busy.
run-server-tests run-lakehouse-tests: TESTERS = 2
run-server-tests:
	PYTHONHASHSEED=$(HASHSEED) $(BIN)/python -m pytest -q -m servers --ignore tests/spark/lakehouse $(SIDE_BY_SIDE)

run-lakehouse-tests: $(VENV)/spark41/spark.jsa
	PYTHONHASHSEED=$(HASHSEED) $(VENV)/spark41/bin/python -m pytest -q tests/spark/lakehouse $(SIDE_BY_SIDE)

build-jar: $(VENV)/dev.stamp
	@$(JAR)

test-long: $(VENV)/suites.stamp $(VENV)/tools.stamp $(VENV)/spark.jsa $(VENV)/spark41/spark.jsa build-jar ## All tests in their long form: hours, for releases
	PYTHONHASHSEED=$(HASHSEED) HYPOTHESIS_PROFILE=long DIALECT_WALKS=20 $(BIN)/python -m pytest -q -m "not servers" $(SIDE_BY_SIDE)
	HYPOTHESIS_PROFILE=long STELE_LINEARIZABILITY_SECONDS=600 $(BIN)/python -m pytest -q -m servers --ignore tests/spark/lakehouse
	PYTHONHASHSEED=$(HASHSEED) STELE_CHAOS_BATCHES=200 $(VENV)/spark41/bin/python -m pytest -q $(SIDE_BY_SIDE) tests/spark/lakehouse
	$(BIN)/python fuzz/run.py --all --seconds 600

test-all: $(VENV)/dev.stamp $(VENV)/suites.stamp $(VENV)/tools.stamp ## The tests of `make test` on Python 3.11, 3.12 and 3.13, which must be on the PATH
	$(BIN)/nox -s tests

coverage: $(VENV)/dev.stamp $(VENV)/suites.stamp $(VENV)/tools.stamp ## How much of the source the tests without Spark run (Python 3.12); writes docs/reference/coverage.md
	$(BIN)/nox -s coverage

serve: $(VENV)/demo.stamp ## Just the server on port 8081, its log in ./.stele/
	$(BIN)/stele serve

check: $(VENV)/dev.stamp $(VENV)/suites.stamp ## Format, lint, types, docs drift, prose
	$(BIN)/ruff format --check src tests bench examples tools
	$(BIN)/ruff check src tests bench examples tools
	$(BIN)/mypy
	$(BIN)/python -m tools.reference --check
	$(BIN)/python -m tools.conformance --check
	$(BIN)/python -m tools.prose

format: $(VENV)/dev.stamp ## Rewrite sources in the house format
	$(BIN)/ruff check --fix -q src tests bench examples tools
	$(BIN)/ruff format src tests bench examples tools

docs: $(VENV)/dev.stamp $(VENV)/suites.stamp ## Write the generated reference pages again
	$(BIN)/python -m tools.reference
	$(BIN)/python -m tools.conformance
	$(BIN)/python -m tools.history_pictures

site: $(VENV)/dev.stamp $(VENV)/site.stamp ## Build the documentation site into build/site/; a broken link is an error
	$(BIN)/python -m tools.site build/site --generator $(CURDIR)/$(VENV)/site/bin/zensical

lock: $(VENV)/uv.stamp ## Pin every dependency again
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    --upgrade pyproject.toml requirements/build.in --extra demo -c requirements/constraints.in -o requirements/demo.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    pyproject.toml requirements/build.in --extra dev -c requirements/demo.lock -o requirements/dev.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    pyproject.toml requirements/build.in --extra postgres --extra mysql --extra kafka --extra mqtt --extra nats \
	    --extra protobuf --extra xsd --extra fast --extra otel --extra access \
	    -c requirements/dev.lock -o requirements/container.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    requirements/suites.in -c requirements/dev.lock -o requirements/suites.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    --upgrade pyproject.toml requirements/build.in requirements/spark41.in --extra spark --extra kafka \
	    -o requirements/spark41.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    --upgrade requirements/tools.in -o requirements/tools.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    --upgrade requirements/site.in -o requirements/site.lock

AUDITED = $(addprefix -r requirements/,$(addsuffix .lock,bootstrap tools demo dev container site spark41 suites))
IGNORED = $(shell sed -n 's/^\([A-Z][A-Za-z0-9-]*\).*/--ignore-vuln \1/p' requirements/audit-ignored.txt)

audit: $(VENV)/dev.stamp ## Ask a database of advisories about every pinned dependency (needs its network)
	$(BIN)/pip-audit --strict --disable-pip --require-hashes --progress-spinner off $(IGNORED) $(AUDITED)


bench: $(VENV)/dev.stamp ## Side-by-side benchmarks; results go to bench/results/
	@$(JAR)
	$(BIN)/python -m bench.run

jar: $(VENV)/demo.stamp ## The jar of the Spark engine `jvm`; a wheel built after this holds it
	@$(BIN)/python -m stele.spark.engines.jvm.build

clean: ## Remove the environment and everything built or stored here
	rm -rf $(VENV) .stele dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/uv.stamp: requirements/bootstrap.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
	@touch $@

$(VENV)/demo.stamp: $(VENV)/uv.stamp requirements/demo.lock pyproject.toml
	@echo "Installing what the registry and its pipeline need (once; a minute or two) …"
	@$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/demo.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/uv.stamp requirements/dev.lock pyproject.toml
	@echo "Installing what the tests need (once; a minute or two) …"
	@$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/demo.stamp

# pip asks a source distribution for its metadata before it keeps it, hence the build backend of jsonschema.
$(VENV)/suites.stamp: $(VENV)/dev.stamp requirements/suites.lock
	@echo "Fetching the official JSON Schema test suite (once) …"
	@rm -rf $(VENV)/suites
	@$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/suites.lock
	@$(BIN)/python -m pip download -q --disable-pip-version-check --no-deps --no-build-isolation \
	    --no-binary jsonschema --require-hashes -r requirements/suites.lock -d $(VENV)/suites
	@rm -f $(VENV)/suites/*.whl
	@touch $@

$(VENV)/tools.stamp: $(VENV)/uv.stamp requirements/tools.lock
	@echo "Installing the foreign tools the interop tests drive (once) …"
	@rm -rf $(VENV)/tools
	@$(BIN)/uv venv -q --python $(BIN)/python $(VENV)/tools
	@$(BIN)/uv pip install -q --python $(VENV)/tools/bin/python --require-hashes -r requirements/tools.lock
	@touch $@

$(VENV)/site.stamp: $(VENV)/uv.stamp requirements/site.lock
	@echo "Installing the generator of the documentation site (once) …"
	@rm -rf $(VENV)/site
	@$(BIN)/uv venv -q --python $(BIN)/python $(VENV)/site
	@$(BIN)/uv pip install -q --python $(VENV)/site/bin/python --require-hashes -r requirements/site.lock
	@touch $@

$(VENV)/spark41.stamp: $(VENV)/uv.stamp requirements/spark41.lock pyproject.toml
	@echo "Installing the Spark line that Maven Central has connectors for (once) …"
	@rm -rf $(VENV)/spark41
	@$(BIN)/uv venv -q --python $(BIN)/python $(VENV)/spark41
	@$(BIN)/uv pip install -q --python $(VENV)/spark41/bin/python --require-hashes -r requirements/spark41.lock
	@$(BIN)/uv pip install -q --python $(VENV)/spark41/bin/python --no-deps --no-build-isolation -e .
	@touch $@

# Tests start Java for Spark often: with an archive of the classes it loads that costs half the time.
$(VENV)/spark.jsa: $(VENV)/dev.stamp tests/support/spark_jvm.py tests/support/java_options.py
	@echo "Recording the classes that Spark loads (once) …"
	@$(BIN)/python -m tests.support.spark_jvm

$(VENV)/spark41/spark.jsa: $(VENV)/spark41.stamp tests/support/spark_jvm.py tests/support/java_options.py
	@echo "Recording the classes that the other Spark line loads (once) …"
	@$(VENV)/spark41/bin/python -m tests.support.spark_jvm
