/** The screens that are loaded after the first one, in a file of their own: the first screen has less to wait for. */
import type { JSX } from "preact";
import type { AgentState } from "./base/data";
import { route } from "./base/route";
import { AuditLog } from "./screens/audit";
import { Providers } from "./screens/providers";
import { WebhookScreen } from "./screens/webhook";
import { Webhooks } from "./screens/webhooks";
import { Members } from "./screens/members";
import { Connect } from "./screens/connect";
import { NewAgent } from "./screens/new-agent";
import { ChangesADay, CostToday, LastReleases, TheDay } from "./screens/overview/charts";
import { Palette } from "./screens/palette";
import { Playground } from "./screens/playground";
import { Releases } from "./screens/releases";
import { Shortcuts } from "./screens/shortcuts";
import { Usage } from "./screens/usage";
import { AgentUsage } from "./screens/usage/agent";

export const LATER: Record<string, () => JSX.Element> = {
  "overview-cost": () => <CostToday />,
  "overview-changes": () => <ChangesADay />,
  "overview-day": () => <TheDay />,
  "overview-releases": () => <LastReleases />,
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
};

/** Tabs of an agent. */
export const TABS = {
  try: (state: AgentState): JSX.Element => <Playground key={state.agent.id} state={state} />,
  usage: (state: AgentState): JSX.Element => <AgentUsage key={state.agent.id} state={state} />,
};
