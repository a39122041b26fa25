#!/usr/bin/env bash
# Runs the tests with damaged files, power losses, kills, failing and full disks, withdrawn rights and crowds in full, and writes
# their figures and times to docs/faults.md. The test command runs fewer cases of each. SEED=NUMBER sets the seed; by default each
# run tries the same cases. SHARE=NUMBER divides the number of cases, to try the script. Full disks need the rights of root.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0
share=${SHARE:-1}
export RUST_BACKTRACE=0

# Appends the figures that a command prints, and its time.
figures() { # title, command
    local title=$1 begun=$SECONDS
    shift
    echo "== $title" >&2
    printf '\n## %s\n\n' "$title" >>"$out"
    "$@" 2>&1 | tee >(cat >&2) | sed -n 's/^.*FIGURES /- /p' >>"$out" || {
        failed=1
        echo "- **This part failed.**" >>"$out"
    }
    echo "- time: $((SECONDS - begun)) s" >>"$out"
}

# Tests of the store itself, in its process.
store() { # cases, filter, further arguments of the test program
    local cases=$1 filter=$2
    shift 2
    CASES=$((cases / share)) cargo test --locked -q --release -p agentcfg-core --all-features --lib -- "$filter" --nocapture "$@"
}

# Tests of a running server.
server() { # cases, filter
    CYCLES=$(($1 / share)) CASES=$(($1 / share)) cargo test --locked -q -p agentcfg-tests --test faults -- "$2" --nocapture
}

cargo build --locked -q --release -p agentcfg-server
export AGENTCFG_TEST_BINARY=$PWD/target/release/agentcfg-server

cat >"$out" <<EOF
# Faults

Written by \`scripts/fault.sh\` on $(date -u +%Y-%m-%d) with the seed ${SEED:-1}, in $(nproc) processors. A wrong answer, a lost change, an
abort, a panic of the engine that a client can see, or damage that is reported as sound fails the run, and this page reports it.

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
- **Crowds**: memory of the server before, at the peak and afterwards, and the slowest answer to others meanwhile.
- **Bit flips**: each case flips one bit of a store file, closed or not, then opens it, reads each record and list, makes three
  commits, reads all again, makes a backup, closes and checks the file. One in 16 backups is restored and read. *refused_at_open*,
  *refused_reads* and *reported* count where damage was reported; *without_effect* counts flips in unused blocks or redundant copies.
- **Crash images**: possible contents of a disk after a power loss in a run of commits: each sector that was written since the last
  sync is complete, missing or torn. The store must open, be sound, and hold all answered commits. In the control most syncs are
  left out, which must lose data.
- **Planted blocks**: blocks with valid checksums and the content of another moment, of another block, or none.
- **Commits**: pairs of runs with and without block checksums, on the disk of the machine, medians.
EOF
figures "Kills" server 1000 kills::
figures "Withdrawn rights" server 1000000 revocations::
figures "Failing calls" server 0 io::
figures "Full disks" server 100 disk::a_disk_that_fills_up_repeatedly
figures "Tags" server 40 tags::
figures "Crowds" server 20 crowds::
figures "Bit flips" store 20000 store::redb::tests::flips
figures "Crash images" store 100000 store::redb::tests::crash
figures "Planted blocks" store 5000 store::redb::tests::planted
figures "Commits" store 0 block_checksums_cost --ignored

printf '\nAll parts took %s s.\n' "$SECONDS" >>"$out"
[ "$failed" = 0 ] || printf '\n**This run failed.**\n' >>"$out"
cp "$out" docs/faults.md
exit "$failed"
