/** The resources that several screens read. */
import { useMemo } from "preact/hooks";
import { isolated } from "./text";
import { lostSince, type Query } from "./api";
import { invalidate, useResource, type Resource, type Topic } from "./cache";
import { heard, mode } from "./feed";
import { learnProviders } from "./providers";
import { can, recheck, workspace } from "./session";
import type {
  Actor,
  Agent,
  ApiKey,
  AuditEntry,
  FullVersion,
  Label,
  Member,
  Model,
  ProviderKey,
  StatusEntry,
  Version,
  Webhook,
} from "./types";

const id = (): string => workspace.value?.id ?? "";
/** Reads something of the workspace, where the role may. */
const useOwn = <T>(topic: Topic, permission: string, path: string, query: Query = {}): Resource<T> =>
  useResource(topic, id() && can(permission) ? path : null, { workspace_id: id(), ...query });

/** The query that names an agent. */
export const agentQuery = ({ agent_id, workspace_id }: Agent) => ({ agent_id, workspace_id });

export const useAgents = (): Resource<Agent[]> => useOwn("agents", "agents:read", "api/agents/configs");
export const useDeleted = (): Resource<Agent[]> => useOwn("agents", "agents:read", "api/agents/configs", { state: "inactive" });
/** One agent, deleted or not, as a list of one or none; its tag is the record's. */
export const useAgent = (agentId: string): Resource<Agent[]> =>
  useOwn("agents", "agents:read", "api/agents/configs", { state: "all", agent_id: agentId });
/** Rows by the agent that each is of. */
export const byAgent = <T extends { agent_id: string }>(rows: readonly T[] | undefined): Map<string, T> =>
  new Map(rows?.map((row) => [row.agent_id, row]));
export function useAgentsById(): Map<string, Agent> {
  const { data } = useAgents();
  return useMemo(() => byAgent(data), [data]);
}
/** What the tabs of one agent show. */
export interface AgentState {
  agent: Agent;
  etag: string | null;
  version: number | null;
  history: Resource<Version[]>;
  labels: Label[];
}

export const useVersions = (): Resource<Version[]> => useOwn("versions", "agents:read", "api/agents/versions");
export const useHistory = (agentId: string): Resource<Version[]> =>
  useOwn("versions", "agents:read", "api/agents/versions", { agent_id: agentId, limit: 1000 });
/** One version of an agent, or none yet. */
export const useVersion = (agent: Agent, version: number | null): Resource<FullVersion> =>
  useResource("versions", version === null ? null : "api/agents/version", { ...agentQuery(agent), version });
export const useLabels = (): Resource<Label[]> => useOwn("versions", "agents:read", "api/agents/labels");
export function useModels(): Resource<Model[]> {
  const read = useOwn<Model[]>("providers", "agents:read", "api/models");
  learnProviders(read.data);
  return read;
}
export const useKeys = (): Resource<ApiKey[]> => useOwn("keys", "api_keys:read", "api/api-keys");
export const useMembers = (): Resource<Member[]> => useOwn("members", "users:read", "api/workspaces/members");
export const useProviderKeys = (): Resource<ProviderKey[]> => useOwn("providers", "settings:read", "api/provider-keys");
export const useWebhooks = (): Resource<Webhook[]> => useOwn("webhooks", "webhooks:read", "api/webhooks");
/** The last entries, without the values of their changes: an entry can be about thousands of agents. */
export const useAudit = (limit: number): Resource<AuditEntry[]> =>
  useOwn("audit", "audit_log:read", "api/audit-log", { limit, view: "summary" });

/**
 * The live status of all agents: from the feed where there is one, else as it was read last, which has no times of reports.
 * The last heard time then stays where no newer report can have come: while the connection is lost, or of an offline agent.
 */
export function useStatuses(): Resource<StatusEntry[]> {
  const read = useOwn<StatusEntry[]>("status", "agents:read", "api/agents/status");
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
  const members = useMembers().data;
  return (actor) => {
    if (!actor) return "Unknown";
    if (actor.type === "system") return "The server";
    if (actor.type !== "api_key") return isolated(members?.find(({ user_id }) => user_id === actor.id)?.name ?? actor.id);
    return isolated(keys?.find((key) => key.id === actor.id)?.name ?? `Key ${actor.id.slice(0, 6)}…`);
  };
}

/** Reads again what an agent that is new, deleted or restored changes; how many are active is told with the session. */
export function agentsChanged(): void {
  invalidate("agents", "status", "versions", "audit");
  void recheck();
}
