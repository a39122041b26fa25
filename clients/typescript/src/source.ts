import type { Health } from "./mirror.js";
import type { AgentRelease } from "./release.js";
import type { Snapshot, SnapshotChange } from "./snapshot.js";
import type { Work } from "./status-scope.js";
import { UnknownAgentError } from "./errors.js";

/** Where a program reads its agents: `AgentCfg`, or a fake in tests. */
export interface AgentSource {
  /** The agent as the label releases it now, from memory. @throws UnknownAgentError, NotReadyError */
  agent(agentId: string): AgentRelease;
  /** The same, or nothing for an agent that the label does not release. @throws NotReadyError */
  find(agentId: string): AgentRelease | undefined;
  /** All agents of one moment. Keep it where several agents must be of the same release across an `await`. */
  readonly snapshot: Snapshot;
  /** How the state in memory relates to the server. */
  readonly health: Health;
  /** Calls the listener once for each step, however many agents it changed. Returns what ends the calls. */
  onChange(listener: (change: SnapshotChange) => void): () => void;
  /** Reports the agent as working while the callback runs. */
  reportStatus<T>(agentId: string, work: Work, run: () => Promise<T> | T): Promise<T>;
  /** Ends streams and timers. */
  close(): Promise<void>;
}

/** The agent of a snapshot. @internal */
export function agentOf(snapshot: Snapshot, agentId: string): AgentRelease {
  const found = snapshot.agents.get(agentId);
  if (found !== undefined) return found;
  const near = nearest(agentId, [...snapshot.agents.keys()]);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  throw new UnknownAgentError(`the label ${snapshot.label} releases no agent ${JSON.stringify(agentId)}${hint}`);
}

/** The name that is at most two letters away. */
function nearest(name: string, names: readonly string[]): string | undefined {
  const ranked = names.map((other) => ({ other, steps: distance(name, other) })).sort((a, b) => a.steps - b.steps);
  return ranked[0] !== undefined && ranked[0].steps <= 2 ? ranked[0].other : undefined;
}

function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > 2) return 3;
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const change = one[i - 1] === other[j - 1] ? 0 : 1;
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + change));
    }
    row = next;
  }
  return row[other.length]!;
}
