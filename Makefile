# Everything a newcomer needs; each target sets up what it uses.

CARGO ?= cargo
PYTHON ?= python3
VENV := .venv
BOOK_VENV := .venv-docs
# What `make demo` leaves out, and packages have: tables out of PostgreSQL, and tables in stores that speak S3.
FEATURES := tacit-cli/postgres,tacit-cli/s3,tacit-cli/adbc,tacit-py/postgres,tacit-py/s3
# The crates with heavy tests, which are linted too.
LONG := $(shell grep -l '^long-tests' crates/*/Cargo.toml | sed 's|crates/\(.*\)/Cargo.toml|\1/long-tests|' | paste -sd,)

.PHONY: all demo dist dist-macos dist-windows audit test test-long bench constant-time fuzz miri asan undefined work work-update embedded lint docs book \
  venv clean

all:
	$(CARGO) build --release

# Two `tacit psi` processes on this machine intersect two files over TLS, checked against a plain join; then one
# serves by a policy, the other asks, and both verify the signed records. Built without optimisation across crates,
# which takes half the time.
demo:
	$(CARGO) build --profile demo -p tacit-cli
	target/demo/tacit demo

# The command as a static binary, tried in an empty root, with unit and container file: target/dist.
dist:
	scripts/dist.sh

# The command for Windows, built across by mingw: beside it, in target/dist.
dist-windows:
	scripts/dist_windows.sh

# The command for macOS, built across by Zig: beside it too. Nothing here can run it.
dist-macos:
	scripts/dist_macos.sh

# Licences, origins and withdrawn releases of all dependencies, as the registry knows them now; known weaknesses
# where `cargo audit` is installed, which fetches its list.
audit:
	$(PYTHON) scripts/check_licences.py --fresh
	@if command -v cargo-audit >/dev/null; then $(CARGO) audit; \
	else echo "no cargo-audit here (cargo install cargo-audit): known weaknesses are not checked"; fi

# Every test: the Rust workspace, then the Python checks. Ends with `N passed, N failed`.
test: venv
	$(PYTHON) scripts/run_tests.py

# The statistical and the heavy ones as well: minutes to hours.
test-long: venv
	$(PYTHON) scripts/run_tests.py --long

# The figures of the README, as JSON lines; EXTRA='--repeat 9' and the like are passed on.
bench:
	$(CARGO) build --release -p tacit-cli
	scripts/bench.sh $(EXTRA)

# Whether the time of what handles secrets in ROTed depends on them; a quiet machine, half a minute.
constant-time:
	$(CARGO) run --release -p tacit-roted --example constant_time

# Tests that the interpreter of Rust's memory model can run: minutes; a nightly compiler, else it is left out.
miri:
	scripts/memory.sh miri

# The unit tests of tacit-crypto by AddressSanitizer, with all kernels that this processor has; as above.
asan:
	scripts/memory.sh asan

# Branches and indexes on secrets, found by valgrind, with portable kernels and with those for AVX2.
undefined:
	$(PYTHON) tools/valgrind/run.py undefined

# Instructions of the main jobs against benches/work.json, in which `make work-update` records them.
work:
	$(PYTHON) tools/valgrind/run.py work

work-update:
	$(PYTHON) tools/valgrind/run.py work --update

# Fuzzing by libFuzzer, on a nightly compiler: every target for SECONDS, so many at once as there are cores; what
# came of it is in fuzz/out; an error if there is an input that failed. tools/fuzz.sh TARGET SECONDS fuzzes one.
SECONDS ?= 60
fuzz:
	tools/fuzz.sh all $(SECONDS)

# ROTed without the standard library for ARM: says of each target whether it builds or its toolchain is missing.
embedded:
	tools/embedded/check.sh

# Everything with every feature; then the one crate that holds other files without them.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features $(FEATURES),$(LONG) -- -D warnings
	$(CARGO) clippy -p tacit-data --all-targets -- -D warnings

# Rust's documentation (target/doc) and the book (target/book).
docs: book
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --workspace --no-deps --features $(FEATURES)
	cp tools/book/rust.html target/doc/index.html

# The book alone: links and anchors that lead nowhere, and whatever a page would load from elsewhere, are errors.
book:
	@scripts/venv.sh $(BOOK_VENV) $(PYTHON) mkdocs -r tools/book/requirements.txt
	@test -x $(BOOK_VENV)/bin/mkdocs || { echo "error: the book needs tools/book/requirements.txt" >&2; exit 1; }
	NO_MKDOCS_2_WARNING=1 $(BOOK_VENV)/bin/mkdocs build
	$(PYTHON) tools/book/check.py target/book

# A Python with numpy for the checks of the .npz files; without it they say so and run in Rust alone.
venv:
	@scripts/venv.sh $(VENV) $(PYTHON)

clean:
	$(CARGO) clean
	rm -rf $(VENV) $(BOOK_VENV) demo-data
