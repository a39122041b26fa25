#!/usr/bin/env bash
# Runs the faults of databases, connections and servers in full, 100 cycles or CYCLES=NUMBER, and writes the figures to
# docs/faults-postgres.md. The test command runs one cycle of each kind of fault. SEED=NUMBER sets the seed; by default each run
# makes the same choices. AGENTCFG_PROFILE chooses the profile of the server's binary.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp)
log=$(mktemp)
trap 'rm -f "$out" "$log"' EXIT
profile=${AGENTCFG_PROFILE:-release}
cargo build --locked --profile "$profile" -p agentcfg-server
folder=$profile
[ "$profile" != dev ] || folder=debug
export AGENTCFG_TEST_BINARY=$PWD/target/$folder/agentcfg-server
export CYCLES=${CYCLES:-100} SEED=${SEED:-1} CI=true

cat >"$out" <<EOT
# Faults of PostgreSQL

Written by \`scripts/nemesis.sh\` on $(date -u +%Y-%m-%d) with the seed $SEED. Three servers share a primary with a synchronous standby,
through a proxy that can cut connections. In each cycle eight clients create agents, take places of a plan with a limit, replace
values on conditions, and use keys while these are revoked; in the middle a fault happens, after which the servers must go on within 90 s.

- **Faults**: *Cuts* ends connections at random bytes, also between a commit and its answer. *Crash* stops the primary like a power
  loss of its process; *KilledBackend* kills one of its processes, after which it recovers by itself; *Pause* halts all of them for up to 2 s. *Failover*
  removes the primary and promotes the standby, which gets a new one. *NoStandby* takes the standby away for up to 1.5 s, in which no
  commit ends. *KilledServer* kills a server and starts another one.
- **Checks**: a creation that was answered is there, once; one whose outcome is not known is there once or not at all; one that was
  refused is not there. Each value is a register whose versions in the log give the order of its writes: no read and no write
  shows a state older than one seen before, and each write was made on the version of its condition. The limit of the plan is kept at
  each revision and in each list. No request is accepted with a key after its revocation was answered, and none refused before. The log has no gap,
  and the counters and the lists of all servers agree with it. No answer is a 500, and none takes a minute.
- The tests of the checker (\`tests/postgres/nemesis/checker_tests.rs\`) plant each of these faults in a history and find it.

A violation fails the run, and is printed with its seed.

EOT
failed=0
cargo test --locked -q -p agentcfg-tests --test postgres -- --nocapture nemesis 2>&1 | tee "$log" >&2 || failed=1
sed -n 's/^.*FIGURES /- /p' "$log" >>"$out"
[ "$failed" = 0 ] || echo "- **This run failed.**" >>"$out"
cp "$out" docs/faults-postgres.md
chmod 644 docs/faults-postgres.md
exit "$failed"
