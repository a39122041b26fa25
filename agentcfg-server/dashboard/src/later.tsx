/**
 * The screens that are loaded after the first one, in a file of their own: the first screen has less to wait for. The order of
 * the imports is the one that compresses best.
 */
import type { JSX } from "preact";
import type { AgentState } from "./base/data";
import { route } from "./base/route";
import { AgentUsage } from "./screens/usage/agent";
import { AuditLog } from "./screens/audit";
import { Webhooks } from "./screens/webhooks";
import { Providers } from "./screens/providers";
import { Connect } from "./screens/connect";
import { Palette } from "./screens/palette";
import { Shortcuts } from "./screens/shortcuts";
import { WebhookScreen } from "./screens/webhook";
import { Playground } from "./screens/playground";
import { Members } from "./screens/members";
import { NewAgent } from "./screens/new-agent";
import { Import } from "./screens/import";
import { Usage } from "./screens/usage";
import { Releases } from "./screens/releases";
import { ChangesADay, CostToday, LastReleases, TheDay } from "./screens/overview/charts";
import { Timeline } from "./screens/timeline";

export const LATER: Record<string, () => JSX.Element> = {
  "overview-cost": () => <CostToday />,
  "overview-changes": () => <ChangesADay />,
  "overview-day": () => <TheDay />,
  "overview-releases": () => <LastReleases />,
  timeline: () => <Timeline />,
  palette: () => <Palette />,
  shortcuts: () => <Shortcuts />,
  releases: () => <Releases />,
  usage: () => <Usage />,
  "audit-log": () => <AuditLog />,
  "ai-providers": () => <Providers />,
  webhooks: () => <Webhooks />,
  webhook: () => <WebhookScreen key={route.value.params.get("id")} />,
  members: () => <Members />,
  connect: () => <Connect />,
  "new-agent": () => <NewAgent />,
  import: () => <Import />,
};

/** Tabs of an agent. */
export const TABS = {
  try: (state: AgentState): JSX.Element => <Playground key={state.agent.id} state={state} />,
  usage: (state: AgentState): JSX.Element => <AgentUsage key={state.agent.id} state={state} />,
};
