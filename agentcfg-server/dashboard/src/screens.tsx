/** The screens by the first part of their address: what each needs, and what it shows. */
import type { JSX } from "preact";
import { PLACES } from "./base/places";
import { route } from "./base/route";
import { LaterScreen } from "./parts/later";
import { Agents } from "./screens/agents";
import { AgentScreen } from "./screens/agent";
import { Keys } from "./screens/keys";
import { Overview } from "./screens/overview";
import { StatusBoard } from "./screens/status";
import { WorkspaceScreen } from "./screens/workspace";

interface Screen {
  needs: string | null;
  show: () => JSX.Element;
}

/** Those of the first file; all others are loaded after it. */
const FIRST: Record<string, () => JSX.Element> = {
  overview: () => <Overview />,
  agents: () => <Agents />,
  status: () => <StatusBoard />,
  "api-keys": () => <Keys />,
  workspace: () => <WorkspaceScreen />,
};

/** A screen of the second file, with the title that stands while it is loaded. */
const later = (name: string, title: string) => () => <LaterScreen name={name} title={title} />;

export const SCREENS: Record<string, Screen> = {
  ...Object.fromEntries(
    Object.entries(PLACES).map(([name, { needs, label }]) => [name, { needs, show: FIRST[name] ?? later(name, label) }]),
  ),
  agent: { needs: "agents:read", show: () => <AgentScreen key={route.value.params.get("id")} /> },
  "new-agent": { needs: "agents:configure", show: later("new-agent", "New agent") },
  import: { needs: "agents:configure", show: later("import", "Import") },
  webhook: { needs: "webhooks:read", show: later("webhook", "Webhook") },
};
