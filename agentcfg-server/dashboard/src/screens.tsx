/** The screens by the first part of their address: what each needs, and where it is in the navigation. */
import type { JSX } from "preact";
import { Agents } from "./screens/agents";
import { AgentScreen } from "./screens/agent";
import { Keys } from "./screens/keys";
import { WorkspaceScreen } from "./screens/workspace";
import { Overview } from "./screens/overview";
import { LaterScreen } from "./parts/later";
import { StatusBoard } from "./screens/status";
import { route } from "./base/route";

interface Screen {
  needs: string | null;
  show: () => JSX.Element;
}

/** A screen that has a place in the navigation. */
export interface Place extends Screen {
  label: string;
  icon: string;
  /** The heading of its group. */
  group: string;
  /** Screens that are below it. */
  also?: string[];
}

/** A screen of the second file, with the title that stands while it is loaded. */
const later = (name: string, title: string) => () => <LaterScreen name={name} title={title} />;

export const PLACES: Record<string, Place> = {
  overview: { label: "Overview", icon: "overview", group: "", needs: null, show: () => <Overview /> },
  agents: {
    label: "Agents",
    icon: "agents",
    group: "",
    needs: "agents:read",
    also: ["agent", "new-agent", "import"],
    show: () => <Agents />,
  },
  releases: { label: "Releases", icon: "label", group: "", needs: "agents:read", show: later("releases", "Releases") },
  usage: { label: "Usage", icon: "usage", group: "", needs: "analytics:read", show: later("usage", "Usage") },
  status: { label: "Status", icon: "status", group: "", needs: "agents:read", show: () => <StatusBoard /> },
  "audit-log": { label: "Audit log", icon: "audit", group: "", needs: "audit_log:read", show: later("audit-log", "Audit log") },
  connect: { label: "Connect", icon: "connect", group: "", needs: null, show: later("connect", "Connect") },
  "api-keys": { label: "API keys", icon: "key", group: "Settings", needs: "api_keys:read", show: () => <Keys /> },
  members: { label: "Members", icon: "members", group: "Settings", needs: "users:read", show: later("members", "Members") },
  workspace: { label: "Workspace", icon: "workspace", group: "Settings", needs: null, show: () => <WorkspaceScreen /> },
  "ai-providers": {
    label: "AI providers",
    icon: "provider",
    group: "Integrations",
    needs: "settings:read",
    show: later("ai-providers", "AI providers"),
  },
  webhooks: {
    label: "Webhooks",
    icon: "webhook",
    group: "Integrations",
    needs: "webhooks:read",
    also: ["webhook"],
    show: later("webhooks", "Webhooks"),
  },
};

export const SCREENS: Record<string, Screen> = {
  ...PLACES,
  agent: { needs: "agents:read", show: () => <AgentScreen key={route.value.params.get("id")} /> },
  "new-agent": { needs: "agents:configure", show: later("new-agent", "New agent") },
  import: { needs: "agents:configure", show: later("import", "Import") },
  webhook: { needs: "webhooks:read", show: later("webhook", "Webhook") },
};
