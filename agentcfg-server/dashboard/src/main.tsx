/** Starts the dashboard: one page, one screen for each address. */
import { effect } from "./base/signals";
import { render } from "preact";
import { keepFocus } from "./base/focus";
import { SCREENS } from "./screens";
import { href, route, shownWorkspace } from "./base/route";
import { NotPermitted, Page } from "./parts/page";
import { can, failedWith, me, phase, recheck, workspace } from "./base/session";
import { Empty, LinkButton } from "./parts/base";
import { Shell } from "./screens/shell";
import { start } from "./base/feed";
import { Failure } from "./parts/feedback";
import { loadLater } from "./parts/later";
import { login, SignIn, Starting } from "./screens/signin";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/screens.css";
import "./styles/releases.css";
import "./styles/usage.css";
import "./styles/sheets.css";
import "./styles/playground.css";
import "./styles/narrow.css";

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
  if (screen.needs && !can(screen.needs)) return <NotPermitted needs={screen.needs} />;
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
loadLater();
