/** Audit entries in words. */
import { NAMES } from "./config";
import type { AuditEntry, Change, Config } from "./types";

const VERBS: Record<string, string> = {
  "agent.created": "created",
  "agent.updated": "changed",
  "agent.deactivated": "deleted",
  "agent.restored": "restored",
  "agent.rolled_back": "rolled back",
  "agents.applied": "applied a set of agents",
  "label.set": "set a label on",
  "label.removed": "removed a label from",
  "label.promoted": "promoted a label",
  "api_key.created": "created the key",
  "api_key.revoked": "revoked the key",
  "api_key.rotated": "rotated the key",
  "member.set": "set the role of",
  "member.removed": "removed",
  "provider_key.saved": "saved the provider key",
  "provider_key.deleted": "deleted the provider key",
  "workspace.created": "created the workspace",
  "workspace.updated": "changed the workspace",
  "workspace.exported": "exported the workspace",
  "webhook.created": "created the webhook",
  "webhook.updated": "changed the webhook",
  "webhook.deleted": "deleted the webhook",
  "webhook.disabled": "disabled the webhook",
  "webhook.secret_rotated": "rotated the secret of the webhook",
  "webhook.replayed": "replayed the webhook",
};

export const ACTIONS = Object.keys(VERBS);
export const verb = (action: string): string => VERBS[action] ?? action;

/** The field as people call it; labels are recorded as `labels/<name>`. */
const called = (name: string): string => NAMES[name as keyof Config] ?? name.replace(/^labels\//, "").replaceAll("_", " ");

const HIDDEN = new Set(["id", "workspace_id", "created_at", "updated_at"]);

/** The names of what changed, for a line of text. */
export const changedNames = (entry: AuditEntry): string[] =>
  Object.keys(entry.changes ?? {})
    .filter((name) => !HIDDEN.has(name))
    .map(called);

/** Single parameters in place of the whole mapping. */
export function changeRows(changes: Record<string, Change>): { label: string; from: unknown; to: unknown; long: boolean }[] {
  return Object.entries(changes).flatMap(([name, { from, to }]) => {
    if (name === "parameters" && ((from && typeof from === "object") || (to && typeof to === "object"))) {
      const [old, next] = [(from ?? {}) as Record<string, unknown>, (to ?? {}) as Record<string, unknown>];
      return [...new Set([...Object.keys(old), ...Object.keys(next)])]
        .filter((key) => String(old[key]) !== String(next[key]))
        .map((key) => ({ label: key, from: old[key] ?? null, to: next[key] ?? null, long: false }));
    }
    const long = [from, to].some((value) => typeof value === "string" && (value.includes("\n") || value.length > 120));
    return [{ label: called(name), from, to, long }];
  });
}

/** The name of what an entry is about, from what the entry itself holds where it does. */
export function targetName(entry: AuditEntry, known: ReadonlyMap<string, string>): string {
  const named = entry.changes?.["display_name"] ?? entry.changes?.["name"];
  const { type, id } = entry.target;
  return (
    known.get(`${type} ${id}`) ?? (typeof named?.to === "string" ? named.to : typeof named?.from === "string" ? named.from : id)
  );
}
