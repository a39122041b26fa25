#!/usr/bin/env bash
# The TypeScript client in clients/typescript.
#   generate    writes its types from the OpenAPI document of the server
#   check       types that are fresh, the compiler, the format, and all tests, among them those of the package and its documentation;
#               the server under test is AGENTCFG_TEST_BINARY, else target/debug/agentcfg-server
#   pack DIR    makes the tarball of a release, of the same bytes each time, and prints its path
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/need.sh
. scripts/need.sh

client=clients/typescript
usage() { fail "the commands are generate, check and pack DIR"; }

command=${1:-}
case "$command $#" in
"generate 1" | "check 1" | "pack 2") ;;
*) usage ;;
esac
need node nodejs
need npm npm
# The packages of the lock file, unless they were installed after its last change.
[ "$client/node_modules/.package-lock.json" -nt "$client/package-lock.json" ] ||
    npm ci --no-fund --no-audit --silent --prefix "$client"
case "$command" in
generate) npm run --silent --prefix "$client" generate ;;
check)
    if [ -n "${AGENTCFG_TEST_BINARY:-}" ]; then
        AGENTCFG_TEST_BINARY=$(realpath "$AGENTCFG_TEST_BINARY")
        export AGENTCFG_TEST_BINARY
    fi
    npm run --silent --prefix "$client" check
    npm test --silent --prefix "$client"
    ;;
pack)
    mkdir -p "$2"
    out=$(realpath "$2")
    npm run --silent --prefix "$client" pack -- "$out"
    ;;
esac
