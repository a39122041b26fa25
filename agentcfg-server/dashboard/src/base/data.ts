/** The resources that several screens read. */
import { isStatus, lostSince } from "./api";
import { useResource, type Resource } from "./cache";
import { heard, mode } from "./feed";
import { can, workspace } from "./session";
import type { Actor, Agent, ApiKey, AuditEntry, Label, Member, Model, ProviderKey, StatusEntry, Version, Webhook } from "./types";

const id = (): string => workspace.value?.id ?? "";
const when = (permission: string, path: string): string | null => (id() && can(permission) ? path : null);

export const useAgents = (): Resource<Agent[]> =>
  useResource("agents", when("agents:read", "api/agents/configs"), { workspace_id: id() });
export const useDeleted = (): Resource<Agent[]> =>
  useResource("agents", when("agents:read", "api/agents/configs"), { workspace_id: id(), state: "inactive" });
/** One agent, deleted or not, as a list of one or none; its tag is the record's. */
export const useAgent = (agentId: string): Resource<Agent[]> =>
  useResource("agents", when("agents:read", "api/agents/configs"), { workspace_id: id(), state: "all", agent_id: agentId });
export const useVersions = (): Resource<Version[]> =>
  useResource("versions", when("agents:read", "api/agents/versions"), { workspace_id: id() });
export const useHistory = (agentId: string): Resource<Version[]> =>
  useResource("versions", when("agents:read", "api/agents/versions"), { workspace_id: id(), agent_id: agentId, limit: 1000 });
export const useLabels = (): Resource<Label[]> =>
  useResource("versions", when("agents:read", "api/agents/labels"), { workspace_id: id() });
export const useModels = (): Resource<Model[]> =>
  useResource("providers", when("agents:read", "api/models"), { workspace_id: id() });
export const useKeys = (): Resource<ApiKey[]> =>
  useResource("keys", when("api_keys:read", "api/api-keys"), { workspace_id: id() });
export const useMembers = (): Resource<Member[]> =>
  useResource("members", when("users:read", "api/workspaces/members"), { workspace_id: id() });
export const useProviderKeys = (): Resource<ProviderKey[]> =>
  useResource("providers", when("settings:read", "api/provider-keys"), { workspace_id: id() });
export const useWebhooks = (): Resource<Webhook[]> =>
  useResource("webhooks", when("webhooks:read", "api/webhooks"), { workspace_id: id() });
export const useAudit = (limit: number): Resource<AuditEntry[]> =>
  useResource("audit", when("audit_log:read", "api/audit-log"), { workspace_id: id(), limit });

/**
 * The live status of all agents: from the feed where there is one, else as it was read last, which has no times of reports.
 * The last heard time then stays where no newer report can have come: while the connection is lost, or of an offline agent.
 */
export function useStatuses(): Resource<StatusEntry[]> {
  const read = useResource<StatusEntry[]>("status", when("agents:read", "api/agents/status"), { workspace_id: id() });
  const live = heard.value;
  if (!read.data) return read;
  const follows = mode.value === "live";
  const lost = lostSince.value !== null;
  const data = read.data.map((entry) => {
    const last = live.get(entry.agent_id);
    if (!last || follows) return last ?? entry;
    return last.status === entry.status && (lost || entry.status === "offline")
      ? { ...entry, reported_at: last.reported_at }
      : entry;
  });
  return { ...read, data };
}

/** How actors are called: a key by its name, where the role may read it. */
export function useNames(): (actor: Actor | null) => string {
  const keys = useKeys().data;
  return (actor) => {
    if (!actor) return "Unknown";
    if (actor.type === "system") return "The server";
    if (actor.type !== "api_key") return actor.id;
    return keys?.find((key) => key.id === actor.id)?.name ?? `Key ${actor.id.slice(0, 6)}…`;
  };
}

export const PROVIDERS = { anthropic: "Anthropic", openai: "OpenAI" } as const;

export const missing = (error: unknown): boolean => isStatus(error, 404, 405);
