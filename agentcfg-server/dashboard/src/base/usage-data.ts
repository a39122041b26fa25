/** Reads usage and budgets, where the role may and the server has them. */
import { useMemo } from "preact/hooks";
import { useResource, type Resource } from "./cache";
import { useAgents, useKeys, useLabels, useModels, useVersions } from "./data";
import { releaseRows, usualColumns, type Release } from "./releases";
import { can, workspace } from "./session";
import { DAY, now, plural } from "./text";
import { HOUR, iso, spanOf, weekdays, type Budget, type By, type Range, type Span, type UsageRow } from "./usage";
import type { Actor } from "./types";

/** Calls are no events of the feed. */
const EACH = 60_000;

const useOwn = <T>(path: string, query: Parameters<typeof useResource>[2] = {}, read = true): Resource<T> =>
  useResource("usage", read && can("analytics:read") ? path : null, { workspace_id: workspace.value!.id, ...query }, EACH);

export const useUsage = (query: Parameters<typeof useResource>[2], read = true): Resource<UsageRow[]> =>
  useOwn("api/usage", query, read);
/** A server without budgets has none. */
export const useBudgets = (): Resource<Budget[]> => useOwn("api/budgets");

export interface Call {
  id: string;
  ended_at: string;
  agent_id: string;
  version: number | null;
  label: string | null;
  actor: Actor | null;
  provider: string;
  model: string | null;
  status: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: string | null;
  first_byte_ms: number | null;
  duration_ms: number;
  request_id: string | null;
}

export const useCalls = (query: Parameters<typeof useResource>[2], read = true): Resource<Call[]> =>
  useOwn("api/usage/calls", query, read);

/** A range that ends with the running hour; it stays the same object within it. */
export function useSpan(range: Range): Span {
  const hour = Math.floor(now.value / HOUR);
  return useMemo(() => spanOf(range, hour * HOUR), [range, hour]);
}

export const within = ({ from, to }: { from: number; to: number }) => ({ from: iso(from), to: iso(to) });

/** How much of a week's cost falls on each day of it, by the last four weeks. */
export function useWeekdays(read = true): number[] {
  const today = Math.floor(now.value / DAY) * DAY;
  const { data } = useUsage({ ...within({ from: today - 28 * DAY, to: today }), by: "day" }, read);
  return useMemo(() => weekdays(data ?? [], today + DAY), [data, today]);
}

/** The label that users get, and the agents on which it is behind the one before it, as on the board. */
export function useBehind(): { label: string | undefined; behind: ReadonlySet<string> } {
  const agents = useAgents().data;
  const labels = useLabels().data;
  const versions = useVersions().data;
  return useMemo(() => {
    const columns = labels && versions ? usualColumns(versions, labels) : [];
    const label = columns.slice(1).at(-1);
    const rows = label && agents ? releaseRows(agents, versions!, labels!, columns) : [];
    return { label, behind: new Set(rows.filter(({ group }) => group === "behind").map(({ agent }) => agent.agent_id)) };
  }, [agents, labels, versions]);
}

/** The label that users get, and its moves, newest first, with what they are read from. */
export function useMoves(agent?: string): { label: string | undefined; moves: Release[]; read: Resource<unknown[]> } {
  const { label } = useBehind();
  const labels = useLabels();
  const versions = useVersions();
  const found = useResource<Omit<Release, "label">[]>("versions", label ? "api/agents/labels/history" : null, {
    workspace_id: workspace.value!.id,
    label,
    agent_id: agent,
    limit: 200,
  });
  const { data } = found;
  const moves = useMemo(() => (data ?? []).map((row) => ({ ...row, label: label! })), [data]);
  return { label, moves, read: label ? found : labels.data ? versions : labels };
}

/** What the values of a grouping are called. */
export function useCalled(by: By): (id: string | null, others?: number) => string {
  const agents = useAgents().data;
  const models = useModels().data;
  const keys = useKeys().data;
  return useMemo(() => {
    const named = new Map<string, string>(
      by === "model"
        ? models?.map(({ id, display_name }) => [id, display_name])
        : by === "key"
          ? keys?.map(({ id, name }) => [id, name])
          : agents?.map(({ agent_id, display_name }) => [agent_id, display_name]),
    );
    return (id, others) => {
      if (id === "") return others ? plural(others, "other") : "All others";
      if (id === null) return { agent: "No agent", version: "No agent", model: "No model named", key: "Signed-in people" }[by];
      if (by !== "version") return named.get(id) ?? id;
      const [agent, version] = id.split(":");
      // The name is cut where it is long, the version before it is not.
      return `${version ? `v${version}` : "No version"} of ${named.get(agent!) ?? agent}`;
    };
  }, [by, agents, models, keys]);
}
