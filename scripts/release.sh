#!/usr/bin/env bash
# Makes the files of a release: the Debian package, the image, the crates, the clients in TypeScript and Python, and SHA256SUMS. No path, time or
# user of this machine gets into them, so that the same commit, toolchain and Debian release can give the same bytes. The argument is the folder to write into,
# target/release-artifacts unless it is given. AGENTCFG_PROFILE names another profile than release.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh

command -v cargo >/dev/null || fail "Rust is missing; install it from your distribution or with rustup"
need cc build-essential
profile=${AGENTCFG_PROFILE:-release}
out=${1:-target/release-artifacts}
changes=$(git status --porcelain) || fail "a release is made of a commit: run this in a git checkout"
[ -z "$changes" ] || fail "a release is made of a commit; these changes are in none: $changes"

rm -rf "$out"
mkdir -p "$out"
(
    # The macros of C for the time of compilation use it.
    export SOURCE_DATE_EPOCH=$epoch
    # No path of this machine gets into a program: neither into messages of Rust nor into those of the C libraries.
    cargo_home=${CARGO_HOME:-$HOME/.cargo}
    export RUSTFLAGS="--remap-path-prefix=$PWD=/agentcfg --remap-path-prefix=$cargo_home=/cargo"
    export CFLAGS="-ffile-prefix-map=$PWD=/agentcfg -ffile-prefix-map=$cargo_home=/cargo"
    # Other flags than those of other builds would make all of both again.
    export CARGO_TARGET_DIR=target/release-build
    build_programs static "$profile" "$work/programs/static"
    build_programs dynamic "$profile" "$work/programs/dynamic"
)
scripts/package/stage.sh "$work/programs/dynamic"
scripts/package/deb.sh "$out"
scripts/package/oci.sh "$work/programs/static" "$out"
AGENTCFG_RELEASE=1 scripts/package/crates.sh "$out"
scripts/typescript-client.sh pack "$out"
scripts/python-client.sh pack "$out"
(cd "$out" && sha256sum -- * >SHA256SUMS)
cat "$out/SHA256SUMS"
