/** Many agents in one change: what is sent, what it would do, and doing it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call, isStatus } from "./api";
import { configOf, NAMES, toBody, toDraft, type Draft } from "./config";
import { agentsChanged } from "./data";
import { encode } from "./json-text";
import { workspace } from "./session";
import type { Agent, Change } from "./types";

/** An agent as `apply` takes it: a field that is left out has its default. */
export type Entry = { agent_id: string } & Record<string, unknown>;

export interface Outcome {
  agent_id: string;
  action: "create" | "update" | "restore" | "deactivate" | "none";
  version: number | null;
  changes: Record<string, Change> | null;
}

/** The most agents of one change. */
export const MOST = 1_000;

/** The whole content of an agent, with a change of its draft. */
export const entryOf = (agent: Agent, change: (draft: Draft) => Draft = (draft) => draft): Entry => ({
  agent_id: agent.agent_id,
  ...toBody(change(toDraft(configOf(agent))), NAMES),
});

/** Entries as the text of a file. */
export const entriesText = (entries: Entry[]): string => `{"agents":[\n${entries.map(encode).join(",\n")}\n]}\n`;

const send = async (agents: Entry[], base: string | null, query: object): Promise<{ cursor: string; results: Outcome[] }> =>
  (
    await call<{ cursor: string; results: Outcome[] }>("POST", "api/agents/apply", {
      query: { workspace_id: workspace.peek()!.id, ...query },
      body: { agents, base: base ?? undefined },
    })
  ).data;

type Place = (id: string, field: string) => string;

/** A refusal that says the agents by their ids, or by their places in files, in place of their numbers. */
const named = ({ status, message, requestId, retryAfter }: ApiError, entries: Entry[], place: Place): ApiError =>
  new ApiError(
    status,
    message.replace(
      /agents\[(\d+)\]\.?(\w*)/g,
      (_, i: string, field: string) => `${place(entries[Number(i)]?.agent_id ?? "", field)}: ${field}`,
    ),
    requestId,
    retryAfter,
  );

export interface Plan {
  entries: Entry[];
  cursor: string;
  outcomes: Outcome[];
}

/** What applying entries would do. `base` is the cursor that they were made at; `stale` is called where that is past. */
export function usePlan(
  entries: Entry[],
  base: string | null,
  stale: () => void,
  place: Place = (id) => id,
): { plan: Plan | null; error: unknown } {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [error, setError] = useState<unknown>(null);
  const turn = useRef(0);
  useEffect(() => {
    const mine = (turn.current += 1);
    setPlan(null);
    setError(null);
    if (!entries.length || entries.length > MOST) return;
    // What is being typed is not asked about letter by letter.
    const timer = setTimeout(() => {
      send(entries, base, { dry_run: true }).then(
        ({ cursor, results }) => turn.current === mine && setPlan({ entries, cursor, outcomes: results }),
        (failed) => {
          if (isStatus(failed, 412)) stale();
          if (turn.current === mine) setError(isStatus(failed, 400) ? named(failed, entries, place) : failed);
        },
      );
    }, 150);
    return () => clearTimeout(timer);
  }, [entries, base]);
  return { plan, error };
}

/** Applies what was planned, if no agent of it has changed since; gives how many agents are others then. */
export async function applyPlan({ entries, cursor, outcomes }: Plan, message: string): Promise<number> {
  await send(entries, cursor, { message });
  agentsChanged();
  return outcomes.filter(({ action }) => action !== "none").length;
}
