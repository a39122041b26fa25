#!/usr/bin/env bash
# Runs the tests with damaged files, power losses and full disks in full, and writes their figures to docs/faults.md. The test
# command runs fewer cases of each. SEED=NUMBER sets the seed; by default each run tries the same cases.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0
export RUST_BACKTRACE=0

figures() { # cases, filter, further arguments of the test program
    local cases=$1 filter=$2
    shift 2
    CASES=$cases cargo test --locked -q --release -p agentcfg-core --all-features --lib -- "$filter" --nocapture "$@" 2>&1 |
        tee >(cat >&2) | sed -n 's/^.*FIGURES /- /p' >>"$out" || failed=1
}

cat >"$out" <<EOF
# Faults of the embedded store

Written by \`scripts/fault.sh\` on $(date -u +%Y-%m-%d) with the seed ${SEED:-1}. A wrong answer, an abort, a panic of the engine that a
client can see, or damage that is reported as sound fails the run, and this page reports it.

- **Bit flips**: each case flips one bit of a store file, closed or not, then opens it, reads each record and list, makes three
  commits, reads all again, makes a backup, closes and checks the file. One in 16 backups is restored and read. *refused_at_open*,
  *refused_reads* and *reported* count where damage was reported; *without_effect* counts flips in unused blocks or redundant copies.
- **Crash images**: possible contents of a disk after a power loss in a run of commits: each sector that was written since the last
  sync is complete, missing or torn. The store must open, be sound, and hold all answered commits.
- **The control**: the same run with most syncs left out must lose data, which shows that the test can find a loss.
- **Commits**: pairs of runs with and without block checksums, on the disk of the machine, medians.

EOF
figures 20000 store::redb::tests::flips
figures 100000 store::redb::tests::crash
figures 0 block_checksums_cost --ignored

[ "$failed" = 0 ] || echo "- **This run failed.**" >>"$out"
cp "$out" docs/faults.md
exit "$failed"
