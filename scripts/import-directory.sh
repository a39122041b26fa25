#!/usr/bin/env bash
# Tries the agents that you have: imports a directory into a temporary one, exports that again, and compares what came back with
# what was there. Nothing of yours is changed, and no server is needed. Usage: scripts/import-directory.sh FORMAT PATH...
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 FORMAT PATH..." >&2; exit 64; }
format=$1
shift
agentcfg=${AGENTCFG:-agentcfg}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# The command ends with 1 where sources have problems; the report names them, and the others are compared.
code=0
"$agentcfg" import "$format" "$@" --out "$temp/agents" || code=$?
[ "$code" -le 1 ] || exit "$code"
[ -d "$temp/agents" ] || { echo "nothing was imported" >&2; exit 1; }
"$agentcfg" export --format "$format" --from "$temp/agents" "$temp/export"

# What is exported must be read as the same agents, whatever the order of their keys: a second import finds each unchanged.
"$agentcfg" import "$format" "$temp/export" --out "$temp/agents" --json >"$temp/second" || { cat "$temp/second"; exit 1; }
came=$(find "$temp/agents" -name '*.md' | wc -l)
same=$(grep -c '"action": "unchanged"' "$temp/second" || true)
if [ "$same" != "$came" ]; then
    cat "$temp/second"
    echo "error: $same of $came agents came back as they were" >&2
    exit 1
fi
echo "$came of $came agents came back as they were"
exit "$code"
