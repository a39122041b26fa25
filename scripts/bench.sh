#!/usr/bin/env bash
# Runs the benchmarks and writes their figures to benches/README.md: all of them, or those that are named as arguments;
# then the others' figures stay as they are. ROUNDS and SECONDS_PER_ROUND make it longer or shorter.
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
        echo "This one did not run to its end." >>"$out"
        failed=1
    fi
}
failed=0

cat >"$out" <<EOF
# Benchmarks

Written by \`scripts/bench.sh\`. Figures are medians over the rounds, with the smallest and the greatest in parentheses.
Ratios are taken round by round against a yardstick that ran in turn with the product, so they hold where the machine's
speed drifts; absolute figures do not travel.

Machine: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2/1048576}' /proc/meminfo); load average before: $(cut -d' ' -f1 /proc/loadavg). $(rustc --version).
EOF
section read_path "The read path in process" \
    "\`GET /api/agents/configs\` with an API key: authentication on the current record, rate window, list, headers; on a connection that is memory. The yardstick is bare hyper that reads the same requests and answers with the same fields and bytes. Nanoseconds. With many keys each request brings another one than the last, and in the columns of the stages a part of the waiting for memory is in the rest."
section http "The read over HTTP" \
    "wrk with 64 keep-alive connections against the release binary of the server and against bare hyper that answers with the same fields and bytes. Processor time is the server's own, from the operating system."
section writes "Durable creates over HTTP" \
    "Uniqueness, plan counter, audit entry and list revision included, each answer after the sync. Yardsticks: the same with one transaction for each request, and hyper with the group-commit writer and no rules."
section scale "Scale" \
    "The release binary; 100 agents in each workspace; lists of random workspaces with their own keys. Processor time is that of a list at full load; the latencies are those at 1,000 lists a second, from the moment that each was due. The kill comes while 64 clients create; the times are those until an authenticated list is answered, the start of the process included. After the kill every create that was acknowledged is looked for. The row of 360,000 agents is a file of about 1 GB. \`AGENTS=100000\` leaves out the larger ones."
section flood "A flood of bad keys" \
    "1,000 lists a second with good keys over 16 connections, quiet and while 5,000 bad requests a second come in over 64 others; both at their pace, however slow the answers are. Latencies count from the moment that a request was due, those of the load generator included. For a key that nobody has used since the start, nothing is in memory: each wrong secret is held against the stored record. The last row is the yardstick: the same two loads on a server that has nothing to decide, so what the machine and the load generator add by themselves."
section lists "Long lists in many hands" \
    "One workspace of 5,000 agents, 200 readers at a time. Standing: none of them reads on once the answer has begun, so that every body is in flight. Moving: every other one reads at leisure, and every quarter of a second an agent is changed, so that lists of several revisions are under way. Growth is what the peak is above the resident memory after one reader, in plain lists."
if wanted peers || wanted postgres; then
    if [ -z "$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null)" ]; then
        need pg_ctlcluster postgresql
    fi
    need node nodejs
    need npm npm
    # The packages with code of their own are built on this machine, with the headers of the Node that runs them.
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
    "64 clients; authenticated lists of 20 agents, and durable creates with uniqueness, plan limit and audit in one transaction, each answer after the sync. The programs are in \`benches/peers\`: axum and rusqlite, Fastify and better-sqlite3, Express and node-postgres. Bare hyper answers with the product's fields and bytes."
section postgres "Several servers on PostgreSQL" \
    "48 clients, one PostgreSQL with its usual durability on the same machine. Lists of 20 agents and durable creates, with shared rate windows, plan limit, uniqueness and audit. The yardstick is \`peers/express\`: Express and node-postgres doing the same."
mv "$out" benches/README.md
trap - EXIT
chmod 644 benches/README.md
exit "$failed"
