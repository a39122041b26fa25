/** The frame of a screen: title, breadcrumb, actions, content. */
import { signal } from "../base/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { focusHeading } from "../base/focus";
import { visits } from "../base/route";
import { workspace } from "../base/session";
import { Empty, Icon } from "./base";

export interface Crumb {
  label: string;
  to?: string;
}

interface PageProps {
  title: string;
  /** The screens above this one; the title is the last part. */
  trail?: Crumb[];
  buttons?: ComponentChildren;
  children: ComponentChildren;
  /** Where the heading is in the content, the bar has only the breadcrumb. */
  ownHeading?: boolean;
  foot?: ComponentChildren;
  width?: "form" | "text" | undefined;
}

/** Whether the menu of a narrow screen is open. */
export const menu = signal(false);

let visited = 0;

export function Page({ title, trail = [], buttons, children, ownHeading, foot, width }: PageProps) {
  const main = useRef<HTMLElement>(null);
  const visit = visits.value;
  const name = workspace.value?.name;
  // A part of a thing is called by the thing, too.
  const about = trail[1]?.to && trail[1].label;
  useEffect(() => {
    document.title = [title, about, name, "agentcfg"].filter(Boolean).join(" · ");
  }, [title, about, name]);
  useEffect(() => {
    if (visit === visited) return;
    visited = visit;
    focusHeading();
  }, [visit]);
  return (
    <div class="panel">
      <header class="bar">
        <button type="button" class="button quiet square opener" aria-label="Open menu" onClick={() => (menu.value = true)}>
          <Icon name="menu" />
        </button>
        <Crumbs trail={trail}>
          {ownHeading ? (
            <span aria-current="page" class="clip" dir="auto">
              {title}
            </span>
          ) : (
            <h1 tabIndex={-1} class="clip" dir="auto">
              {title}
            </h1>
          )}
        </Crumbs>
        <div class="actions">{buttons}</div>
      </header>
      <main id="main" ref={main} tabIndex={-1} class={`page ${width ?? ""}`}>
        {children}
      </main>
      {foot}
    </div>
  );
}

function Crumbs({ trail, children }: { trail: Crumb[]; children: ComponentChildren }) {
  if (!trail.length) return <div class="crumbs">{children}</div>;
  return (
    <nav class="crumbs" aria-label="Breadcrumb">
      {trail.map((crumb) => (
        <span key={crumb.label} class="crumb">
          {crumb.to ? (
            <a class="clip" href={crumb.to}>
              {crumb.label}
            </a>
          ) : (
            <span class="clip">{crumb.label}</span>
          )}
          <Icon name="right" />
        </span>
      ))}
      {children}
    </nav>
  );
}

/** The bar at the bottom: what is changed or chosen, and what can be done with it. */
export function SaveBar({
  what,
  more,
  label,
  between,
  children,
}: {
  what: ComponentChildren;
  more?: ComponentChildren;
  /** The name of a bar that is a group. */
  label?: string;
  between?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <div class="save-bar" role={label ? "group" : undefined} aria-label={label}>
      <p class="clip" role="status">
        <b>{what}</b> <span class="second">{more}</span>
      </p>
      {between}
      <div class="actions">{children}</div>
    </div>
  );
}

export function Lead({ children }: { children: ComponentChildren }) {
  return <p class="lead">{children}</p>;
}

/** In place of a page that the role may not see. */
export function NotPermitted({ needs }: { needs: string }) {
  return (
    <Page title="Not permitted">
      <Empty icon="lock" title="Your role may not see this page">
        It needs the permission <code>{needs}</code>. An owner or admin of {workspace.value?.name} can change your role.
      </Empty>
    </Page>
  );
}
