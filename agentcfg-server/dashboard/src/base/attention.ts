/** What needs a person: it is there while it is true, and goes when it is not. */
import { hookName } from "./audit-words";
import { providerName } from "./providers";
import { capital, DAY, isolated, list, number, plural, span, until } from "./text";
import type { Agent, ApiKey, Model, StatusEntry, Webhook, Workspace } from "./types";
import { money, outlookLine, percent, PERIODS, type Budget, type Outlook } from "./usage";

export interface StatusChange {
  agent_id: string;
  at: string;
  status: StatusEntry["status"];
  current_task_id: string | null;
  current_task_title: string | null;
}

export type Cure =
  | { kind: "webhook"; id: string }
  | { kind: "budget"; id: string }
  | { kind: "provider" }
  | { kind: "plan" }
  | { kind: "agent"; id: string }
  | { kind: "key"; key: ApiKey };

export interface Point {
  id: string;
  tone: "bad" | "warn";
  /** The sentence: before the name, the name, and after it. */
  before?: string;
  name: string;
  after: string;
  why: string;
  at: number;
  cure: Cure;
  /** The ids of the agents that it is about. */
  about?: (string | null)[];
  /** Whether nothing is left of the budget. */
  full?: boolean;
}

interface Known {
  now: number;
  webhooks: readonly Webhook[];
  budgets: readonly { budget: Budget; name: string; look: Outlook }[];
  agents: readonly Agent[];
  models: readonly Model[];
  changes: readonly StatusChange[];
  keys: readonly ApiKey[];
  plan?: Point | null;
}

const HOUR = 3_600_000;
/** So long on one task is worth a look. */
const LONG = 4 * HOUR;
export const KEY_SOON = 14 * DAY;
const NEAR = 0.8;

/** Why the server has disabled a webhook. */
export const disabledWhy = ({ disabled_reason: reason }: Webhook): string =>
  `${reason === "gone" ? "The receiver answered 410 Gone" : "No delivery succeeded for five days"}. ` +
  "Its place is kept: when you enable it, it goes on from there.";

/** That the plan has no place for one more agent, where it is so. */
export const fullPlan = ({ active_agents: active, agent_limit: limit, plan }: Workspace): Point | null =>
  limit && active! >= limit
    ? {
        id: "plan",
        tone: "warn",
        name: `All ${number(limit)} agents`,
        after: ` of the ${capital(plan)} plan are in use`,
        why: "Delete one, or ask an operator for a larger plan.",
        at: Infinity,
        cure: { kind: "plan" },
      }
    : null;

/** What is broken comes first, then the newest. */
export function attention({ now, webhooks, budgets, agents, models, changes, keys, plan }: Known): Point[] {
  const points: Point[] = plan ? [plan] : [];
  for (const hook of webhooks)
    if (!hook.enabled && hook.disabled_reason)
      points.push({
        id: `webhook ${hook.id}`,
        tone: "bad",
        before: "Webhook ",
        name: hookName(hook.url),
        after: " is disabled",
        why: disabledWhy(hook),
        at: Date.parse(hook.updated_at),
        cure: { kind: "webhook", id: hook.id },
      });
  for (const { budget, name, look } of budgets)
    if (look.used >= NEAR)
      points.push({
        id: `budget ${budget.id}`,
        tone: look.used >= 1 && budget.action === "refuse" ? "bad" : "warn",
        name,
        after: ` has used ${percent(look.used, 0)} of its budget`,
        why: `${money(look.spent)} of ${money(look.limit)} ${PERIODS[budget.period]}. ${outlookLine(budget, look)}.`,
        at: now + look.used,
        cure: { kind: "budget", id: budget.id },
        about: budget.scope === "agent" ? [budget.scope_id] : [],
        full: look.used >= 1,
      });
  const without = new Map<string, Agent[]>();
  for (const agent of agents) {
    const model = models.find(({ id }) => id === agent.model);
    if (agent.agent_type === "ai" && model?.credential === "none")
      without.set(model.provider, [...(without.get(model.provider) ?? []), agent]);
  }
  for (const [provider, of] of without)
    points.push({
      id: `provider ${provider}`,
      tone: "warn",
      name: of.length === 1 ? of[0]!.display_name : plural(of.length, "agent"),
      after: ` ${of.length === 1 ? "has" : "have"} no key for ${providerName(provider)}`,
      why: `Neither you nor the server has one: calls are refused.${of.length > 1 ? ` ${list([...of.slice(0, 3).map(({ display_name }) => isolated(display_name)), ...(of.length > 3 ? [`${of.length - 3} more`] : [])])}.` : ""}`,
      at: Math.max(...of.map(({ updated_at }) => Date.parse(updated_at))),
      cure: { kind: "provider" },
      about: of.map(({ agent_id }) => agent_id),
    });
  const last = new Map<string, StatusChange>();
  for (const change of changes) {
    const before = last.get(change.agent_id);
    // A report of the same task is no new beginning.
    if (before?.status === "working" && change.status === "working" && before.current_task_id === change.current_task_id)
      continue;
    last.set(change.agent_id, change);
  }
  for (const change of last.values()) {
    const length = now - Date.parse(change.at);
    const agent = agents.find(({ agent_id }) => agent_id === change.agent_id);
    if (change.status === "working" && length >= LONG && agent)
      points.push({
        id: `task ${change.agent_id}`,
        tone: "warn",
        name: agent.display_name,
        after: ` is on the same task for ${span(length)}`,
        why: change.current_task_title ?? change.current_task_id ?? "It named no task.",
        at: Date.parse(change.at),
        cure: { kind: "agent", id: change.agent_id },
        about: [change.agent_id],
      });
  }
  for (const key of keys) {
    const left = Date.parse(key.expires_at ?? "") - now;
    if (left < KEY_SOON)
      points.push({
        id: `key ${key.id}`,
        tone: "warn",
        before: "Key ",
        name: key.name,
        after: ` expires in ${until(left)}`,
        why: key.last_used_at ? `Last used ${span(now - Date.parse(key.last_used_at))} ago.` : "It was never used.",
        at: now - left,
        cure: { kind: "key", key },
      });
  }
  return points.sort((a, b) => Number(b.tone === "bad") - Number(a.tone === "bad") || b.at - a.at);
}

/** The server keeps no more changes of an agent than this. */
const MOST = 288;
/** The agents that had more changes than are kept: what was before the first one of them is not known. */
export function busiest(changes: readonly StatusChange[]): Set<string> {
  const counts = new Map<string, number>();
  for (const { agent_id } of changes) counts.set(agent_id, (counts.get(agent_id) ?? 0) + 1);
  return new Set([...counts].filter(([, count]) => count >= MOST).map(([id]) => id));
}

/** How many agents worked, were idle and in an unknown state at some moments, from the changes, oldest first. */
export function statesAt(
  changes: readonly StatusChange[],
  moments: readonly number[],
): Record<"working" | "idle" | "unknown", number[]> {
  const states = new Map<string, StatusEntry["status"] | "unknown">();
  const busy = busiest(changes);
  // What was before the first change is not told: where it is the end of something, the agent was there.
  for (const { agent_id, status } of changes)
    if (!states.has(agent_id)) states.set(agent_id, busy.has(agent_id) ? "unknown" : status === "offline" ? "idle" : "offline");
  const found = { working: [] as number[], idle: [] as number[], unknown: [] as number[] };
  let next = 0;
  for (const moment of moments) {
    while (next < changes.length && Date.parse(changes[next]!.at) <= moment) {
      states.set(changes[next]!.agent_id, changes[next]!.status);
      next += 1;
    }
    for (const [name, counts] of Object.entries(found))
      counts.push([...states.values()].filter((state) => state === name).length);
  }
  return found;
}
