#!/usr/bin/env bash
# Runs every check and every test. As root on Debian it installs missing programs; otherwise it says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/need.sh
. scripts/need.sh

step() { printf '\n== %s\n' "$*"; }

command -v cargo >/dev/null || fail "Rust is missing; install it from your distribution or with rustup"
need cc build-essential
need openssl openssl
need curl curl
need jq jq
need setpriv util-linux
# Debian installs these programs outside of PATH.
servers() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1; }
if ! command -v initdb >/dev/null && [ -z "$(servers)" ]; then
    need pg_ctlcluster postgresql
fi
PATH="$PATH:/usr/sbin:$(servers)"
need pgbouncer pgbouncer
need etcd etcd-server
need etcdctl etcd-client
need node nodejs
need npm npm
need chromium chromium

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
# The published crates as others use them: the service without an engine, the model with its schemas and no service, the engines,
# the API for an app's own router, the server without the dashboard, and the client.
cargo clippy -p agentcfg-core --locked --no-default-features --features engine -- -D warnings
cargo clippy -p agentcfg-core --locked --no-default-features --features schema -- -D warnings
cargo clippy -p agentcfg-postgres -p agentcfg-etcd --locked --all-targets -- -D warnings
cargo clippy -p agentcfg-server --locked --no-default-features --all-targets -- -D warnings
cargo clippy -p agentcfg-server --locked --no-default-features --features process -- -D warnings
cargo clippy -p agentcfg-client --locked --all-targets -- -D warnings

step "dependencies"
scripts/check-dependencies.sh

step "dashboard"
npm ci --no-fund --no-audit --prefix agentcfg-server/dashboard
npm run --prefix agentcfg-server/dashboard check
npm run --prefix agentcfg-server/dashboard build -- --check

step "words"
scripts/check-words.sh

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --all-features

step "binaries"
cargo build --locked --release -p agentcfg-server
cargo build --locked --release -p agentcfg-cli
cargo build --locked --workspace --examples --benches --all-features

step "identity provider for the tests"
npm ci --no-fund --no-audit --prefix tests/identity/provider

step "SDKs for the tests"
npm ci --no-fund --no-audit --prefix tests/sdk
scripts/python.sh

step "tests"
export AGENTCFG_TEST_BINARY="$PWD/target/release/agentcfg-server"
export AGENTCFG_TEST_CLI="$PWD/target/release/agentcfg"
export AGENTCFG_TEST_EXAMPLES="$PWD/target/debug/examples"
cargo test --locked --workspace --all-features --doc
if command -v cargo-nextest >/dev/null; then
    cargo nextest run --locked --workspace --all-features --no-fail-fast
else
    cargo test --locked --workspace --all-features --lib --bins --tests --no-fail-fast
fi

step "dashboard in a browser"
npm ci --no-fund --no-audit --prefix tests/dashboard
npm test --prefix tests/dashboard
[ -f docs/dashboard.png ] || npm run --prefix tests/dashboard picture

step "packages"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    scripts/test-packages.sh release
else
    [ "${CI:-}" != true ] || fail "the packages are tested by root on Debian"
    echo "not run: the packages are tested by root on Debian"
fi
