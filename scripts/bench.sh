#!/usr/bin/env bash
# Runs the benchmarks and writes their figures to benches/README.md.
# ROUNDS and SECONDS_PER_ROUND make it longer or shorter.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/need.sh
. scripts/need.sh
need cc build-essential

out=$(mktemp)
trap 'rm -f "$out"' EXIT
section() { # benchmark, title, text
    printf '\n## %s\n\n%s\n\n`cargo bench -p agentcfg-benches --bench %s`\n\n' "$2" "$3" "$1" >>"$out"
    cargo bench --locked -q -p agentcfg-benches --bench "$1" | tee /dev/stderr | grep '^|' >>"$out"
}

cat >"$out" <<EOF
# Benchmarks

Written by \`scripts/bench.sh\`. Figures are medians over the rounds, with the smallest and the greatest in parentheses.
Ratios are taken round by round against a yardstick that ran in turn with the product, so they hold where the machine's
speed drifts; absolute figures do not travel.

Machine: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2/1048576}' /proc/meminfo); load average before: $(cut -d' ' -f1 /proc/loadavg). $(rustc --version).
EOF
section read_path "The read path in process" \
    "\`GET /api/agents/configs\` with an API key: authentication on the current record, rate window, list, headers; without sockets. The yardstick builds a response with the same fields and bytes. Nanoseconds."
section http "The read over HTTP" \
    "64 keep-alive connections against the product and against bare hyper that answers with the same fields and bytes. Processor time is the server's own, from the operating system."
section writes "Durable creates over HTTP" \
    "Uniqueness, plan counter, audit entry and list revision included, each answer after the sync. Yardsticks: the same with one transaction for each request, and hyper with the group-commit writer and no rules."
section scale "Scale" \
    "100 agents in each workspace; lists of random workspaces with their own keys."
section lists "Long lists in many hands" \
    "One workspace of 5,000 agents, 200 readers at a time. Standing: none of them reads on once the answer has begun, so that every body is in flight. Moving: every other one reads at leisure, and every quarter of a second an agent is changed, so that lists of several revisions are under way. Growth is what the peak is above the resident memory after one reader, in plain lists."
if [ -z "$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null)" ]; then
    need pg_ctlcluster postgresql
fi
need node nodejs
need npm npm
npm ci --no-fund --no-audit --prefix benches/peers/express
cargo build --locked --release -p agentcfg-server
section postgres "Several servers on PostgreSQL" \
    "48 clients, one PostgreSQL with its usual durability on the same machine. Lists of 20 agents and durable creates, with shared rate windows, plan limit, uniqueness and audit. The yardstick is \`peers/express\`: Express and node-postgres doing the same."
mv "$out" benches/README.md
trap - EXIT
chmod 644 benches/README.md
