import { ACTIONS, type ChangeEvent, type Label, type ReleasedAgent } from "./generated.js";
import { InputError } from "./errors.js";
import { isSameJson } from "./json.js";
import { type AgentRelease, type Frozen, makeRelease } from "./release.js";

/** All agents that a label releases, at one moment. A snapshot never changes: a release makes the next one. */
export interface Snapshot {
  readonly label: Label;
  /** The agents by their identifiers, in the order of the list. */
  readonly agents: ReadonlyMap<string, AgentRelease>;
  /** The position in the change feed of this state. */
  readonly cursor: string;
}

/** What a new snapshot changed for one agent: `from` is missing for a new one, `to` for one that is no longer released. */
export interface AgentChange {
  readonly agent_id: string;
  readonly from: AgentRelease | undefined;
  readonly to: AgentRelease | undefined;
}

/** One step: the new state, and all that it changed. */
export interface SnapshotChange {
  readonly snapshot: Snapshot;
  readonly changed: readonly AgentChange[];
}

/**
 * The snapshot of these rows. An agent that is as it was in the snapshot before stays the same object. The number of its version
 * does not tell: a store that was restored gives numbers again.
 *
 * @internal
 */
export function makeSnapshot(label: Label, cursor: string, rows: readonly Frozen<ReleasedAgent>[], before?: Snapshot): Snapshot {
  const agents = new Map<string, AgentRelease>();
  for (const row of rows) {
    const known = before?.agents.get(row.agent_id);
    const isSame = known === row || (known?.updated_at === row.updated_at && isSameVersion(known, row));
    agents.set(row.agent_id, isSame ? known : makeRelease(row));
  }
  return Object.freeze({ label, agents, cursor });
}

type Versioned = Pick<AgentRelease, "version" | "config">;

/** Whether two releases of an agent are of one version, whenever the label was moved to it. */
function isSameVersion(one: Versioned, other: Versioned): boolean {
  return one.version === other.version && isSameJson(one.config, other.config);
}

/** @internal */
export function checkLabel(label: string): void {
  if (/^[a-z0-9][a-z0-9._-]{0,35}$/.test(label) && !/^\d+$/.test(label)) return;
  throw new InputError(
    `label must be 1 to 36 of a-z, 0-9, ".", "_" and "-", begin with a letter or digit and not be digits alone, got ${JSON.stringify(label)}`,
  );
}

/** The agents of which two snapshots have different versions, or only one has any. @internal */
export function differences(before: Snapshot | undefined, now: Snapshot): AgentChange[] {
  const changed: AgentChange[] = [];
  for (const [agent_id, to] of now.agents) {
    const from = before?.agents.get(agent_id);
    if (from === undefined || (from !== to && !isSameVersion(from, to))) changed.push(Object.freeze({ agent_id, from, to }));
  }
  for (const [agent_id, from] of before?.agents ?? []) {
    if (!now.agents.has(agent_id)) changed.push(Object.freeze({ agent_id, from, to: undefined }));
  }
  return changed;
}

/** Whether one cursor is certainly before another one. Revisions are compared within one epoch of one workspace alone. @internal */
export function isBefore(one: string, other: string): boolean {
  const [first, second] = [position(one), position(other)];
  return first.epoch === second.epoch && first.revision < second.revision;
}

function position(cursor: string): { epoch: string; revision: number } {
  const [, epoch = cursor, revision = "-1"] = /^(.*)-c(\d+)$/s.exec(cursor) ?? [];
  return { epoch, revision: Number(revision) };
}

/**
 * Whether an event may change what a label releases, other than it is in the snapshot already: it is after the snapshot, and the
 * label moved, or an agent was deactivated or restored. `latest` moves with each change of an agent; a new agent has no other label yet. An event of a later
 * release of the server may change anything.
 *
 * @internal
 */
export function mayChange(event: ChangeEvent, snapshot: Snapshot): boolean {
  if (event.cursor === snapshot.cursor || isBefore(event.cursor, snapshot.cursor)) return false;
  if (!ACTIONS.has(event.type)) return true;
  return Object.entries(event.changes).some(([path, { from, to }]) => {
    const [, ofMany, name = path] = /^agents\/([^/]+)\/(.+)$/s.exec(path) ?? [];
    const agentId = ofMany ?? (event.target.type === "agent" ? event.target.id : undefined);
    if (agentId === undefined) return false;
    const known = snapshot.agents.get(agentId);
    if (name.startsWith("labels/"))
      return name.slice("labels/".length) === snapshot.label && (to ?? undefined) !== known?.version;
    if (snapshot.label === "latest") return true;
    return name === "is_active" && (to === true ? from === false : known !== undefined);
  });
}
