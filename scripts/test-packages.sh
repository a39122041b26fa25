#!/usr/bin/env bash
# Makes the Debian package, the image and the package for Python, and tests what their users do with them. Needs root. The argument is
# the profile of the programs, quick unless it is given. Those for TypeScript are tested with that client.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh

profile=${1:-quick}
# Packages that are only tested need not be small: the level of their compression.
[ "$profile" = release ] || export FAST_PACKAGES=1
[ "$(id -u)" = 0 ] || fail "only root can install packages into a root of their own"
# The programs of the other tests are the dynamic ones, so that they are built last.
build_programs static "$profile" "$work/programs/static"
build_programs dynamic "$profile" "$work/programs/dynamic"

same() { # what, two files
    cmp "$2" "$3" || fail "$1 has other bytes when it is made again"
    echo "ok: $1 has the same bytes when it is made again"
}

scripts/package/stage.sh "$work/programs/dynamic"
package=$(scripts/package/deb.sh "$work/first")
scripts/package/stage.sh "$work/programs/dynamic"
same "the Debian package" "$package" "$(scripts/package/deb.sh "$work/again")"
scripts/package/test-deb.sh "$package" "$(scripts/package/deb.sh "$work/later" 2)"

image=$(scripts/package/oci.sh "$work/programs/static" "$work/first")
same "the image" "$image" "$(scripts/package/oci.sh "$work/programs/static" "$work/again")"
scripts/package/test-oci.sh "$image"

# The wheel, and the source archive.
{ read -r wheel && read -r archive; } < <(scripts/python-client.sh pack "$work/first")
{ read -r wheel_again && read -r archive_again; } < <(scripts/python-client.sh pack "$work/again")
same "the wheel" "$wheel" "$wheel_again"
same "the source archive for Python" "$archive" "$archive_again"
AGENTCFG_TEST_BINARY=$work/programs/dynamic/agentcfg-server scripts/python-client.sh installed "$wheel"

rm -rf "$work"/{first,again,later}
