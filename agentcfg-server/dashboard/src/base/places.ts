/** The screens that have a place in the navigation, by the first part of their address. */
export interface Place {
  label: string;
  icon: string;
  /** The heading of its group. */
  group: string;
  /** The permission that it needs. */
  needs: string | null;
  /** Screens that are below it. */
  also?: string[];
}

export const PLACES: Record<string, Place> = {
  overview: { label: "Overview", icon: "overview", group: "", needs: null },
  agents: { label: "Agents", icon: "agents", group: "", needs: "agents:read", also: ["agent", "new-agent", "import"] },
  releases: { label: "Releases", icon: "label", group: "", needs: "agents:read" },
  usage: { label: "Usage", icon: "usage", group: "", needs: "analytics:read" },
  status: { label: "Status", icon: "status", group: "", needs: "agents:read" },
  "audit-log": { label: "Audit log", icon: "audit", group: "", needs: "audit_log:read" },
  connect: { label: "Connect", icon: "connect", group: "", needs: null },
  "api-keys": { label: "API keys", icon: "key", group: "Settings", needs: "api_keys:read" },
  members: { label: "Members", icon: "members", group: "Settings", needs: "users:read" },
  workspace: { label: "Workspace", icon: "workspace", group: "Settings", needs: null },
  "ai-providers": { label: "AI providers", icon: "provider", group: "Integrations", needs: "settings:read" },
  webhooks: { label: "Webhooks", icon: "webhook", group: "Integrations", needs: "webhooks:read", also: ["webhook"] },
};
