# make install | install-train | native | check | unit | test | soak | soak-sample | sanitize | frameworks | conformance | e2e | cluster | cluster-install | cluster-test | cluster-down | demo | lint | bench | docs | kube | helm | s3 | clients | release | lock
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SOAK_SAMPLE ?= test_durability
# Which cluster, as several can run; which of its stories.
NAME    ?= default
STORIES ?= test_
# Tests wait for processes more than they compute.
JOBS   ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')

# Where Python keeps no bytecode, as in many containers, each process compiles Lockstep anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-train native check unit test soak soak-sample sanitize gpu frameworks conformance e2e cluster cluster-programs cluster-install cluster-down cluster-test demo lint format bench docs kube helm s3 prometheus clients kfp lock manifests release clean

install: $(VENV)/.installed

# A torch that the chosen Python already has is used: the environment then sees its packages.
$(VENV)/.installed: requirements.lock pyproject.toml
	@echo "install: Lockstep and its tools into $(VENV)"
	@if [ ! -x $(BIN)/python ]; then \
	  if $(PYTHON) -c 'import torch, sklearn' 2>/dev/null; then \
	    $(PYTHON) -m venv --system-site-packages $(VENV); \
	  else $(PYTHON) -m venv $(VENV); fi; fi
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

install-train: install
	@$(BIN)/python -c 'import torch, sklearn' 2>/dev/null && echo "install: torch is there" || { \
	  echo "install: torch and scikit-learn; about 5 GB and two minutes, once"; \
	  $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --require-hashes -r requirements-train.lock \
	    | grep --line-buffered -E '^(Downloading|Installing|Successfully)' | cut -c1-100; \
	  $(BIN)/python -c 'import torch, sklearn'; }

# The stub drivers that tests load; they need a C compiler, and tests of GPUs are skipped without.
native:
	@$(MAKE) --silent -C native

# For daily work, a minute: lint of what differs from main, and the unit tests that use it.
check: install
	@$(BIN)/python -m tools.check

unit: install-train
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --durations 10 -m "not soak" tests/unit

# What needs programs that this machine lacks is skipped; the end of the output says what it was.
# A few tests that fail beside others run once more, one at a time, and are named.
test: install-train
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --durations 10 -m "not soak and not cluster" \
	  || { [ $$? = 1 ] && $(BIN)/python -m tools.alone; }

# Every call of every crash story, long runs, and random search with new seeds: hours.
soak: install-train
	@HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --durations 10

# A few of the long runs, for the gate: acknowledged writes, and the rights that each part uses.
soak-sample: install-train
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --durations 10 -m soak -k "$(SOAK_SAMPLE)"

# The front and the stub drivers with the compiler's sanitizers, under their own tests; those refuse RTLD_DEEPBIND.
sanitize: install
	@$(MAKE) --silent -C native sanitized
	@LOCKSTEP_NATIVE_BUILD=build/sanitized ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 \
	  LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" \
	  $(BIN)/python -m pytest -n 0 -m "not soak" -k "not deepbind" tests/integration/devices/test_front.py \
	  tests/integration/devices/test_front_cases.py tests/integration/devices/test_random_programs.py \
	  tests/integration/devices/test_share_time.py tests/integration/crashes/test_sharing.py

# What needs a GPU, on a machine that has one: 24 GB of its memory and of the host's.
gpu: install-train
	@$(BIN)/python -m pytest -n 0 -m gpu

# Large frameworks, each in an environment of its own (6 GB, ten minutes at first), really train.
frameworks: install
	@-$(PYTHON) tools/frameworks/build.py
	@$(BIN)/python -m pytest -n 1 --dist loadgroup -m soak tests/integration/jobs/test_frameworks.py tests/integration/jobs/test_trainers.py

# Compares the embedded server with kube-apiserver; renews the table in docs/conformance.md.
conformance: install
	@$(BIN)/python -m tests.support.conformance

# Kubernetes' own tests of the API machinery, against the embedded server; needs Go and `make kube`.
e2e: install
	@$(BIN)/python -m tools.e2e.run

# A real Kubernetes of three nodes on this machine; needs root and Go. docs/try-a-cluster.md.
cluster: cluster-programs
	@$(BIN)/python -m tools.cluster --name $(NAME) up

# Twenty minutes at first; programs and images stay in the user's cache.
cluster-programs: install helm
	@$(BIN)/python -m tools.cluster.programs
	@$(BIN)/python -m tools.cluster.images

# Builds the image from the sources and installs the chart, or upgrades it.
cluster-install: install
	@$(BIN)/python -m tools.cluster --name $(NAME) install

cluster-down: install
	@$(BIN)/python -m tools.cluster --name $(NAME) down

# The stories of tests/cluster, on a cluster of their own: all, or those that STORIES names.
cluster-test: cluster-programs
	@$(BIN)/python -m pytest -n 0 --durations 10 -m cluster -k "$(STORIES)" tests/cluster

demo: install-train
	@$(BIN)/python examples/demo/demo.py

lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tools.lint

format: install
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .

bench: install
	@$(BIN)/python -m bench --all

docs: install
	@$(BIN)/mkdocs build --strict

# Needs Go; the programs land in the user's cache, where tests look for them.
kube:
	@$(PYTHON) tools/kube/build.py

# Needs Go, two minutes at first: what renders the chart, and tests of it.
helm:
	@$(PYTHON) tools/helm/build.py

# Needs Go, two minutes at first: the S3 server that tests of datasets read from.
s3:
	@$(PYTHON) -m tools.s3.build

# Needs Go, two minutes at first: Prometheus and promtool, which tests scrape and check rules with.
prometheus:
	@$(PYTHON) -m tools.prometheus.build

# Needs Go, two minutes at first: typed clients in Go, as tests of the API server use them.
clients:
	@$(PYTHON) -m tools.clients.build

# An environment with the SDK of Kubeflow Pipelines, which tests of pipelines run components in.
kfp:
	@$(PYTHON) -m tools.kfp.build

# What deploy/ holds of the program: CRDs, permissions, and the manifest rendered from the chart.
manifests: install
	@$(BIN)/python -m tools.deploy.generate

# Numbers a version, writes its changelog from newsfragments/, commits and tags: VERSION=0.3.0
release: install
	@$(BIN)/python -m tools.release $(VERSION)

# Needs uv; rewrites all lock files to the newest versions that fit.
lock:
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-annotate --no-header -q \
	  pyproject.toml --group dev --extra gpu --extra agent --extra data --extra serve --extra insight --extra notebooks \
	  -o requirements.lock
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-annotate --no-header -q \
	  pyproject.toml --extra gpu --extra agent --extra data --extra insight --extra notebooks \
	  -c requirements.lock -o requirements-run.lock
	echo hatchling | uv pip compile --universal --generate-hashes --python-version 3.11 --no-annotate --no-header -q \
	  - -c requirements.lock -o requirements-build.lock
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-annotate --no-header -q \
	  pyproject.toml --extra train -c requirements.lock -o requirements-train.lock

clean:
	rm -rf $(VENV) build dist site
