/** Moves of a label: tried without a change first, then made against what was seen, and taken back. */
import { call, isStatus } from "../../base/api";
import { invalidate } from "../../base/cache";
import { byAgent } from "../../base/data";
import type { Release } from "../../base/releases";
import { workspace } from "../../base/session";
import { plural } from "../../base/text";
import type { Config, Label, Promotion } from "../../base/types";
import { attempt, badToast, toast } from "../../parts/feedback";

export interface Move {
  agent_id: string;
  from: number | null;
  /** Null where the label is taken away. */
  to: number | null;
}

export type Wanted = { of: string; version: number; to: string } | { from: string; to: string; agents: string[] | "all" };

export interface Plan {
  wanted: Wanted;
  workspace: string;
  moves: Move[];
  /** The cursor that the moves were read at. */
  base: string | null;
  /** The models of the versions that are known, by agent and version. */
  models: ReadonlyMap<string, string | null>;
}

interface Released {
  agent_id: string;
  version: number;
  config: Config;
}

const movesOf = (rows: (Omit<Promotion, "version"> & { version: number | null })[]): Move[] =>
  rows.map(({ agent_id, version, previous_version }) => ({ agent_id, from: previous_version, to: version }));

/** The agents that bear a label, with the cursor of the moment. */
async function released(id: string, label: string, agent?: string): Promise<{ rows: Released[]; cursor: string | null }> {
  const { data, headers } = await call<Released[]>("GET", "api/agents/released", {
    query: { workspace_id: id, label, agent_id: agent },
  });
  return { rows: data, cursor: headers.get("Change-Cursor") };
}

/** What would move, as the server says it. */
export async function preview(wanted: Wanted): Promise<Plan> {
  const id = workspace.peek()!.id;
  const models = new Map<string, string | null>();
  const learn = ({ rows }: { rows: Released[] }): void => {
    for (const { agent_id, version, config } of rows) models.set(`${agent_id} ${version}`, config.model);
  };
  if ("of" in wanted) {
    const { data } = await call<Label[]>("GET", "api/agents/labels", {
      query: { workspace_id: id, agent_id: wanted.of, label: wanted.to },
    });
    const from = data[0]?.version ?? null;
    for (const version of [from, wanted.version]) {
      if (version === null) continue;
      const { data: full } = await call<{ config: Config }>("GET", "api/agents/version", {
        query: { workspace_id: id, agent_id: wanted.of, version },
      });
      models.set(`${wanted.of} ${version}`, full.config.model);
    }
    return { wanted, workspace: id, moves: [{ agent_id: wanted.of, from, to: wanted.version }], base: null, models };
  }
  const { from, to, agents } = wanted;
  const alone = agents !== "all" && agents.length === 1 ? agents[0] : undefined;
  // The cursor is read first: what moves after it is seen by the server as newer.
  const source = await released(id, from, alone);
  learn(source);
  learn(await released(id, to, alone));
  // Without the base: what moves meanwhile is refused when it is done.
  const body = { from, to, ...(agents === "all" ? {} : { agent_ids: agents }) };
  const { data } = await call<Promotion[]>("POST", "api/agents/labels/promote", {
    query: { workspace_id: id, dry_run: true },
    body,
  });
  return { wanted, workspace: id, moves: movesOf(data), base: source.cursor, models };
}

/** Makes the moves. A 412 says that what was seen does not hold any more: nothing has moved then. */
export async function act(plan: Plan, moves: Move[], message: string): Promise<void> {
  const { wanted, workspace: id, base } = plan;
  if ("of" in wanted) {
    await call("PUT", "api/agents/labels", {
      query: { workspace_id: id, agent_id: wanted.of, label: wanted.to, message },
      body: { version: wanted.version, expected_version: moves[0]!.from },
    });
    return;
  }
  await call("POST", "api/agents/labels/promote", {
    query: { workspace_id: id, message },
    body: { from: wanted.from, to: wanted.to, base, agent_ids: moves.map(({ agent_id }) => agent_id) },
  });
}

/** What putting a label back to a revision would move, and the cursor it was seen at. */
export async function previewRestore(label: string, revision: number): Promise<{ moves: Move[]; base: string | null }> {
  const id = workspace.peek()!.id;
  // No agent has an id of this form: the answer is the cursor alone.
  const { cursor } = await released(id, label, " ");
  const { data } = await call<Promotion[]>("POST", "api/agents/labels/restore", {
    query: { workspace_id: id, dry_run: true },
    // Without the base: what moves meanwhile is refused when it is done.
    body: { label, revision },
  });
  return { moves: movesOf(data), base: cursor };
}

export async function putBack(
  label: string,
  revision: number,
  base: string | null,
  workspace_id = workspace.peek()!.id,
): Promise<void> {
  const { data } = await call<Promotion[]>("POST", "api/agents/labels/restore", {
    query: { workspace_id },
    body: { label, revision, base },
  });
  invalidate("versions", "audit");
  toast(`${label} is put back on ${plural(data.length, "agent")}.`);
}

/** How moves that were just made are taken back, if nothing came after them. Another workspace may be shown by then. */
export async function undoOf({ wanted, workspace: id }: Plan, moves: Move[]): Promise<(() => Promise<void>) | null> {
  const label = wanted.to;
  const { cursor } = await released(id, label, " ");
  const { data } = await call<Release[]>("GET", "api/agents/labels/history", { query: { workspace_id: id, label, limit: 1 } });
  const mine = byAgent(moves);
  const last = data[0];
  if (!last || last.moves.length !== moves.length || !last.moves.every(({ agent_id, to }) => mine.get(agent_id)?.to === to))
    return null;
  return () =>
    attempt("Not undone.", async () => {
      try {
        await putBack(label, last.revision - 1, cursor, id);
      } catch (error) {
        if (!isStatus(error, 412)) throw error;
        badToast(`${label} was moved since. Open the history.`);
      }
    });
}
