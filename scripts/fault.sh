#!/usr/bin/env bash
# Runs the tests with kills, withdrawn rights, failing and full disks, failing model providers, crowds, damaged files and power
# losses in full, and writes their figures and times to docs/faults.md after each part. The test command runs fewer cases of each.
#
#   scripts/fault.sh              all parts, about two hours on two idle processors
#   scripts/fault.sh kills crowds these parts; the page keeps the last figures of the others
#
# SEED=NUMBER sets the seed; by default each run tries the same cases. SHARE=NUMBER divides the number of cases, to try the script.
# AGENTCFG_TEST_BINARY names a server that is built already. Full disks need the rights of root.
set -euo pipefail
cd "$(dirname "$0")/.."

# Each part: its name, its title, the number of cases, and the filter of its tests.
parts=(
    "kills|Kills|1000|kills::"
    "rights|Withdrawn rights|1000000|revocations::"
    "calls|Failing calls|0|io::"
    "disks|Full disks|100|disk::a_disk_that_fills_up_repeatedly"
    "tags|Tags|40|tags::"
    "moments|Moments|10|moments::"
    "models|Model calls|100000|model_calls::"
    "usage|Usage over three servers|1000000|over_three_servers_on_postgresql"
    "one-server|Usage over kills of one server|200|over_kills_of_one_server"
    "crowds|Crowds|20|crowds::"
    "unread|Unread answers|10|unread::"
    "webhooks|Slow webhooks|5000|slow_webhooks::"
    "flips|Bit flips|20000|store::redb::tests::flips"
    "crashes|Crash images|100000|store::redb::tests::crash"
    "planted|Planted blocks|5000|store::redb::tests::planted"
    "commits|Commits|0|block_checksums_cost --ignored"
)
share=${SHARE:-1}
seed=${SEED:-1}
failed=0
results=$(mktemp -d)
out=$results/out
trap 'rm -rf "$results"' EXIT
export RUST_BACKTRACE=0
# The figures on the page, which the parts that are not run keep.
for part in "${parts[@]}"; do
    IFS='|' read -r name title _ <<<"$part"
    awk -v title="## $title" '/^## / { on = $0 == title; next } on && NF' docs/faults.md >"$results/$name"
done

# Tests of the store in its own process have a path; the others are tests of a running server.
run() { # cases, filter
    local cases=$(($1 / share))
    read -ra filter <<<"$2"
    case $2 in
    *store* | block_*)
        CASES=$cases cargo test --locked -q --release -p agentcfg-core --all-features --lib -- "${filter[@]}" --nocapture
        ;;
    *)
        CYCLES=$cases CASES=$cases cargo test --locked -q -p agentcfg-tests --test faults -- "${filter[@]}" --nocapture
        ;;
    esac
}

write_page() {
    {
        cat <<EOF
# Faults

Written by \`scripts/fault.sh\`. A wrong answer, a lost change, an abort, a panic of the engine that a client can see, or damage that is
reported as sound fails a part, and this page reports it.

- **Kills**: \`kill -9\` of a server under creations, changes, deletions, restorations, labels, rollbacks, applies, API keys, provider
  keys, model calls and backups. After each restart the log has no gap and is what was acknowledged, except that the step without an
  answer is there or not (*unknown*); records, histories, labels, counters and keys agree with it. *restored* backups were compared
  with the store that they were made of.
- **Withdrawn rights**: revocation and rotation of a key, removal and demotion of a member, sign-out, deletion of a provider key and
  a lower plan, under pipelined load with and without model calls and streams. *started_after* counts requests that began after the
  answer of the withdrawal. The control calls a right withdrawn before it is, which must be found.
- **Failing calls**: reads, writes, syncs and resizes of the store file fail once, three times or for good, with EIO, ENOSPC and
  EROFS; a failing sync may also lose what it did not write. *unknown* changes may be stored, *refused* ones may not.
- **Full disks**: a small file system fills up under writers and is freed again.
- **Tags**: backups under writers are restored; each entity tag of earlier servers is compared with the new ones and sent.
- **Moments**: readers ask while applies, promotions, edits, restores and rollbacks run. The log tells of each answer whether it is
  the state of one revision, and of each decision whether it follows from the state before its entry. In the control checks of
  commits or corrections of long reads are left out, which must be found.
- **Model calls**: providers of agents with fallback models refuse connections, hang, answer 400, 408, 429, 500, 503 and 529, break
  off before and after the first byte, stall within an answer, or answer well, as JSON and as streams of two APIs. Each call must end in
  one whole answer, the last provider's failure, or a broken connection after a part of one answer; the attempts at the providers and
  the rows of the usage ledger must be those that the failures demand. In the control providers mix answers and fail otherwise, and
  a row is taken away, which must be found.
- **Usage**: callers spend one budget after another, while servers are killed, paused and stopped, and the database ends like in a
  crash. *overspent* is what the provider bills beyond the limits. A refusal counts as *falsely_refused* if the limit, less what was
  billed, reserved by calls in flight and held by killed servers, covered the call. After the servers have ended in order the ledger
  is the bill to the token; *without_row* and *estimated* are calls of servers that were killed while they were in flight or within two
  seconds after their end.
- **Crowds**: memory of the server before, at the peak and afterwards, and the slowest answer to others meanwhile.
- **Unread answers**: as many connections ask for a long answer each and do not read it, with one key and with 40. *begun* answers have
  sent a part, *refused* ones are 429 or 503. The memory must grow by 256 MiB at most and be free again within a minute.
- **Slow webhooks**: one owner has many webhooks whose receivers take 14 seconds for each event; the events of another tenant must
  arrive within a second.
- **Bit flips**: each case flips one bit of a store file, closed or not, then opens it, reads each record and list, makes three
  commits, reads all again, makes a backup, closes and checks the file. One in 16 backups is restored and read. *refused_at_open*,
  *refused_reads* and *reported* count where damage was reported; *without_effect* counts flips in unused blocks or redundant copies.
- **Crash images**: possible contents of a disk after a power loss in a run of commits: each sector that was written since the last
  sync is complete, missing or torn. The store must open, be sound, and hold all answered commits. In the control most syncs are
  left out, which must lose data.
- **Planted blocks**: blocks with valid checksums and the content of another moment, of another block, or none, in closed files, which
  must be refused, and in open files.
- **Commits**: pairs of runs with and without block checksums, on the disk of the machine, medians.
EOF
        for part in "${parts[@]}"; do
            IFS='|' read -r name title _ <<<"$part"
            printf '\n## %s\n\n' "$title"
            if [ -s "$results/$name" ]; then cat "$results/$name"; else echo "- not run"; fi
        done
    } >docs/faults.md
}

if [ -z "${AGENTCFG_TEST_BINARY:-}" ]; then
    cargo build --locked -q --release -p agentcfg-server
    export AGENTCFG_TEST_BINARY=$PWD/target/release/agentcfg-server
fi

for part in "${parts[@]}"; do
    IFS='|' read -r name title cases filter <<<"$part"
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
        continue
    fi
    echo "== $title" >&2
    begun=$SECONDS
    outcome="passed"
    run "$cases" "$filter" 2>&1 | tee >(cat >&2) | sed -n 's/^.*FIGURES /- /p' >"$out" || outcome="**failed**"
    [ "$outcome" = passed ] || failed=1
    echo "- $outcome after $((SECONDS - begun)) s, on $(date -u +%Y-%m-%d), seed $seed, $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)" >>"$out"
    cp "$out" "$results/$name"
    write_page
done
exit "$failed"
