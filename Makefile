# Two commands do everything on a fresh machine with Go and make: make demo, make test.
GO ?= go
BIN := bin/assay

# The same flags for all, so that what one command compiles the next one takes from the cache.
export GOFLAGS := $(GOFLAGS) -trimpath

.PHONY: build demo test lint bench fuzz interop e2e-model clean

build:
	$(GO) build -o $(BIN) ./cmd/assay

demo: build
	$(BIN) demo

test:
	$(GO) test $(TESTFLAGS) ./...

lint:
	golangci-lint run

# Ratios of ours against a raw loop in the same run; see docs in each bench_test.go.
bench:
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 30m ./...

# Each fuzz target for FUZZTIME, one after the other.
FUZZTIME ?= 20s
fuzz:
	@for p in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$p || exit 1; \
		done; \
	done

# Archives, charsets and dates beside reference libraries of Python, and searches through a real SearXNG; both are
# installed into .interop.
interop: build
	.ci/interop $(BIN)

# A real small model on loopback labels pairs of the published sample and searches for its claims step by step; server
# and model are installed into .e2e.
e2e-model: build
	python3 .ci/e2e_model.py $(BIN)
	python3 .ci/e2e_agent.py $(BIN)

clean:
	rm -rf bin
