# Drydock's chores. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
# The go command with the flags of the tests, so that nothing is compiled twice.
TESTGO := GO='$(GO)' test/go
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(shell git rev-parse HEAD 2>/dev/null)
program = $(shell $(TESTGO) run ./internal/lab/programs/build $(1) | tail -n 1 | awk '{print $$NF}')

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: needs ## A node breaks, Drydock repairs it: the main job on a whole cluster on this machine; PROVIDER=http: through a small program of your own
	@echo "Compiling Drydock and the demo; the first time this takes a few minutes, and then come the programs of the cluster."
	@$(TESTGO) run ./internal/lab/programs/build -fetch demo & test/compile ./test/demo ./cmd/drydock ./cmd/kubectl-drydock; wait
	@DRYDOCK_OWN_PROGRAMS=1 $(TESTGO) run ./test/demo

.PHONY: cluster
cluster: needs ## Three nodes with real kubelets on this machine, Drydock enforcing over SSH, and faults to try; root
	@$(TESTGO) run ./internal/lab/programs/build -fetch cluster & test/compile ./test/cluster ./cmd/drydock ./cmd/kubectl-drydock; wait
	@$(TESTGO) build -o bin/lab-cluster ./test/cluster && exec bin/lab-cluster

.PHONY: cluster-test
cluster-test: needs ## Real reboots, drains and hangs on that cluster; root. KUBECONFIG=FILE VALUES=FILE: what needs no root, on a cluster of your own
	$(OWN) DRYDOCK_CLUSTER=1 DRYDOCK_NO_SKIP=1 $(TESTGO) test -timeout 2h -count=1 -v ./test/cluster
# Only a KUBECONFIG of the command line is meant, not the one in the environment.
OWN = $(if $(findstring command,$(origin KUBECONFIG)),DRYDOCK_CLUSTER_KUBECONFIG='$(abspath $(KUBECONFIG))' DRYDOCK_CLUSTER_VALUES='$(and $(VALUES),$(abspath $(VALUES)))')

.PHONY: quick
quick: ## At every save: the core, the engine, the receiver, the webhook, the configuration, the providers, and what was changed; no lab, no race detector
	DRYDOCK_QUICK=1 GOGC=400 $(TESTGO) test -short -vet=off -skip "$$(test/packages largest)" -p 8 -parallel 32 $$(test/packages quick)

.PHONY: test
test: needs ## Before each push: all packages without a lab, the rules, and the main job with one crash (minutes)
	@test/run test

.PHONY: e2e
e2e: needs ## The real program in labs: API server, hosts, mesh, neighbours, crashes, the page; beside them the race detector and vet (half an hour)
	@test/run e2e

.PHONY: check
check: test e2e lint verify ## Everything that a change must pass

.PHONY: stalled
stalled: needs ## The tests without a lab, while their programs are stopped for seconds again and again: what passes by being fast fails
	@STALLED=1 test/run test unit

.PHONY: soak
soak: needs ## What make test and make e2e sample, whole, with seeds that vary: a hundred times the histories, every crash point
	DRYDOCK_SOAK=1 $(TESTGO) test -race -timeout 3h ./remediations/...
	DRYDOCK_SOAK=1 $(TESTGO) test -timeout 3h -p 1 ./test/backtest ./test/connect ./test/crash ./test/doors ./test/hosts ./test/clusterapi ./test/karpenter ./test/machineapi
	DRYDOCK_SOAK=1 $(TESTGO) test -timeout 3h -run TestAFaultLeavesOne ./test/e2e
	DRYDOCK_SOAK=1 $(TESTGO) test -timeout 3h ./internal/release

.PHONY: month
month: needs ## A month at speed that the real Drydock lives through, against its backtest: four minutes on a machine that is not busy
	DRYDOCK_MONTH=1 DRYDOCK_NO_SKIP=1 $(TESTGO) test -timeout 20m -count=1 -v -run TestAMonthAtSpeed ./test/backtest

.PHONY: oldest
oldest: needs ## The whole chain, the admission policy and an install with Helm on the oldest Kubernetes that the chart takes
	DRYDOCK_KUBERNETES=1.30 $(TESTGO) test -timeout 1h -count=1 -p 1 \
	  -run 'TestKilledAfterTheCallBeforeTheAnswer|TestPolicyAndCoreSayTheSame|TestInstallUpgradeUninstall' ./test/e2e ./test/admission ./test/install

.PHONY: nightly
nightly: ## All there is: test, stalled, oldest, soak, mutants, fuzz, bench; a night
	@$(MAKE) --keep-going check month stalled oldest soak mutants fuzz bench

.PHONY: mutants
mutants: needs ## Break the safety core in small ways, and see each noticed by a test: MUTANTS=-near for the core without its loops, minutes; hours for all
	@$(TESTGO) run ./test/mutants $(MUTANTS)

.PHONY: bench
bench: needs ## Speed and scale on a whole cluster: 100, 1,000 and 5,000 nodes, one table (30 min)
	@$(TESTGO) run ./test/bench $(BENCH)

.PHONY: screenshots
screenshots: needs ## Make the pictures of the page in docs/images again, in a real Chromium
	@mkdir -p docs/images
	DRYDOCK_NO_SKIP=1 DRYDOCK_SCREENSHOTS='$(CURDIR)/docs/images' $(TESTGO) test -count=1 -run 'TestThePagesAreAccessible|TestScreenshotsOfOtherFleets' ./test/ui

.PHONY: fuzz
fuzz: ## Each fuzz target for a minute
	@test/fuzz

.PHONY: build
build: ## bin/drydock, bin/drydock-agent, bin/drydock-backtest and bin/kubectl-drydock, static
	CGO_ENABLED=0 $(GO) build -trimpath -tags nomsgpack -ldflags '$(LDFLAGS)' -o bin/drydock ./cmd/drydock
	CGO_ENABLED=0 $(GO) build -trimpath -tags nomsgpack -ldflags '$(LDFLAGS)' -o bin/drydock-agent ./cmd/drydock-agent
	CGO_ENABLED=0 $(GO) build -trimpath -tags nomsgpack -o bin/drydock-backtest ./cmd/drydock-backtest
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/kubectl-drydock ./cmd/kubectl-drydock
	ln -sf kubectl-drydock bin/kubectl_complete-drydock

IMAGE ?= drydock
BASE ?= scratch

.PHONY: image
image: ## A container image IMAGE:VERSION with docker or podman, or bin/image.tar and bin/image-agent.tar with ko
	@for builder in docker podman; do \
	  command -v $$builder >/dev/null || continue; \
	  if ! $$builder info >/dev/null 2>&1; then echo "$$builder is there, but does not answer ($$builder info)" >&2; continue; fi; \
	  exec $$builder build --build-arg BASE='$(BASE)' $(if $(GO_IMAGE),--build-arg GO_IMAGE='$(GO_IMAGE)') --build-arg LDFLAGS='$(LDFLAGS)' -t '$(IMAGE):$(VERSION)' .; \
	done; \
	if command -v ko >/dev/null; then \
	  export LDFLAGS='$(LDFLAGS)'; \
	  KO_DOCKER_REPO='$(IMAGE)' ko build --bare --push=false --tags '$(VERSION)' --tarball bin/image.tar ./cmd/drydock || exit 1; \
	  KO_DOCKER_REPO='$(IMAGE)-agent' exec ko build --bare --push=false --tags '$(VERSION)' --tarball bin/image-agent.tar ./cmd/drydock-agent; \
	fi; \
	echo "make image needs docker or podman that answers, or ko; make build makes the binary alone" >&2; exit 1

.PHONY: release
release: ## A release of the tag VERSION in the folder OUT, signed with KEY: make release VERSION=v1.2.3 URL=https://… (docs/contributing/release.md)
	$(TESTGO) run ./internal/release -version '$(VERSION)' -url '$(URL)' -out '$(or $(OUT),dist)' $(if $(KEY),-key '$(KEY)') $(RELEASE)

.PHONY: lab
lab: needs ## Build the lab's programs into the cache folder
	@$(TESTGO) run ./internal/lab/programs/build lab

.PHONY: lint
lint: needs ## golangci-lint
	@$(call program,golangci-lint) run ./...

.PHONY: generate
generate: ## Write again what is generated: docs/configuration.md, docs/metrics.md, deploy/, the README's picture of the terminal, the chart's rules and README.md
	$(TESTGO) run ./internal/picture
	$(TESTGO) run ./internal/config/gendocs
	$(TESTGO) run ./internal/reference
	$(TESTGO) run ./internal/lab/render

.PHONY: verify
verify: ## Fail where generated files, formatting or go.mod differ from what is committed
	@test/verify

.PHONY: needs
needs:
	@test/needs
