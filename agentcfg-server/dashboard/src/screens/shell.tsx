/** The frame around the screens: navigation, connection, dialogs of the whole page. */
import { effect, signal } from "../base/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { useStatuses } from "../base/data";
import { drafts, unsaved } from "../base/drafts";
import { menu } from "../parts/page";
import { mode, nextTry, tryNow } from "../base/feed";
import { PLACES } from "../base/places";
import { density, theme } from "../base/look";
import { ended, lastAnswer, lostSince } from "../base/api";
import { go, href, route, shownWorkspace } from "../base/route";
import { can, me, signOut, workspace } from "../base/session";
import { listen, MAC, sheet } from "../base/shortcuts";
import { capital, number, plural, second, time } from "../base/text";
import { useTexts } from "../base/texts";
import { useBehind } from "../base/usage-data";
import { Avatar, Button, cx, Icon, LinkButton, StatusShape } from "../parts/base";
import { Confirm, Dialog, Ended, Menu } from "../parts/dialog";
import { attempt, Banner, Toasts, toasts } from "../parts/feedback";
import { LaterPart } from "../parts/later";
import { CopyButton, done, SecretDialog } from "../parts/secret";

import { mineAsText } from "./merge";
import { usePoints } from "./overview/attention";
import { NewWorkspace } from "./workspace";

const creating = signal(false);
const leaving = signal(false);

/** What is over the page goes with its user: a secret on show, half-filled dialogs, what a toast would undo. */
let user: string | undefined;
effect(() => {
  if (user === me.value?.id) return;
  user = me.value?.id;
  done();
  creating.value = leaving.value = menu.value = false;
  sheet.value = null;
  toasts.value = [];
});

const GROUPS = ["", "Settings", "Integrations"];

/** Where the navigation says what needs a person, and in which words. */
const WARNINGS = {
  webhook: ["webhooks", "disabled"],
  budget: ["usage", "low"],
  key: ["api-keys", "expiring"],
  provider: ["ai-providers", "missing"],
} as const;

function Navigation() {
  const { screen } = route.value;
  const working = useStatuses().data?.filter(({ status }) => status === "working").length ?? 0;
  const counts: Record<string, string> = {};
  const { active_agents: active, agent_limit: limit } = workspace.value ?? {};
  if (working) counts["status"] = `${number(working)} working`;
  const behind = useBehind().behind.size;
  if (behind) counts["releases"] = `${number(behind)} behind`;
  const points = usePoints();
  const full = points.some(({ cure }) => cure.kind === "plan");
  if (active !== undefined) counts["agents"] = number(active) + (full ? ` of ${number(limit!)}` : "");
  if (points.length) counts["overview"] = `${number(points.length)} open`;
  for (const [kind, [place, said]] of Object.entries(WARNINGS)) {
    const found = points.filter(({ cure }) => cure.kind === kind);
    const over = found.filter(({ full }) => full).length;
    const many = over || found.length;
    if (many) counts[place] = `${kind === "budget" ? plural(many, kind) : number(many)} ${over ? "over" : said}`;
  }
  const warned = Object.values(WARNINGS).flatMap(([place]) => counts[place] ?? []);
  if (full) warned.push(counts["agents"]!);
  return (
    <>
      {GROUPS.map((group) => {
        const seen = Object.entries(PLACES).filter(([, { needs, group: of }]) => of === group && (needs === null || can(needs)));
        return (
          seen.length > 0 && (
            <nav key={group} aria-label={group || "Main"}>
              {group && <h2>{group}</h2>}
              {seen.map(([name, { label, icon, also }]) => (
                <a
                  key={name}
                  class="place"
                  href={href(name)}
                  aria-current={name === screen || also?.includes(screen) ? "page" : undefined}
                >
                  <Icon name={icon} />
                  {label}
                  {counts[name] && <span class={cx("count", warned.includes(counts[name]) && "warn-text")}>{counts[name]}</span>}
                </a>
              ))}
            </nav>
          )
        );
      })}
    </>
  );
}

function Switcher() {
  const current = workspace.value!;
  const all = me.value!.workspaces;
  const items = [
    ...all
      .filter(({ id }) => id !== current.id)
      .map(({ id, name }) => ({
        label: name,
        icon: "workspace",
        run: () => go(href("overview", { workspace: id })),
      })),
    me.value!.type === "user" ? { label: "New workspace", icon: "plus", run: () => (creating.value = true) } : null,
  ];
  return (
    <div class="switcher">
      <Menu label={`Workspace ${current.name}, ${capital(current.plan)} plan`} items={items} align="start">
        <span class="workspace-mark" aria-hidden="true">
          {[...current.name][0]!.toUpperCase()}
        </span>
        <span class="grow">
          <b class="clip block" dir="auto">
            {current.name}
          </b>
          <span class="hint block">{capital(current.plan)}</span>
        </span>
        <Icon name="updown" small />
      </Menu>
    </div>
  );
}

function Connection() {
  const [status, text] = ended.value
    ? (["offline", "Signed out"] as const)
    : lostSince.value !== null
      ? (["offline", "Offline"] as const)
      : mode.value === "live"
        ? (["working", "Live"] as const)
        : (["idle", "Updated every few seconds"] as const);
  return (
    <div class="connection" role="status">
      <StatusShape status={status} />
      {text}
    </div>
  );
}

/** Signs out, at once where no text would be lost. */
async function out(): Promise<void> {
  if (unsaved()) {
    leaving.value = true;
    return;
  }
  await attempt("Not signed out.", signOut);
}

/** What is kept of agents that are not saved, in any of the user's workspaces. */
function Unsaved() {
  const kept = [...drafts.value.values()].map(({ base }) => base);
  const next = kept.find(({ agent_id: id }) => id !== route.value.params.get("id")) ?? kept[0];
  return (
    next && (
      <a
        class="place changed"
        href={href("agent", { id: next.agent_id, workspace: shownWorkspace.value && next.workspace_id })}
        title={next.display_name}
      >
        {plural(kept.length, "unsaved draft")}
      </a>
    )
  );
}

const THEMES = { "": "Theme of the system", light: "Light theme", dark: "Dark theme" };

function User() {
  const { id } = me.value!;
  return (
    <div class="user">
      <Menu
        label={`Signed in as ${id}`}
        align="start"
        items={[
          ...Object.entries(THEMES).map(([value, label]) => ({
            label,
            icon: theme.value === value ? "check" : "",
            run: () => void (theme.value = value),
            on: theme.value === value,
          })),
          {
            label: "Compact rows",
            icon: density.value && "check",
            run: () => void (density.value = density.value ? "" : "compact"),
            on: !!density.value,
          },
          { label: "Keyboard shortcuts", icon: "info", run: () => (sheet.value = "shortcuts") },
          { label: "Sign out", icon: "out", run: () => void out() },
        ]}
      >
        <Avatar id={id} name={id} type="human" size={20} />
        <span class="clip">{id}</span>
        <Icon name="updown" small />
      </Menu>
    </div>
  );
}

function Sidebar() {
  return (
    <>
      <Switcher />
      <button type="button" class="find" onClick={() => (sheet.value = "palette")}>
        <Icon name="search" small />
        <span class="grow">Search or jump to</span>
        <kbd>{MAC ? "⌘ K" : "Ctrl K"}</kbd>
      </button>
      <Navigation />
      <div class="side-foot">
        <Unsaved />
        <Connection />
        <User />
      </div>
    </>
  );
}

function Notices() {
  const lost = lostSince.value;
  const wait = nextTry.value === null ? 0 : Math.max(0, Math.ceil((nextTry.value - second.value) / 1000));
  return (
    <div class="notices">
      {lost !== null && (
        <Banner
          tone="warn"
          title="Connection lost."
          action={
            <Button small onClick={() => void tryNow()}>
              Try now
            </Button>
          }
        >
          You see what was true at {time(lastAnswer.value)}. Trying again
          {/* Its change each second is not announced. */}
          <span aria-hidden="true">{wait > 0 && ` in ${wait} s`}</span>. Your unsaved text is kept.
        </Banner>
      )}
      {ended.value && <Ended />}
    </div>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  useLayoutEffect(() => {
    menu.value = false;
  }, [route.value]);
  useLayoutEffect(listen, []);
  // They are read before they are shown.
  useTexts();
  if (!workspace.value) return <NoWorkspace />;
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <div class="frame">
        <aside class="side" aria-label="Navigation">
          <Sidebar />
        </aside>
        <div class="content">
          <Notices />
          {children}
        </div>
      </div>
      {menu.value && (
        <Dialog title="Navigation" side onClose={() => (menu.value = false)}>
          <div class="side">
            <Sidebar />
          </div>
        </Dialog>
      )}
      {sheet.value && <LaterPart name={sheet.value} />}
      <SecretDialog />
      <Dialogs />
    </>
  );
}

function Dialogs() {
  return (
    <>
      {creating.value && <NewWorkspace onClose={() => (creating.value = false)} />}
      {leaving.value && (
        <Confirm title="Sign out?" verb="Sign out" run={signOut} onClose={() => (leaving.value = false)}>
          Your unsaved text is discarded. Cancel to go back and save it.
        </Confirm>
      )}
      <Toasts />
    </>
  );
}

/** In place of the screens, where the user has no workspace, or none of this address. */
function NoWorkspace() {
  const { id, workspaces: own } = me.value!;
  const foreign = shownWorkspace.value && own.length > 0;
  return (
    <main class="door">
      <div class="door-card">
        <h1>{foreign ? "You are no member of this workspace" : "No workspace yet"}</h1>
        <p class="prose">
          You are signed in as <b>{id}</b>
          {foreign
            ? ". Open one of your own workspaces, or ask an owner of this one to add you under this name."
            : " and are a member of no workspace. Create one, or ask an owner to add you under this name."}
        </p>
        {drafts.value.size > 0 && (
          <Banner
            title="Your unsaved text is kept."
            action={[...drafts.value.values()].map(({ base, draft }) => (
              <CopyButton key={base.id} text={mineAsText(draft)} what={`Copy ${base.display_name}`} small />
            ))}
          >
            It comes back when you are a member again.
          </Banner>
        )}
        <div class="row wrap">
          {foreign ? (
            own.map((one, i) => (
              <LinkButton key={one.id} kind={i ? undefined : "primary"} to={href("overview", { workspace: one.id })}>
                Open {one.name}
              </LinkButton>
            ))
          ) : (
            <Button kind="primary" icon="plus" onClick={() => (creating.value = true)}>
              New workspace
            </Button>
          )}
          <Button onClick={() => void out()}>Sign out</Button>
        </div>
      </div>
      <Dialogs />
    </main>
  );
}
