#!/usr/bin/env bash
# Runs Schemathesis with CASES random requests, 50,000 by default; the test command runs fewer. SEED=NUMBER chooses the requests.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/python.sh
cargo build --locked --release -p agentcfg-server
export AGENTCFG_TEST_BINARY=$PWD/target/release/agentcfg-server
export CASES=${CASES:-50000}
exec cargo test --locked -p agentcfg-tests --test schemathesis -- --nocapture
