/** Which agents run which version: the columns of the board, its rows, and what lies between two versions of an agent. */
import type { Actor, Agent, Label, Version } from "./types";

export const LATEST = "latest";
/** The label whose readers are the users, where there is such a one. */
const LAST = "production";

/** Where one label of one agent is, since when, and who set it there. */
export interface Place {
  version: number;
  at: string;
  actor: Actor | null;
}

export type Group = "behind" | "never" | "current";

export interface ReleaseRow {
  agent: Agent;
  places: ReadonlyMap<string, Place>;
  group: Group;
  /** How many versions the last column is behind the one before it. */
  behind: number;
  /** The newest move of a label. */
  moved: string;
}

/** The columns that are shown where none were chosen: `latest`, then the labels, those that are nearest to it first. */
export function usualColumns(versions: readonly Version[], labels: readonly Label[]): string[] {
  const newest = new Map(versions.map(({ agent_id, version }) => [agent_id, version]));
  const lags = new Map<string, { sum: number; agents: number }>();
  for (const { agent_id, label, version } of labels) {
    const current = newest.get(agent_id);
    if (current === undefined) continue;
    const lag = lags.get(label) ?? { sum: 0, agents: 0 };
    lags.set(label, { sum: lag.sum + current - version, agents: lag.agents + 1 });
  }
  const mean = (label: string): number => (label === LAST ? Infinity : lags.get(label)!.sum / lags.get(label)!.agents);
  const agents = (label: string): number => lags.get(label)!.agents;
  // Of many labels those that most agents bear.
  const most = [...lags.keys()].sort((a, b) => Number(b === LAST) - Number(a === LAST) || agents(b) - agents(a)).slice(0, 3);
  return [LATEST, ...most.sort((a, b) => mean(a) - mean(b) || a.localeCompare(b))];
}

export function releaseRows(
  agents: readonly Agent[],
  versions: readonly Version[],
  labels: readonly Label[],
  columns: readonly string[],
): ReleaseRow[] {
  const places = new Map<string, Map<string, Place>>();
  const put = (id: string, label: string, place: Place): void => {
    if (!places.has(id)) places.set(id, new Map());
    places.get(id)!.set(label, place);
  };
  for (const { agent_id, version, created_at: at, actor } of versions) put(agent_id, LATEST, { version, at, actor });
  for (const { agent_id, label, version, updated_at: at, actor } of labels) put(agent_id, label, { version, at, actor });
  const [last, ...before] = columns.toReversed();
  const shown = agents.filter(({ agent_id, agent_type }) => agent_type === "ai" || (places.get(agent_id)?.size ?? 0) > 1);
  return shown.map((agent): ReleaseRow => {
    const of = places.get(agent.agent_id) ?? new Map<string, Place>();
    const end = of.get(last!)?.version;
    // What waits is in the column before, or, where that has none, in one further ahead.
    const waits = before.find((label) => of.has(label));
    const behind = end === undefined || waits === undefined ? 0 : Math.max(0, of.get(waits)!.version - end);
    const moved = [...of].filter(([label]) => label !== LATEST).map(([, { at }]) => at);
    return {
      agent,
      places: of,
      group: end === undefined ? "never" : behind > 0 ? "behind" : "current",
      behind,
      moved: moved.sort().at(-1) ?? "",
    };
  });
}

export const GROUPS: Group[] = ["behind", "never", "current"];

/** What promoting one label to another changes for an agent, or null where it changes nothing. */
export function step({ places }: ReleaseRow, from: string, to: string): { from: number | null; to: number } | null {
  const source = places.get(from)?.version;
  const target = places.get(to)?.version ?? null;
  return source === undefined || source === target ? null : { from: target, to: source };
}

/** What lies between two versions. */
export interface Gap {
  /** Lines of the persona that were added or removed. */
  lines: number;
  /** Names of the other fields that differ. */
  fields: string[];
}

export function gapOf(answer: { changes: Record<string, unknown>; prompt_diff: string | null }): Gap {
  const lines = (answer.prompt_diff ?? "").split("\n").filter((line, i) => i > 1 && /^[+-]/.test(line)).length;
  return { lines, fields: Object.keys(answer.changes).filter((name) => name !== "persona_prompt") };
}

/** A commit that moved a label. */
export interface Release {
  label: string;
  revision: number;
  created_at: string;
  actor: Actor | null;
  message: string | null;
  moves: { agent_id: string; from: number | null; to: number | null }[];
}

/** Whether each agent went to an older version. */
export const isBack = ({ moves }: Release): boolean =>
  moves.length > 0 && moves.every(({ from, to }) => from !== null && (to === null || to < from));
