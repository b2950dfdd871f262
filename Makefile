# Everything a developer runs. Each target makes what it needs: the virtual environments are redone when they are out of date.

PYTHON ?= python3
BIN := .venv/bin
VENV := .venv/.installed
# The oldest toolchain that pyproject.toml allows at run time: older protobuf and grpcio cannot read what a newer one generates.
GRPC_TOOLS := 1.72.2
PROTO_VENV := .venv-proto/.installed-$(GRPC_TOOLS)
BASELINE := protos/baseline.binpb

.PHONY: install demo test check bench faults proto baseline format clean

install: $(VENV) $(PROTO_VENV)

# Trains an agent through a server that is killed half-way, and compares what was logged with what the files hold.
demo: $(VENV)
	$(BIN)/python examples/demo.py

test: $(VENV)
	$(BIN)/python -m pytest

# The fault tests at their full size (minutes).
faults: $(VENV)
	FAULTS_FULL=1 $(BIN)/python -m pytest tests/faults

check: $(VENV) $(PROTO_VENV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint protos
	$(BIN)/buf breaking protos --against $(BASELINE)
	@generated=$$(mktemp -d) && trap 'rm -rf "$$generated"' EXIT \
	    && protos/generate.sh .venv-proto/bin/python "$$generated" \
	    && diff -r -x __init__.py -x __pycache__ "$$generated/logger_service/v1" logger_service/v1 \
	    && echo "generated code: up to date" \
	    || { echo "logger_service/v1 is not what the protos generate: run 'make proto'" >&2; exit 1; }

# Side by side with TorchRL's loggers (minutes); BENCH_ARGS=--quick for a look.
bench: $(VENV)
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

# Regenerates logger_service/v1.
proto: $(PROTO_VENV)
	rm -f logger_service/v1/*_pb2*
	protos/generate.sh .venv-proto/bin/python .

# Renews what `buf breaking` compares with. Only on a release; before 0.1.0 with a line in CHANGELOG.md.
baseline: $(VENV)
	$(BIN)/buf build protos --exclude-source-info -o $(BASELINE)

format: $(VENV)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf .venv .venv-proto build dist demo-data

# torch goes first and pinned, or pip may take a build of several GB with it.
$(VENV): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

$(PROTO_VENV):
	rm -rf .venv-proto
	$(PYTHON) -m venv .venv-proto
	.venv-proto/bin/pip install --quiet --disable-pip-version-check grpcio-tools==$(GRPC_TOOLS) 'setuptools<81'
	touch $@
