#!/usr/bin/env bash
# Tries an upgrade between releases of different formats with a binary of each: on a data directory, a backup and a PostgreSQL
# database, each refuses what the other made and leaves it unchanged, while the server that runs there goes on. The second
# binary is built of a copy of the committed sources with the next format, in target/two-formats.
#
# AGENTCFG_TEST_BINARY names the first binary, if it is built of these sources already.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/need.sh
. scripts/need.sh
need setpriv util-linux
need curl curl
initdb=$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -1 || true)
if [ -z "$initdb" ]; then
    install_package postgresql
    initdb=$(ls /usr/lib/postgresql/*/bin/initdb | tail -1)
fi
postgresql=$(dirname "$initdb")

place=$(mktemp -d)
chmod 755 "$place"
servers=()
clean() {
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
    wait
    rm -rf "$place"
}
trap clean EXIT

source=agentcfg-core/src/store/format.rs
format=$(sed -n 's/^pub const FORMAT: u32 = \([0-9]*\);/\1/p' "$source")
[ -n "$format" ] || fail "$source names no format"
next=$((format + 1))
mkdir "$place/sources"
git archive HEAD | tar -x -C "$place/sources"
sed -i "s/^pub const FORMAT: u32 = $format;/pub const FORMAT: u32 = $next;/" "$place/sources/$source"
target=$PWD/target/two-formats
(cd "$place/sources" && CARGO_TARGET_DIR=$target cargo build --locked -p agentcfg-server)
older=${AGENTCFG_TEST_BINARY:-$PWD/target/debug/agentcfg-server}
[ -x "$older" ] || cargo build --locked -p agentcfg-server
newer=$target/debug/agentcfg-server

# The servers refuse settings that they do not know.
for name in $(compgen -e AGENTCFG_); do unset "$name"; done
export AGENTCFG_SESSION_SECRET=two-formats-0123456789abcdef0123456789abcdef
bytes() { # directory: what its files hold
    (cd "$1" && find . -type f -exec sha256sum {} + | sort)
}

start() { # binary, port, further arguments
    local binary=$1 port=$2
    shift 2
    "$binary" serve --listen "127.0.0.1:$port" "$@" >"$place/log" 2>&1 &
    servers+=($!)
    for _ in $(seq 100); do
        curl -fs "http://127.0.0.1:$port/readyz" >/dev/null && return
        sleep 0.1
    done
    cat "$place/log" >&2
    fail "$binary did not become ready"
}

stop() { # the server that was started last
    kill "${servers[-1]}"
    wait "${servers[-1]}" || fail "a server ended with $?"
    unset 'servers[-1]'
}

refused() { # found format, format of the binary, command
    local found=$1 own=$2 expected
    shift 2
    if "$@" >"$place/log" 2>&1; then fail "not refused: $*"; fi
    expected="with format $found; this build,"
    grep -q "$expected" "$place/log" && grep -q "reads format $own" "$place/log" && return
    cat "$place/log" >&2
    fail "refused without the formats: $*"
}

make_workspace() { # binary, port, further arguments of token
    local binary=$1 port=$2 token
    shift 2
    token=$("$binary" token --user ada "$@" | tail -1)
    curl -fsS -o /dev/null -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
        -d '{"name":"Studio"}' "http://127.0.0.1:$port/api/workspaces"
    curl -fsS -H "Authorization: Bearer $token" "http://127.0.0.1:$port/api/workspaces" >"$place/found"
    grep -q Studio "$place/found" || fail "the workspace is not there: $(cat "$place/found")"
}

port=17490
for pair in "$older $newer $format $next" "$newer $older $next $format"; do
    read -r maker other made own <<<"$pair"

    data=$place/data-$made
    start "$maker" "$port" --data "$data"
    make_workspace "$maker" "$port" --data "$data"
    stop
    "$maker" backup --data "$data" --out "$place/backup-$made" >/dev/null 2>&1
    before=$(bytes "$data")
    refused "$made" "$own" "$other" serve --listen "127.0.0.1:$port" --data "$data"
    refused "$made" "$own" "$other" check --data "$data"
    refused "$made" "$own" "$other" backup --data "$data" --out "$place/none"
    refused "$made" "$own" "$other" restore --from "$place/backup-$made" --data "$place/restored-$made"
    [ "$before" = "$(bytes "$data")" ] || fail "a refused start changed $data"
    "$maker" check --data "$data" >/dev/null 2>&1
    echo "data directory of format $made: refused by format $own, unchanged"

    database=$place/database-$made
    mkdir "$database" && chown nobody "$database"
    as_nobody() { setpriv --reuid nobody --regid nogroup --clear-groups "$@"; }
    as_nobody "$initdb" -D "$database/data" -U postgres -A trust >/dev/null
    as_nobody "$postgresql/pg_ctl" -D "$database/data" -w -l "$database/log" \
        -o "-c listen_addresses= -c unix_socket_directories=$database" start >/dev/null
    url="postgres://postgres@localhost/postgres?host=$database"
    export AGENTCFG_DATABASE_URL=$url
    start "$maker" "$port" --data "$place/files-$made"
    make_workspace "$maker" "$port" --data "$place/files-$made"
    refused "$made" "$own" "$other" serve --listen "127.0.0.1:$((port + 1))" --data "$place/files-$own-$made"
    # The server that runs goes on.
    make_workspace "$maker" "$port" --data "$place/files-$made"
    stop
    start "$maker" "$port" --data "$place/files-$made"
    make_workspace "$maker" "$port" --data "$place/files-$made"
    stop
    unset AGENTCFG_DATABASE_URL
    as_nobody "$postgresql/pg_ctl" -D "$database/data" -w -m fast stop >/dev/null
    echo "database of format $made: refused by format $own, whose neighbour went on"
done
