/** Audit entries in words. */
import { FIELDS, numberRows, shown, textOf, type FieldName, type NumberRow } from "./config";
import { capital, isolated, list, moment, number, plural } from "./text";
import type { AuditEntry, Change } from "./types";

/** What is done, by its family. */
export const DID: Record<string, string> = {
  agent: "created updated deactivated restored rolled_back",
  agents: "applied",
  label: "set removed promoted restored",
  api_key: "created revoked rotated",
  member: "set removed",
  provider_key: "saved deleted",
  workspace: "created updated exported",
  webhook: "created updated deleted disabled secret_rotated replayed",
  budget: "set removed settled threshold_reached",
};
/** The targets of actions. */
export const TYPES: Record<string, string> = {
  agent: "Agents",
  api_key: "API keys",
  member: "Members",
  provider_key: "Provider keys",
  workspace: "Workspace",
  webhook: "Webhooks",
  budget: "Budgets",
};
export const FAMILIES = Object.keys(DID);
export const ACTIONS = FAMILIES.flatMap((family) => DID[family]!.split(" ").map((did) => `${family}.${did}`));

/** The actions whose words are not those of their names. */
const VERBS: Record<string, string> = {
  "agent.updated": "changed",
  "agent.deactivated": "deleted",
  "agents.applied": "applied a set of agents",
  "label.set": "set a label on",
  "label.removed": "removed a label from",
  "label.promoted": "promoted a label",
  "label.restored": "restored a label",
  "member.set": "set the role of",
  "budget.threshold_reached": "warns of the budget",
  "webhook.secret_rotated": "rotated the secret of the webhook",
};

/** "rolled back", "created the webhook". */
export function verb(action: string): string {
  const [family, did] = action.replace("api_", "").replaceAll("_", " ").split(".");
  return VERBS[action] ?? (family === "agent" || family === "member" ? did! : `${did} the ${family}`);
}

/** Fields of records that are called otherwise on their screens. */
const CALLED: Record<string, string> = {
  url: "Address",
  types: "Events",
  ordered: "In order",
  disabled_reason: "Reason",
  limit_usd: "Limit",
};

/** The field as people call it; labels are recorded as `agents/<id>/labels/<name>`, fields of several agents as `agents/<id>/<name>`. */
const called = (name: string): string =>
  FIELDS[name as FieldName]?.label ??
  CALLED[name] ??
  (name.includes("/") ? name.replace(/^agents\/|labels\//g, "") : capital(name.replaceAll("_", " ")));

interface Row extends NumberRow {
  long: boolean;
  /** It is the number of a version. */
  version?: boolean;
}

/** Single numbers in place of the whole mapping. */
export function changeRows(changes: Record<string, Change>): Row[] {
  return Object.entries(changes).flatMap(([name, { from, to }]): Row[] => {
    if (FIELDS[name as FieldName]?.kind === "numbers" && ((from && typeof from === "object") || (to && typeof to === "object"))) {
      return numberRows(from, to).map((row) => ({ ...row, long: false }));
    }
    if (FIELDS[name as FieldName]?.kind === "json") {
      const [before, after] = [from, to].map((value) => textOf(name as FieldName, value) || null);
      return [{ label: called(name), from: before, to: after, long: true }];
    }
    const long = [from, to].some((value) => typeof value === "string" && (value.includes("\n") || value.length > 120));
    return [{ label: called(name), from, to, long, version: name.includes("labels/") }];
  });
}

/** A value for reading, a time as people write it. */
export const said = (value: unknown): string =>
  typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? moment(Date.parse(value)) : isolated(shown(value));

const SHOWN = 3;
/** "a, b and c", or "a, b, c and 4 more". */
const some = (parts: string[]): string =>
  list(parts.length > SHOWN + 1 ? [...parts.slice(0, SHOWN), `${parts.length - SHOWN} more`] : parts);

/** What was done to an agent among several, as its recorded fields say it, in the order in which it is told. */
const DONE = ["created", "updated", "restored", "deleted", "moved"] as const;
type Done = (typeof DONE)[number];

/** An agent among several that one entry is about. */
export interface OfAgent {
  id: string;
  changes: Record<string, Change>;
}

function doneTo(changes: Record<string, Change>, ofLabels: boolean): Done {
  const active = changes["is_active"];
  return ofLabels ? "moved" : !active ? "updated" : active.from === null ? "created" : active.to ? "restored" : "deleted";
}

/** The agents that an entry is about, by what was done to them; nothing where it is about one thing. */
export function bulk({ action, changes }: AuditEntry): [done: Done, agents: OfAgent[]][] {
  if (!/^agents|^label.(promoted|restored)/.test(action)) return [];
  const found = new Map<string, OfAgent>();
  for (const [path, change] of Object.entries(changes ?? {})) {
    const [, id, name] = /^agents\/([^/]+)\/(.+)$/.exec(path) ?? [];
    if (!id) continue;
    if (!found.has(id)) found.set(id, { id, changes: {} });
    if (change) found.get(id)!.changes[name!] = change;
  }
  const all = [...found.values()];
  return DONE.map((done): [Done, OfAgent[]] => [
    done,
    all.filter(({ changes }) => doneTo(changes, action.startsWith("label")) === done),
  ]).filter(([, agents]) => agents.length);
}

/** "1,000 agents created", "312 agents: 12 created and 300 updated", "production: 5 agents". */
function bulkLine(groups: [Done, OfAgent[]][]): string {
  const all = groups.flatMap(([, agents]) => agents);
  const agents = plural(all.length, "agent");
  if (groups[0]![0] === "moved") {
    const labels = new Set(all.flatMap(({ changes }) => Object.keys(changes).map((name) => name.replace("labels/", ""))));
    return `${some([...labels])}: ${agents}`;
  }
  return groups.length > 1
    ? `${agents}: ${list(groups.map(([done, of]) => `${number(of.length)} ${done}`))}`
    : `${agents} ${groups[0]![0]}`;
}

/** What the action, the target or the id of a record says already. */
const KNOWN = /^(is_active|revoked_at|replaced_by|cursor|provider|made_at|period|scope.*)$/;
/** One line of a few words. */
const BRIEF = /^.{0,28}$/;

/** The fields of a record that changed: short values, else the names of the fields. */
export function fieldsLine(changes: Record<string, Change | null>, action = ""): string {
  const brief = (value: unknown): boolean => typeof value !== "object" && BRIEF.test(said(value));
  return some(
    Object.entries(changes).flatMap(([name, change]) => {
      if (!change) return called(name);
      return changeRows({ [name]: change }).map(({ label, from, to, version }) => {
        const v = version ? "v" : "";
        return brief(to) && (brief(from) || !action.endsWith("created"))
          ? `${label}: ${brief(from) ? `${v}${said(from)} → ` : ""}${v}${said(to)}`
          : label;
      });
    }),
  );
}

/** What changed, in a line: short values, else the names of the fields; of many agents how many, or some of their ids. */
export function changeLine(entry: AuditEntry): string {
  const { action, changes, paths } = entry;
  const all = Object.entries(changes ?? {}).filter(([name]) => !KNOWN.test(name));
  const parts = (path: RegExp): string => some([...new Set(all.flatMap(([name]) => path.exec(name)?.[1] ?? []))]);
  const isSummary = all.some(([, change]) => !change);
  const groups = bulk(entry);
  const ofLabel = action.startsWith("label.");
  if (!isSummary && groups.length && (ofLabel || groups.flatMap(([, agents]) => agents).length > SHOWN + 1))
    return bulkLine(groups);
  const threshold = changes?.["threshold"];
  if (threshold) return `${threshold.to} % of $${changes!["limit_usd"]!.to} used`;
  // A summary has some of many changes.
  const ids = parts(/^agents\/([^/]+)/).replace(/( and \S+)( more)?$/, paths ? " and more" : "$&");
  const ofOne = action === "label.set" || action === "label.removed";
  if (ids && !ofOne) return ofLabel ? `${parts(/([^/]+)$/)}: ${ids}` : ids;
  return fieldsLine(Object.fromEntries(all.map(([name, change]) => [name.replace(/^agents\/[^/]+\//, ""), change])), action);
}

/** An address without its protocol, its query and a slash at its end. */
export const hookName = (url: string): string => url.replace(/^https?:\/\/|[?#].*|\/$/g, "");

/** The name of what an entry is about, from what the entry itself holds where it does. */
export function targetName(entry: AuditEntry, known: ReadonlyMap<string, string>): string {
  const of = (name: string): unknown => entry.changes?.[name]?.to ?? entry.changes?.[name]?.from;
  const { type, id } = entry.target;
  const named = known.get(`${type} ${id}`) ?? of("display_name") ?? of("name") ?? of("url") ?? id;
  return typeof named === "string" ? isolated(type === "webhook" ? hookName(named) : named) : id;
}
