#!/usr/bin/env bash
# Compares what watchers of the change feed saw with the log, over many kills of the server: 200, or the first argument.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${AGENTCFG_PROFILE:-dev}
cargo build --locked --profile "$profile" -p agentcfg-server
folder=$profile
[ "$profile" != dev ] || folder=debug
export AGENTCFG_TEST_BINARY=$PWD/target/$folder/agentcfg-server
export AGENTCFG_TEST_FEED_KILLS=${1:-200}
exec cargo test --locked -p agentcfg-tests --test it -- --nocapture watchers_see_the_log
