#!/usr/bin/env bash
# Prints the crates that are in the programs, and the text of each of their licences once.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh

trees() { # format
    cargo tree --locked -p agentcfg-server -e normal --prefix none --format "$1"
    cargo tree --locked -p agentcfg-cli -e normal --prefix none --format "$1"
}

echo "The programs of agentcfg contain these libraries: name, version, licence, source."
echo
trees '{p} | {l} | {r}' | sed 's/ (\*)$//; s/ (proc-macro)//' | grep -v '^agentcfg-' | sort -u

declare -A shown
while read -r name number _; do
    for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$name-${number#v}"; do
        for file in "$folder"/{LICEN,COPYING,NOTICE}*; do
            [ -f "$file" ] || continue
            sum=$(sha256sum <"$file")
            [ -z "${shown[$sum]:-}" ] || continue
            shown[$sum]=1
            printf '\n---- %s %s: %s\n\n' "$name" "$number" "$(basename "$file")"
            cat "$file"
        done
    done
done < <(trees '{p}' | grep -v '^agentcfg-' | sort -u)
