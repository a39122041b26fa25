#!/usr/bin/env bash
# Makes the Debian package of what scripts/package/stage.sh has gathered, and prints its path. Arguments: the folder to write
# into, and the revision of the package, 1 unless it is given.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh

[ $# -ge 1 ] || fail "usage: $0 FOLDER [REVISION]"
[ -f "$work/stage/changelog" ] || fail "$work/stage is missing: run scripts/package/stage.sh first"
need dpkg-shlibdeps dpkg-dev
# The changelog names the version that it belongs to.
sed -i "1s/([^)]*)/($version-${2:-1})/" "$work/stage/changelog"
cargo_deb --manifest-path agentcfg-server/Cargo.toml --locked --no-build --no-strip --quiet \
    --deb-revision "${2:-1}" --output "$1/" ${FAST_PACKAGES:+--fast} ${DEBEMAIL:+--maintainer "${DEBFULLNAME:-The agentcfg contributors} <$DEBEMAIL>"}
