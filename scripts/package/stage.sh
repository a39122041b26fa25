#!/usr/bin/env bash
# Gathers what a package installs below target/packaging/stage: programs, manual pages, completions, documents.
# The argument is the folder with the programs.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh

[ $# = 1 ] || fail "usage: $0 FOLDER"
built=$1
stage=$work/stage
rm -rf "$stage"
mkdir -p "$stage"/{bin,doc,man,bash,zsh,fish}

for program in $(programs); do
    [ -x "$built/$program" ] || fail "$built/$program is missing"
    install -m 755 "$built/$program" "$stage/bin/$program"
    strip --strip-all "$stage/bin/$program"
    "$built/$program" man --out "$stage/man"
    "$built/$program" completions bash >"$stage/bash/$program"
    "$built/$program" completions zsh >"$stage/zsh/_$program"
    "$built/$program" completions fish >"$stage/fish/$program.fish"
done

cp docs/packages.md docs/operations.md agentcfg-server/src/process/config.default.toml \
    packaging/observability/{alerts.yaml,dashboard.json} "$stage/doc"
gzip -9n "$stage"/man/*.1
gzip -9nc CHANGELOG.md >"$stage/doc/changelog.gz"
scripts/package/licences.sh | gzip -9n >"$stage/doc/third-party-licences.gz"
cat >"$stage/changelog" <<EOF
agentcfg ($version-1) stable; urgency=medium

  * Release $version; changelog.gz lists what has changed.

 -- ${DEBFULLNAME:-The agentcfg contributors} <${DEBEMAIL:-agentcfg@example.org}>  $(date -u -R -d "@$epoch")
EOF
