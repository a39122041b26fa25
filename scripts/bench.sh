#!/usr/bin/env bash
# Runs the benchmarks and writes their figures to benches/README.md: all of them, or those named as arguments; the
# figures of the others then stay as they are. ROUNDS and SECONDS_PER_ROUND set the duration.
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
# Each section names its machine, because the others keep the figures of an earlier one.
machine() {
    echo "Machine of these figures: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores," \
        "$(awk '/MemTotal/ {printf "%.0f GiB", $2/1048576}' /proc/meminfo); load before: $(cut -d' ' -f1 /proc/loadavg). $(rustc --version)."
}
section() { # benchmark, title, text, and the command if it is no benchmark of cargo
    local command=${4:-cargo bench -p agentcfg-benches --bench $1}
    if ! wanted "$1"; then
        printf '\n%s\n' "$(awk -v title="## $2" '/^## / { on = $0 == title } on' benches/README.md)" >>"$out"
        return
    fi
    printf '\n## %s\n\n%s\n\n%s\n\n%s\n\n' "$2" "$3" "\`$command\`" "$(machine)" >>"$out"
    if ! ${command/#cargo bench/cargo bench --locked -q} | tee >(cat >&2) | grep -E '^(\||$)' | cat -s >>"$out"; then
        echo "This benchmark failed." >>"$out"
        failed=1
    fi
}
failed=0

cat >"$out" <<EOF
# Benchmarks

Written by \`scripts/bench.sh\`. Figures are medians over the rounds, with minimum and maximum in parentheses.
Ratios are taken round by round against a baseline that alternated with the product, so that they hold although the
machine's speed drifts; absolute figures do not transfer to other machines.
EOF
section read_path "The read path in process" \
    "\`GET /api/agents/configs\` with an API key: authentication on the current record, rate window, list, headers; over an in-memory connection. The baseline is bare hyper that reads the same requests and answers with the same bytes and a copy of a header map. Nanoseconds. With many keys, each request uses another key than the previous one; in the columns of the stages, some of the memory latency counts in the rest."
section http "The read over HTTP" \
    "wrk with 64 keep-alive connections against the release binary of the server and against bare hyper that answers with the same headers and bytes, all of them constants, and sets no timer. Processor time is that of the server process, from the operating system."
section writes "Durable creates over HTTP" \
    "Uniqueness, plan counter, audit entry and list revision included, each response after the sync. Baselines: the same with one transaction for each request, and hyper with the group-commit writer without any rules."
section scale "Scale" \
    "The release binary; 100 agents in each workspace; lists of random workspaces with their own keys. Processor time is that of a list at full load; latencies are measured at 1,000 lists a second, from the time that each request was due. The server is killed while 64 clients create agents; the start times include the start of the process and end with the response to an authenticated list. After the kill, every acknowledged create is checked. The row of 360,000 agents has a file of about 1 GB. \`AGENTS=100000\` leaves out the larger ones."
section flood "A flood of bad keys" \
    "1,000 lists a second with good keys over 16 connections, alone (quiet) and with 5,000 bad requests a second over 64 other connections; both are open loops at a fixed rate. Latencies count from the time that a request was due and include those of the load generator. A key that was not used since the start is not in memory, so that each wrong secret is compared with the stored record. The last row is the baseline: the same two loads on a server without any logic show what the machine and the load generator add."
section webhooks "Webhooks" \
    "Deliveries a second of one webhook to a receiver on the same machine, from the first message of a backlog to the last: alone, and while another webhook of the workspace sends to a receiver that never answers. Each delivery is signed, and recorded durably with its answer. Processor time is that of the server process."
if wanted proxy; then
    PATH="$PATH:/usr/sbin" need nginx nginx-light
    if [ -z "${LITELLM:-}" ] && ! command -v litellm >/dev/null; then
        [ -x target/litellm/bin/litellm ] || { python3 -m venv target/litellm && target/litellm/bin/pip install -q 'litellm[proxy]'; }
        export LITELLM=$PWD/target/litellm/bin/litellm
    fi
fi
PATH="$PATH:/usr/sbin" section proxy "Model calls" \
    "A model call through the release binary: credential, rate window, agent, the workspace's own provider key, model and persona filled in. The baseline of the ratios is nginx as a reverse proxy before the same upstream, with a worker for each core, connections to the upstream kept open and no access log; it passes bytes on and checks nothing, as does the proxy of hyper-util's server and pooling client. LiteLLM has a worker for each core, its settings for production, one master key and no database, so that it counts and limits nothing; it is measured after the others, in rounds with nothing and nginx, its streams one at a time: of 64, each takes longer than wrk waits. The upstream is bare hyper; the row of nothing calls it directly. Ratios and differences are taken round by round. In the rows of a closed loop, what is added is the mean time of a call less that of the upstream alone. In the rows at half load, calls are due at half the rate of the product's closed loop with 64 in flight, and what is added is the difference of the percentiles. Streams are 50 server-sent events, each written by itself. Processor time and memory are those of all processes of the row."
section usage "Usage and budgets" \
    "Model calls through the release binary with 64 in flight, whose usage is in the ledger: of an agent without a budget and of one with a budget, on a server each, in alternating rounds; then at half the rate of the closed loop, latencies counted from the time that a call was due. Processor time is that of the server process. \`BASELINE=PATH\` measures another binary, such as one from before the ledger, in turn with them. Then the sums of a month, whose calls are one an hour for each agent and model, read with an API key over an in-memory connection; and the growth of a redb store by calls whose rows are kept, of which \`CALLS\` sets the number."
section released "Releases" \
    "\`GET /api/agents/released\` against \`GET /api/agents/configs\` with as many agents and as many bytes, over an in-memory connection. After a change, both are read again, in process. The ratio is that of the rates, taken round by round."
section lists "Long lists with many readers" \
    "One workspace of 5,000 agents, 200 readers at a time. Stalled: every reader stops when its response has begun, so that all bodies are in flight. Reading: every other reader is slow, and an agent changes every quarter of a second, so that lists of several revisions are in flight. Growth is the peak minus the resident memory after one reader, divided by the size of a plain list."
section feed "Streams of changes" \
    "5,000 streams of server-sent events, 10 or 100 of each workspace, while 100 changes a second are made in turn in all workspaces. Latencies count from the time that a change was due, its durable commit included. The baseline is bare hyper with a channel for each stream, which sends the same events without a commit. Memory is that of a stream that waits, connection included. \`STREAMS\` sets another number."
if wanted mirror; then
    need node nodejs
    need npm npm
    npm ci --no-fund --no-audit --silent --prefix clients/typescript
    npm run build --silent --prefix clients/typescript
    scripts/python.sh
fi
section mirror "Mirrors of a label" \
    "1,000 mirrors of one label of a workspace with 33 agents, each with a stream of its own: 50 of the Python client in one process, 50 of the TypeScript client in another one, all others of the Rust client in the driver. An agent is changed and then promoted, again and again. Latencies count from the time that the promotion was due, until a mirror shows the new version: its commit, and the event, which has the version. All processes share the cores. \`MIRRORS\` sets another number, \`BINARY\` names the server."
if wanted status || wanted etcd; then
    need etcd etcd-server
    need etcdctl etcd-client
fi
if wanted status || wanted peers || wanted postgres || wanted etcd; then
    if [ -z "$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null)" ]; then
        need pg_ctlcluster postgresql
    fi
fi
section status "Live status of a large workspace" \
    "On redb, on PostgreSQL and on an etcd cluster of three members, all on this machine: 10,000 agents, each of which reports every 30 s, and 100 reports a second in another workspace, without readers and while 100 dashboards poll the whole list every 2 s or follow it as a stream; then while 100 streams begin at once, each with the statuses of all agents. Every third agent reports another task each time. Latencies count from the time that a request was due and include those of the load generator. \`AGENTS\` sets another number, \`STORES\` names the stores, and \`BASELINE=PATH\` measures another binary of the server on redb in turn with this one. Processor time is that of the server alone."
section crowd "Reads beside streams" \
    "1,000 lists a second of one workspace, while 5,000 streams are open in others, 10 or 100 of each workspace: alone (no streams), while a bare hyper in a process of its own sends the same events to as many streams, while the server sends them, and while all its streams break off and connect again at once. Latencies count from the time that a request was due and include those of the load generator, which holds the streams on the same two cores. A stream is refused with 429 while the server has not yet noticed the end of the one before."
section history "The history of agents" \
    "Changes that make a version against changes that make none, over HTTP with 64 clients. Then in process: an agent's version by a label, in a short and in a long history; and lists of all agents at revisions of a long log, against the present list read from the store. Last, the export of a large workspace by a release binary that has just started. \`ENTRIES\` and \`AGENTS\` set the length of the log and the size of that workspace."
if wanted dashboard; then
    need npm npm
    need chromium chromium
    cargo build --locked --release -q -p agentcfg-server
    npm ci --no-fund --no-audit --prefix tests/dashboard
fi
AGENTCFG_TEST_BINARY="$PWD/target/release/agentcfg-server" section dashboard "The dashboard in a browser" \
    "Milliseconds in Chromium on the same machine, with the release binary. A route change counts from the click to the frame that shows the other screen with its data; a report, from the request to the text on the page of another user of the workspace." \
    "npm run figures --silent --prefix tests/dashboard"
if wanted peers || wanted postgres || wanted etcd; then
    need node nodejs
    need npm npm
    # Packages with native code are built on this machine, with the headers of its own Node version.
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
    "64 clients; authenticated lists of 20 agents, and durable creates with uniqueness, plan limit and audit in one transaction, each response after the sync. The programs are in \`benches/peers\`: axum and rusqlite, Fastify and better-sqlite3, Express and node-postgres. Bare hyper answers with the product's headers and bytes."
section postgres "Several servers on PostgreSQL" \
    "64 clients, one PostgreSQL with its default durability on the same machine, which the clients, the servers and the database share. Lists of 20 agents and durable creates in one and in 64 workspaces, with shared rate windows, plan limit, uniqueness and audit. The baseline is \`peers/express\`: the same work with Express and node-postgres, in as many workspaces. Then lists at a fixed rate with a proxy between server and database that delays packets by half a millisecond in each direction; the round trip is that of one byte over such a proxy, at the same rate. \`BEFORE\` names the binary of another version for a comparison of a lone client's creates, \`BINARY\` one to measure in place of the sources."
section etcd "Several servers on etcd" \
    "As above, on an etcd cluster of three members with the options that \`docs/etcd.md\` names and its default durability, where each commit is on the disks of two members. All members, the servers, the clients and the PostgreSQL of the baselines share the machine. The list has a known key. \`BINARY\` names the binary to measure in place of the sources."
mv "$out" benches/README.md
trap - EXIT
chmod 644 benches/README.md
exit "$failed"
