#!/usr/bin/env bash
# Runs every check and every test, or only the parts that are named: scripts/test.sh [PART…]. docs/testing.md lists
# the parts and their times. As root on Debian it installs missing programs; otherwise it says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/need.sh
. scripts/need.sh

# What needs the programs waits for them in the background, beside what is compiled in the foreground.
foreground=(format words dependencies lints documentation public-api crates build doctests)
background=(setup dashboard programs typescript python manifests observability packages browser)
parts=("${foreground[@]}" "${background[@]}" tests)

# The programs of the packages are also those under test. This profile optimises them and links them fast.
profile=quick
programs=target/packaging/programs
export AGENTCFG_TEST_BINARY="$PWD/$programs/dynamic/agentcfg-server"
export AGENTCFG_TEST_CLI="$PWD/$programs/dynamic/agentcfg"
export AGENTCFG_TEST_EXAMPLES="$PWD/target/debug/examples"
# A run compiles each crate once, for which the files of incremental compilation cost more than they give.
export CARGO_INCREMENTAL=0
# Debian installs these programs outside of PATH.
servers() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true; }
PATH="$PATH:/usr/sbin:$(servers)"

part_format() { cargo fmt --all --check; }

part_words() { scripts/check-words.sh; }

part_dependencies() { scripts/check-dependencies.sh; }

# What is compiled for the tests is checked by clippy in the same pass.
in_workspace() {
    RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/clippy-driver.sh "$@"
}

# The published crates with fewer features: the service without an engine, the model with its schemas and no service, the API
# for an app's own router, and the server without the dashboard. The part `build` checks them with all features, `crates` with
# the default ones.
part_lints() {
    cargo clippy -p agentcfg-core --locked --no-default-features --features engine -- -D warnings
    cargo clippy -p agentcfg-core --locked --no-default-features --features schema -- -D warnings
    cargo clippy -p agentcfg-server --locked --no-default-features -- -D warnings
    cargo clippy -p agentcfg-server --locked --no-default-features --features process -- -D warnings
}

part_documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --all-features; }

part_public-api() { scripts/public-api.sh; }

part_crates() { scripts/package/crates.sh target/packaging/crates; }

# The tests, the benchmarks, and the examples that the tests run.
part_build() { in_workspace cargo test --locked --workspace --all-features --all-targets --no-run; }

part_doctests() { in_workspace cargo test --locked --workspace --all-features --doc; }

# Other programs than the compilers, and the packages of Node.js and Python.
part_setup() {
    need openssl openssl
    need curl curl
    need promtool prometheus
    need jq jq
    need setpriv util-linux
    if ! command -v initdb >/dev/null && [ -z "$(servers)" ]; then
        need pg_ctlcluster postgresql
    fi
    need pgbouncer pgbouncer
    need etcd etcd-server
    need etcdctl etcd-client
    need node nodejs
    need npm npm
    if ! command -v chromium-headless-shell >/dev/null; then
        (need chromium-headless-shell chromium-headless-shell) || need chromium chromium
    fi
    for folder in agentcfg-server/dashboard clients/typescript tests/dashboard tests/identity/provider tests/sdk; do
        npm ci --no-fund --no-audit --prefix "$folder"
    done
    scripts/python.sh
}

part_dashboard() {
    npm run --prefix agentcfg-server/dashboard check
    npm run --prefix agentcfg-server/dashboard build -- --check
}

part_programs() (
    # shellcheck source=scripts/package/common.sh
    . scripts/package/common.sh
    build_programs static "$profile" "$programs/static"
    build_programs dynamic "$profile" "$programs/dynamic"
)

part_typescript() { scripts/typescript-client.sh check; }

part_python() { scripts/python-client.sh check; }

part_manifests() { scripts/manifests.sh check; }

part_observability() { scripts/observability.sh check; }

part_packages() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        scripts/test-packages.sh "$profile"
    else
        [ "${CI:-}" != true ] || fail "the packages are tested by root on Debian"
        echo "not run: the packages are tested by root on Debian"
    fi
}

part_browser() {
    npm test --prefix tests/dashboard
    [ -f docs/dashboard.png ] || npm run --prefix tests/dashboard picture
}

# Most of these tests wait for processes, so that there are more of them than processors. On a busy machine an event can
# come later than a test allows: such a test gets a second try, and the summary names it as flaky.
part_tests() {
    if command -v cargo-nextest >/dev/null; then
        in_workspace cargo nextest run --locked --workspace --all-features --no-fail-fast --retries 1 \
            --test-threads $((2 * $(nproc)))
    else
        in_workspace cargo test --locked --workspace --all-features --lib --bins --tests --no-fail-fast
    fi
}

command -v cargo >/dev/null || fail "Rust is missing; install it from your distribution or with rustup"
need cc build-essential

if [ $# -gt 0 ]; then
    for part in "$@"; do
        [[ " ${parts[*]} " == *" $part "* ]] || fail "the parts are ${parts[*]}"
    done
    for part in "$@"; do "part_$part"; done
    exit
fi

logs=target/test-run
rm -rf "$logs"
mkdir -p "$logs"
lane=

# Runs a part in a process of its own, so that its first failure ends it, and records its times.
measure() { # part, command in front of it
    local part=$1 status=0 TIMEFORMAT='%R %U %S'
    shift
    { time "$@" bash scripts/test.sh "$part" 2>&3 || status=$?; } 3>&2 2>"$logs/$part.times"
    return "$status"
}

title() { printf '\n== %s\n' "$*"; }

work_in_background() {
    local part status
    for part in "${background[@]}"; do
        status=0
        measure "$part" >"$logs/$part.log" 2>&1 || status=$?
        echo "$status" >"$logs/status"
        mv "$logs/status" "$logs/$part.status"
        # The other tests run nonetheless, so that one run names all that fails; they need these parts.
        [[ "$status" = 0 || "$part" != @(setup|programs) ]] || exit
    done
}

# Waits for parts of the background, and prints what they have written.
collect() { # parts
    local part failed=()
    for part in "$@"; do
        title "$part"
        until [ -e "$logs/$part.status" ]; do sleep 0.2; done
        cat "$logs/$part.log"
        [ "$(<"$logs/$part.status")" != 0 ] || continue
        failed+=("$part")
        [[ "$part" != @(setup|programs) ]] || break
    done
    [ ${#failed[@]} = 0 ] || fail "failed: ${failed[*]}"
}

finish() {
    local status=$? part
    [ -z "$lane" ] || kill -- "-$lane" 2>/dev/null || true
    printf '\n%-15s %9s %9s\n' part seconds "of CPU"
    for part in "${parts[@]}"; do
        [ -s "$logs/$part.times" ] || continue
        awk -v part="$part" '{ printf "%-15s %9.0f %9.0f\n", part, $1, $2 + $3 }' "$logs/$part.times"
    done
    awk -v seconds=$SECONDS '{ cpu += $2 + $3 } END { printf "%-15s %9d %9.0f\n", "all", seconds, cpu }' "$logs"/*.times
    # The closing lines of the test runner.
    [ ! -e "$logs/tests.log" ] || sed -n '/Summary \[/,$p' "$logs/tests.log"
    [ "$status" = 0 ] || echo "FAILED"
}
trap finish EXIT

set -m # gives the background a process group of its own
work_in_background &
lane=$!
set +m
# What runs in the background has precedence, because its tests wait for events.
for part in "${foreground[@]}"; do
    title "$part"
    measure "$part" nice -n 10
done
collect setup dashboard programs
title tests
tests=0
measure tests 2>&1 | tee "$logs/tests.log" || tests=$?
collect typescript python manifests observability packages browser
[ "$tests" = 0 ] || fail "failed: tests"
