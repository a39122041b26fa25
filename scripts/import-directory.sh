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

# What is exported must be read as the same agents: the second import has the files of the first.
"$agentcfg" import "$format" "$temp/export" --out "$temp/again" >"$temp/second" || { cat "$temp/second"; exit 1; }
if diff -r "$temp/agents" "$temp/again"; then
    echo "$(find "$temp/agents" -name '*.md' | wc -l) agents came back as they were"
else
    echo "error: the lines above differ after an export and a second import" >&2
    exit 1
fi
exit "$code"
