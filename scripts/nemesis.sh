#!/usr/bin/env bash
# Runs the faults of databases, connections and servers in full, 100 cycles or CYCLES=NUMBER for each database, and writes the
# figures to docs/faults-postgres.md and docs/faults-etcd.md; with `postgres` or `etcd` as argument, for that database alone. The
# test command runs one cycle of each kind of fault. SEED=NUMBER sets the seed; by default each run makes the same choices.
# AGENTCFG_PROFILE chooses the profile of the server's binary.
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
export CYCLES=${CYCLES:-100} SEED=${SEED:-1} READY_WITHIN=5 CI=true
failed=0

run() { # database, title; the text of the faults is read from the standard input
    cat >"$out" <<EOT
# $2

Written by \`scripts/nemesis.sh\` on $(date -u +%Y-%m-%d) with the seed $SEED and the profile $profile. $(cat)
- **Checks**: a creation that was answered is there, once; one whose outcome is not known is there once or not at all; one that was
  refused is not there. Each value is a register whose versions in the log give the order of its writes: no read and no write
  shows a state older than one seen before, and each write was made on the version of its condition. The limit of the plan is kept at
  each revision and in each list. No request is accepted with a key after its revocation was answered, and none refused before. The log has no gap,
  and the counters and the lists of all servers agree with it. No answer is a 500, and none takes a minute.
- The tests of the checker (\`tests/nemesis/checker_tests.rs\`) plant each of these faults in a history and find it.

A violation fails the run, and is printed with its seed.

EOT
    cargo test --locked -q -p agentcfg-tests --test "$1" -- --nocapture nemesis:: faults:: 2>&1 | tee "$log" >&2 || failed=1
    sed -n 's/^.*FIGURES /- /p' "$log" >>"$out"
    grep -q '^test result: ok' "$log" || echo "- **This run failed.**" >>"$out"
    cp "$out" "docs/faults-$1.md"
    chmod 644 "docs/faults-$1.md"
}

[ "${1:-postgres}" != postgres ] || run postgres "Faults of PostgreSQL" <<'EOT'
Three servers share a primary with a synchronous standby,
through a proxy that can cut connections. In each cycle eight clients create agents, take places of a plan with a limit, replace
values on conditions, and use keys while these are revoked; in the middle a fault happens, after which the servers must go on within 90 s.

- **Faults**: *Cuts* ends connections at random bytes, also between a commit and its answer. *Crash* stops the primary like a power
  loss of its process; *KilledBackend* kills one of its processes, after which it recovers by itself; *Pause* halts all of them for up to 2 s. *Failover*
  removes the primary and promotes the standby, which gets a new one. *NoStandby* takes the standby away for up to 1.5 s, in which no
  commit ends. *KilledServer* kills a server and starts another one.
EOT

[ "${1:-etcd}" != etcd ] || run etcd "Faults of etcd" <<'EOT'
Three servers share a cluster of three members on one machine. Each server reaches each member, and each member the others,
through proxies that can cut connections or hold what passes. In each cycle eight clients create agents, take places of a plan with a limit,
replace values on conditions, and use keys while these are revoked; in the middle a fault happens, after which the servers must go on within 90 s.

- **Faults of the network**: *Cuts* and *PeerCuts* end connections between servers and members, or between members, at random bytes, also
  between a transaction and its answer. *LostAnswers* lets transactions arrive, holds the answers of all members for up to 0.6 s, and then
  loses them, four times. *IsolatedLeader* and *IsolatedFollower* cut a member off from all servers and members; *DeposedLeader* cuts the leader
  off from the members alone, so that servers still ask it; *MutedLeader* loses what the leader sends to the members, while it hears them;
  *NoMajority* cuts all members off from each other; *CutOffServer* cuts a server off from all members. These last up to 4.2 s. In half of
  the cycles the connections go on afterwards, in the other half they pass nothing any more, and each end has to find out.
- **Faults of processes**: *KilledLeader* kills the leader and starts it again; *PausedLeader* halts it for up to 4.2 s; *KilledServer* kills a
  server and starts another one.
- **Ready again**: once the cluster answers a read that takes a majority, asked without a server and a proxy in between, `/readyz` of all servers
  must be 200 within 5 s; while a fault lasts that leaves a majority, and after each fault. The figures have the longest time of each fault.
- That these cycles can find something was tried on 2026-11-22: twelve of them found 8 violations in a store that repeats transactions
  without settling them first, and 7 in one that reads from any member.
EOT
exit "$failed"
