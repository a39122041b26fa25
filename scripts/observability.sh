#!/usr/bin/env bash
# The alerts for Prometheus and the dashboard for Grafana, in packaging/observability.
#   check       tests the alerts, starts a server and a Prometheus that scrapes it, and compares what alerts, dashboard and
#               documents name with what the server exposes; the server under test is AGENTCFG_TEST_BINARY, else
#               target/debug/agentcfg-server
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/need.sh
. scripts/need.sh

[ "${1:-} $#" = "check 1" ] || fail "the command is check"
need promtool prometheus
need prometheus prometheus
need openssl openssl
environment=$(realpath -m "${CARGO_TARGET_DIR:-target}/python")
export PYTHONDONTWRITEBYTECODE=1
[ "$environment/agentcfg-requirements" -nt tests/sdk/requirements.txt ] || scripts/python.sh
AGENTCFG_TEST_BINARY=$(realpath -m "${AGENTCFG_TEST_BINARY:-${CARGO_TARGET_DIR:-target}/debug/agentcfg-server}")
export AGENTCFG_TEST_BINARY
[ -x "$AGENTCFG_TEST_BINARY" ] || fail "there is no $AGENTCFG_TEST_BINARY: cargo build -p agentcfg-server"

(
    cd packaging/observability
    promtool check rules alerts.yaml
    promtool test rules ./*.test.yaml
)
"$environment/bin/python" -m pytest -q -p no:cacheprovider --rootdir tests/observability tests/observability
