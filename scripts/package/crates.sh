#!/usr/bin/env bash
# Makes the crates as they would be published, compiles each from its own archive alone, and checks what is in it.
# The argument is the folder to write into.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh

[ $# = 1 ] || fail "usage: $0 FOLDER"
crates=(agentcfg-core agentcfg-postgres agentcfg-etcd agentcfg-server agentcfg-client agentcfg-cli)
# Uncommitted changes are refused for a release, and are what a developer tests.
changed=()
[ -n "${AGENTCFG_RELEASE:-}" ] || changed=(--allow-dirty)
cargo package --locked --no-verify "${changed[@]}" "${crates[@]/#/--package=}"

# `cargo package` would verify each crate with every dependency compiled again. The archives are unpacked into a
# workspace that has the versions and the profiles of this one, so that dependencies which the lints checked are used.
unpacked=$work/unpacked-crates
rm -rf "$unpacked"
mkdir -p "$unpacked"
{
    printf '[workspace]\nresolver = "3"\nmembers = ["agentcfg-*", "rustls-app"]\n[patch.crates-io]\n'
    for crate in "${crates[@]}"; do
        tar -xzf "target/package/$crate-$version.crate" -C "$unpacked"
        echo "$crate = { path = \"$crate-$version\" }"
    done
    sed -n '/^\[profile/,$p' Cargo.toml
} >"$unpacked/Cargo.toml"
cp Cargo.lock "$unpacked"
cp -r tests/rustls-app "$unpacked"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}
for crate in "${crates[@]}"; do
    cargo check --offline --manifest-path "$unpacked/Cargo.toml" --package "$crate"
done
cargo test --offline --manifest-path "$unpacked/Cargo.toml" --package rustls-app
rm -rf "$unpacked"

largest=$((1 << 20))
for crate in "${crates[@]}"; do
    archive=target/package/$crate-$version.crate
    list=$(tar -tzf "$archive" | sed "s|^$crate-$version/||")
    [ "$(stat -c %s "$archive")" -le "$largest" ] || fail "$archive has more than $largest bytes"
    for file in Cargo.toml Cargo.lock README.md LICENSE-MIT LICENSE-APACHE src/lib.rs; do
        grep -qx "$file" <<<"$list" || fail "$archive has no $file"
    done
    # The documentation pages have the colours of the dashboard.
    if grep -E '(^|/)(node_modules|target)/|^dashboard/src/' <<<"$list" | grep -vx 'dashboard/src/styles/tokens.css'; then
        fail "$archive has files that nothing is built from"
    fi
    [ "$crate" != agentcfg-server ] || for file in app.css app.js chunk.js icon.svg index.html later.js snippets.json; do
        grep -qx "dashboard/dist/$file" <<<"$list" || fail "$archive has no dashboard/dist/$file"
    done
    echo "ok: $crate: $(wc -l <<<"$list") files, $(stat -c %s "$archive") bytes"
done
mkdir -p "$1"
for crate in "${crates[@]}"; do
    install -m 644 "target/package/$crate-$version.crate" "$1"
done
