#!/usr/bin/env bash
# Builds the server and runs it in development mode: it prints a workspace, a key, a token, and commands to copy.
# Arguments are passed to the server, such as --listen 127.0.0.1:8080.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/need.sh
. "$root/scripts/need.sh"

command -v cargo >/dev/null || fail "Rust is missing; install it from your distribution or with rustup"
need cc build-essential

cargo build --locked --profile quick --manifest-path "$root/Cargo.toml" -p agentcfg-server
exec "$root/target/quick/agentcfg-server" dev "$@"
