#!/usr/bin/env bash
# Runs the benchmarks and writes their figures to benches/README.md. With arguments, only the named benchmarks run, and the
# figures of the others are kept. ROUNDS and SECONDS_PER_ROUND set the duration.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/need.sh
. scripts/need.sh
need cc build-essential
need wrk wrk

out=$(mktemp)
trap 'rm -f "$out"' EXIT
only=" $* "
wanted() { # benchmark
    [ "$only" = "  " ] || [[ $only == *" $1 "* ]]
}
section() { # benchmark, title, text
    if ! wanted "$1"; then
        printf '\n%s\n' "$(awk -v title="## $2" '/^## / { on = $0 == title } on' benches/README.md)" >>"$out"
        return
    fi
    printf '\n## %s\n\n%s\n\n%s\n\n' "$2" "$3" "\`cargo bench -p agentcfg-benches --bench $1\`" >>"$out"
    if ! cargo bench --locked -q -p agentcfg-benches --bench "$1" | tee >(cat >&2) | grep '^|' >>"$out"; then
        echo "This benchmark failed." >>"$out"
        failed=1
    fi
}
failed=0

cat >"$out" <<EOF
# Benchmarks

Written by \`scripts/bench.sh\`. Figures are medians over the rounds, with the minimum and the maximum in parentheses.
Each ratio compares the product with a yardstick that ran in the same round, so ratios stay valid while the machine's speed
drifts; absolute figures depend on the machine.

Machine: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2/1048576}' /proc/meminfo); load average before: $(cut -d' ' -f1 /proc/loadavg). $(rustc --version).
EOF
section read_path "The read path in process" \
    "\`GET /api/agents/configs\` with an API key: authentication on the current record, rate window, list, headers; over an in-memory connection. The yardstick is bare hyper that reads the same requests and responds with the same fields and bytes. Nanoseconds. With many keys each request uses another key than the one before, and a part of the cache misses counts in the column rest."
section http "The read over HTTP" \
    "wrk with 64 keep-alive connections against the release binary of the server and against bare hyper that responds with the same fields and bytes. Processor time is that of the server process, from the operating system."
section writes "Durable creates over HTTP" \
    "Uniqueness, plan counter, audit entry and list revision included, each response after the sync. Yardsticks: the same with one transaction for each request, and hyper with the group-commit writer and no rules."
section scale "Scale" \
    "The release binary; 100 agents in each workspace; lists of random workspaces with their own keys. Processor time is that of a list at full load; the latencies are those at 1,000 lists per second, measured from the scheduled time of each request. The server is killed while 64 clients create agents; the times are those until an authenticated list is answered, including the start of the process. After the kill every acknowledged create is verified. The row of 360,000 agents is a file of about 1 GB. \`AGENTS=100000\` leaves out the larger ones."
section flood "A flood of bad keys" \
    "1,000 lists per second with valid keys over 16 connections, alone and together with 5,000 bad requests per second over 64 other connections; both are open-loop loads. Latencies are measured from the scheduled time of each request and include the load generator. A key that was not used since the start is not in memory: each wrong secret is checked against the stored record. The last row is the yardstick: the same two loads on a server without any checks, which shows the share of the machine and the load generator."
section lists "Long lists with many readers" \
    "One workspace of 5,000 agents, 200 readers at a time. Standing: every reader stops after the start of the response, so that every body is in flight. Moving: every other reader reads slowly, and an agent is changed every quarter of a second, so that lists of several revisions are in flight. Growth is the peak minus the resident memory after one reader, in units of uncompressed lists."
if wanted peers || wanted postgres; then
    if [ -z "$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null)" ]; then
        need pg_ctlcluster postgresql
    fi
    need node nodejs
    need npm npm
    # Native packages are compiled on this machine, with the headers of the Node version that runs them.
    need make make
    need python3 python3
    node_directory=$(dirname "$(dirname "$(node -p process.execPath)")")
    [ -e "$node_directory/include/node/node.h" ] || install_package libnode-dev
    for peer in express fastify; do
        npm_config_build_from_source=true npm_config_nodedir=$node_directory \
            npm ci --no-fund --no-audit --prefix "benches/peers/$peer"
    done
fi
section peers "Other stacks" \
    "64 clients; authenticated lists of 20 agents, and durable creates with uniqueness, plan limit and audit in one transaction, each response after the sync. The programs are in \`benches/peers\`: axum and rusqlite, Fastify and better-sqlite3, Express and node-postgres. Bare hyper responds with the product's fields and bytes."
section postgres "Several servers on PostgreSQL" \
    "48 clients, one PostgreSQL with its default durability on the same machine. Lists of 20 agents and durable creates, with shared rate windows, plan limit, uniqueness and audit. The yardstick is \`peers/express\`: Express and node-postgres doing the same."
mv "$out" benches/README.md
trap - EXIT
chmod 644 benches/README.md
exit "$failed"
