#!/usr/bin/env bash
# Runs every check and every test, or only the parts that are named: scripts/test.sh [PART…]. docs/testing.md lists
# the parts and their times. As root on Debian it installs missing programs; otherwise it says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/need.sh
. scripts/need.sh

# Two lanes at the same time, each one part after the other. The tests wait for the part `build` of the other lane.
compile=(format words dependencies build doctests lints documentation public-api crates)
execute=(setup dashboard programs typescript python manifests observability packages browser tests)
parts=("${compile[@]}" "${execute[@]}")

# The programs of the packages are also those under test. This profile optimises them and links them fast.
profile=quick
logs=target/test-run
programs=target/packaging/programs
export AGENTCFG_TEST_BINARY="$PWD/$programs/dynamic/agentcfg-server"
export AGENTCFG_TEST_CLI="$PWD/$programs/dynamic/agentcfg"
export AGENTCFG_TEST_EXAMPLES="$PWD/target/debug/examples"
# A run compiles each crate once, for which the files of incremental compilation cost more than they give.
export CARGO_INCREMENTAL=0
# Line numbers in the backtraces of failed tests are not worth a tenth of the time of compiling them.
export CARGO_PROFILE_DEV_DEBUG=false
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
    cargo clippy -p agentcfg-server --locked --no-default-features --features process,tls-ring -- -D warnings
}

part_documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --all-features; }

part_public-api() { scripts/public-api.sh; }

part_crates() { scripts/package/crates.sh target/packaging/crates; }

# The tests, the benchmarks, and the examples that the tests run. The list of the binaries is for the part `tests`, which
# would wait for cargo's lock while the other lane compiles.
part_build() {
    in_workspace cargo test --locked --workspace --all-features --all-targets --no-run
    if command -v cargo-nextest >/dev/null; then
        mkdir -p "$logs"
        in_workspace cargo nextest list --locked --workspace --all-features --list-type binaries-only \
            --message-format json >"$logs/binaries.json"
        cargo metadata --locked --format-version 1 --all-features >"$logs/workspace.json"
    fi
}

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
        [ -n "${AGENTCFG_TEST_LANES:-}" ] || part_build
        cargo nextest run --cargo-metadata "$logs/workspace.json" --binaries-metadata "$logs/binaries.json" \
            --no-fail-fast --retries 1 --test-threads $((2 * $(nproc)))
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

rm -rf "$logs"
mkdir -p "$logs"
export AGENTCFG_TEST_LANES=1
lanes=()

# Runs a part in a process of its own, so that its first failure ends it, and records its times.
measure() { # part, command in front of it
    local part=$1 status=0 TIMEFORMAT='%R %U %S'
    shift
    { time "$@" bash scripts/test.sh "$part" 2>&3 || status=$?; } 3>&2 2>"$logs/$part.times"
    return "$status"
}

title() { printf '\n== %s\n' "$*"; }

# The status of a part appears in one step.
ended() { # part, status
    echo "$2" >"$logs/$1.status.new"
    mv "$logs/$1.status.new" "$logs/$1.status"
}

# Runs parts one after the other. One that fails does not keep the others from running, so that one run names all that
# fails; but without the programs, or what is compiled, nothing that follows can run.
lane() { # command in front of the parts, or nothing; parts
    local prefix=$1 part status=0 is_cut=
    shift
    for part in "$@"; do
        if [ "$part" = tests ]; then
            until [ -e "$logs/build.status" ]; do sleep 0.2; done
            [ "$(<"$logs/build.status")" = 0 ] || is_cut=1
        fi
        status="not run"
        if [ -z "$is_cut" ]; then
            status=0
            # shellcheck disable=SC2086 # the prefix is several words
            measure "$part" $prefix >"$logs/$part.log" 2>&1 || status=$?
            [[ "$status" = 0 || "$part" != @(setup|programs|build) ]] || is_cut=1
        fi
        ended "$part" "$status"
    done
}

finish() {
    local status=$? part lane
    for lane in "${lanes[@]}"; do kill -- "-$lane" 2>/dev/null || true; done
    printf '\n%-15s %9s %9s\n' part seconds "of CPU"
    for part in "${parts[@]}"; do
        [ -s "$logs/$part.times" ] || continue
        awk -v part="$part" '{ printf "%-15s %9.0f %9.0f\n", part, $1, $2 + $3 }' "$logs/$part.times"
    done
    awk -v seconds=$SECONDS '{ cpu += $2 + $3 } END { printf "%-15s %9d %9.0f\n", "all", seconds, cpu }' "$logs"/*.times
    # The closing lines of the test runners, and of each other part that has failed.
    grep -hE '^(FLAKY|FAILED) ' "$logs"/{typescript,python,browser}.log 2>/dev/null || true
    for part in "${parts[@]}"; do
        [ "$part" != tests ] || continue
        [ -e "$logs/$part.status" ] && [ "$(<"$logs/$part.status")" != 0 ] || continue
        printf '\n%s failed:\n' "$part"
        [ ! -e "$logs/$part.log" ] || tail -n 12 "$logs/$part.log" | cut -c 1-300
    done
    [ ! -e "$logs/tests.log" ] || sed -n '/Summary \[/,$p' "$logs/tests.log"
    [ "$status" = 0 ] || echo "FAILED"
}
trap finish EXIT

set -m # gives each lane a process group of its own
# What executes has precedence, because its tests wait for events.
lane "nice -n 19" "${compile[@]}" &
lanes+=($!)
lane "" "${execute[@]}" &
lanes+=($!)
set +m

failed=()
for part in "${parts[@]}"; do
    title "$part"
    until [ -e "$logs/$part.status" ]; do
        [ -n "$(jobs -rp)" ] || [ -e "$logs/$part.status" ] || fail "a lane has ended before its part $part"
        sleep 0.2
    done
    [ ! -e "$logs/$part.log" ] || cat "$logs/$part.log"
    status=$(<"$logs/$part.status")
    [ "$status" = 0 ] && continue
    echo "$part: $status"
    failed+=("$part")
done
[ ${#failed[@]} = 0 ] || fail "failed: ${failed[*]}"
