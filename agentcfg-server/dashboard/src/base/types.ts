/** Resources of the API, as the server sends them. */
import type { Config, Limits } from "./agent-fields";

export type { Config };
export type AgentType = Config["agent_type"];

export interface Agent extends Config {
  id: string;
  workspace_id: string;
  agent_id: string;
  is_active: boolean;
  created_at: string;
  updated_at: string;
}

export type Status = "working" | "idle" | "offline";

export interface StatusEntry {
  agent_id: string;
  display_name: string;
  status: Status;
  current_task_id: string | null;
  current_task_title: string | null;
  /** Only in the events of the feed; null before any report. */
  reported_at?: string | null;
}

export interface Actor {
  type: "api_key" | "user" | "operator" | "system";
  id: string;
}

export interface Version {
  agent_id: string;
  version: number;
  created_at: string;
  actor: Actor | null;
  message: string | null;
  restored_from: number | null;
  labels: string[];
}

export interface FullVersion extends Version {
  config: Config;
}

export interface Label {
  agent_id: string;
  label: string;
  version: number;
  updated_at: string;
  actor: Actor | null;
}

export interface Promotion {
  agent_id: string;
  label: string;
  version: number;
  previous_version: number | null;
}

export interface ApiKey {
  id: string;
  workspace_id: string;
  name: string;
  environment: "production" | "development";
  scope: "read" | "write" | "admin";
  rate_limit: number;
  expires_at: string | null;
  created_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
  /** Where the key is limited below its scope. */
  permissions?: string[];
  agents?: string[];
  label?: string;
}

export interface NewApiKey extends ApiKey {
  key: string;
}

export type Role = "viewer" | "member" | "admin" | "owner";

export interface Member {
  user_id: string;
  /** As the identity provider said at the last sign-in. */
  name?: string;
  email?: string;
  role: Role;
  created_at: string;
}

export interface Model {
  id: string;
  provider: string;
  /** The API that calls of it speak, and what people call the provider. */
  provider_api?: string;
  provider_name?: string;
  display_name: string;
  status: "available" | "coming_soon";
  credential: "workspace" | "managed" | "none";
  /** USD per million tokens, where they are known. */
  input_price?: number | null;
  output_price?: number | null;
}

export interface ProviderKey {
  provider: string;
  /** Tells two keys apart, and nothing of either. */
  fingerprint: string;
  created_at: string;
  updated_at: string;
}

export interface Change {
  from: unknown;
  to: unknown;
}

export interface AuditEntry {
  id: string;
  workspace_id: string;
  actor: Actor;
  action: string;
  target: { type: string; id: string };
  created_at: string;
  /** Their values are left out of a summary. */
  changes: Record<string, Change | null> | null;
  /** How many changes there are, where a summary has not all of them. */
  paths?: number;
  revision: number;
  message?: string | null;
}

export interface Webhook {
  id: string;
  workspace_id: string;
  url: string;
  types: string[];
  description: string | null;
  ordered: boolean;
  enabled: boolean;
  disabled_reason: "gone" | "failing" | null;
  cursor: string;
  created_at: string;
  updated_at: string;
  secret?: string;
}

export interface Delivery {
  id: string;
  type: string;
  revision: number | null;
  attempt: number;
  at: string;
  status: number | null;
  error: string | null;
  duration_ms: number;
  response: string | null;
  next_attempt_at: string | null;
}

export type Plan = "free" | "pro" | "team" | "enterprise";

export interface Workspace {
  id: string;
  name: string;
  plan: Plan;
  role: Role | null;
  scope: string | null;
  permissions: string[];
  active_agents?: number;
  agent_limit?: number | null;
  limits?: Limits;
}

export interface Whoami {
  type: "api_key" | "user";
  id: string;
  expires_at: string | null;
  workspaces: Workspace[];
}
