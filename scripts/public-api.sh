#!/usr/bin/env bash
# Compares the public items of the published libraries with the lists in tests/public-api, so that no release breaks an
# app by accident. `scripts/public-api.sh --update` rewrites the lists after a change that is meant.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/need.sh
. scripts/need.sh

# The tool reads the JSON of one release of rustdoc.
release=1.95
if ! rustc --version | grep -q "^rustc $release\."; then
    [ "${CI:-}" != true ] || fail "the public items are compared with Rust $release, not with $(rustc --version)"
    echo "not run: the public items are compared with Rust $release"
    exit
fi

folder=${CARGO_TARGET_DIR:-target}
cargo build --quiet --locked -p agentcfg-public-api
# With the features of the documentation, so that what was checked for it is used.
RUSTDOC=$PWD/scripts/rustdoc-json.sh RUSTDOCFLAGS="-Z unstable-options --output-format json" \
    cargo doc --quiet --locked --workspace --no-deps --all-features
changed=0
for crate in agentcfg-core agentcfg-postgres agentcfg-etcd agentcfg-client agentcfg-server; do
    list=tests/public-api/$crate.txt
    items=$folder/doc/$crate.txt
    "$folder/debug/agentcfg-public-api" "$folder/doc/${crate//-/_}.json" >"$items"
    if [ "${1:-}" = --update ]; then
        cp "$items" "$list"
    elif ! diff -u "$list" "$items"; then
        changed=1
    fi
done
[ "$changed" = 0 ] || fail "the public items have changed: if that is meant, run scripts/public-api.sh --update"
