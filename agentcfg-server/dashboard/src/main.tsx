/** Starts the dashboard: one page, one screen for each address. */
import { effect } from "@preact/signals";
import { render } from "preact";
import { start } from "./base/feed";
import { keepFocus } from "./base/focus";
import { href, route, shownWorkspace } from "./base/route";
import { can, failedWith, me, phase, recheck, workspace } from "./base/session";
// In this order the bundle is smallest: gzip looks back over 32 kB, and finds there what screens have in common.
import { Empty, LinkButton } from "./parts/base";
import { AuditLog } from "./screens/audit";
import { Failure } from "./parts/feedback";
import { Providers } from "./screens/providers";
import { StatusBoard } from "./screens/status";
import { NewAgent } from "./screens/new-agent";
import { AgentScreen } from "./screens/agent";
import { Page } from "./parts/page";
import { Agents } from "./screens/agents";
import { Keys } from "./screens/keys";
import { login, SignIn, Starting } from "./screens/signin";
import { WebhookScreen } from "./screens/webhook";
import { Webhooks } from "./screens/webhooks";
import { Members } from "./screens/members";
import { Shell } from "./screens/shell";
import { Overview } from "./screens/overview";
import { Connect } from "./screens/connect";
import { WorkspaceScreen } from "./screens/workspace";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/screens.css";
import "./styles/narrow.css";

interface Screen {
  needs: string | null;
  show: () => preact.JSX.Element;
}

const SCREENS: Record<string, Screen> = {
  overview: { needs: null, show: () => <Overview /> },
  agents: { needs: "agents:read", show: () => <Agents /> },
  agent: { needs: "agents:read", show: () => <AgentScreen key={route.value.params.get("id")} /> },
  "new-agent": { needs: "agents:configure", show: () => <NewAgent /> },
  status: { needs: "agents:read", show: () => <StatusBoard /> },
  "audit-log": { needs: "audit_log:read", show: () => <AuditLog /> },
  connect: { needs: null, show: () => <Connect /> },
  "api-keys": { needs: "api_keys:read", show: () => <Keys /> },
  members: { needs: "users:read", show: () => <Members /> },
  workspace: { needs: null, show: () => <WorkspaceScreen /> },
  "ai-providers": { needs: "settings:read", show: () => <Providers /> },
  webhooks: { needs: "webhooks:read", show: () => <Webhooks /> },
  webhook: { needs: "webhooks:read", show: () => <WebhookScreen key={route.value.params.get("id")} /> },
};

function Content() {
  const screen = SCREENS[route.value.screen];
  if (!screen) {
    return (
      <Page title="Not found">
        <Empty
          icon="search"
          title="There is no such page"
          action={<LinkButton to={href("overview")}>Go to the overview</LinkButton>}
        />
      </Page>
    );
  }
  if (screen.needs && !can(screen.needs)) {
    return (
      <Page title="Not permitted">
        <Empty icon="lock" title="Your role may not see this page">
          It needs the permission <code>{screen.needs}</code>. An owner or admin of {workspace.value?.name} can change your role.
        </Empty>
      </Page>
    );
  }
  return screen.show();
}

/** With several workspaces the address names the one that is shown. */
effect(() => {
  const id = workspace.value?.id;
  if ((me.value?.workspaces.length ?? 0) < 2 || !id || shownWorkspace.value === id) return;
  const url = new URL(location.href);
  url.searchParams.set("workspace", id);
  history.replaceState(history.state, "", url);
  shownWorkspace.value = id;
});

function App() {
  if (phase.value === "loading") return <Starting />;
  if (phase.value === "signed-out" || login.value) return <SignIn />;
  if (phase.value === "failed") {
    return (
      <main class="door">
        <div class="door-card">
          <h1>The dashboard could not start</h1>
          <Failure what="" error={failedWith.value} retry={() => void recheck()} />
        </div>
      </main>
    );
  }
  return (
    <Shell>
      <Content key={`${me.value?.id} ${workspace.value?.id}`} />
    </Shell>
  );
}

start();
const place = document.getElementById("app")!;
place.textContent = "";
keepFocus(place);
render(<App />, place);
void recheck();
