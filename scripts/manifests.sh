#!/usr/bin/env bash
# The manifests for Kubernetes, the chart for Helm, and compose.yaml, in packaging.
#   generate    writes packaging/kubernetes from the chart
#   check       compares it, validates all with the schemas of Kubernetes, and starts the server as they say; the server
#               under test is AGENTCFG_TEST_BINARY, else target/debug/agentcfg-server
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/need.sh
. scripts/need.sh

environment=$(realpath -m "${CARGO_TARGET_DIR:-target}/python")
export PYTHONDONTWRITEBYTECODE=1
[ "$environment/agentcfg-requirements" -nt tests/sdk/requirements.txt ] || scripts/python.sh
case "${1:-} $#" in
"generate 1")
    for store in embedded postgresql; do
        "$environment/bin/python" tests/packaging/chart.py "$store" >"packaging/kubernetes/$store.yaml"
    done
    ;;
"check 1")
    need openssl openssl
    AGENTCFG_TEST_BINARY=$(realpath -m "${AGENTCFG_TEST_BINARY:-${CARGO_TARGET_DIR:-target}/debug/agentcfg-server}")
    export AGENTCFG_TEST_BINARY
    [ -x "$AGENTCFG_TEST_BINARY" ] || fail "there is no $AGENTCFG_TEST_BINARY: cargo build -p agentcfg-server"
    "$environment/bin/python" -m pytest -q -p no:cacheprovider --rootdir tests/packaging tests/packaging
    ;;
*) fail "the commands are generate and check" ;;
esac
