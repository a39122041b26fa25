/** The address of the page is its state: the screen is the last part of the path, everything else is in the query. */
import { signal } from "@preact/signals";
import { root } from "./api";

export interface Route {
  screen: string;
  params: URLSearchParams;
}

export type Params = Record<string, string | number | null | undefined>;

const read = (): Route => {
  const rest = location.pathname.slice(root.pathname.length);
  const screen = rest.startsWith("ui/") ? rest.slice(3) : "";
  return { screen: screen || "overview", params: new URLSearchParams(location.search) };
};

export const route = signal<Route>(read());
/** Counts the visits of screens: focus goes to the heading after each but the first. */
export const visits = signal(0);

addEventListener("popstate", () => arrive());

/** The workspace in the address, which is there when the user has several. */
export const shownWorkspace = signal<string | null>(route.value.params.get("workspace"));

export function href(screen: string, params: Params = {}): string {
  const url = new URL(`ui/${screen}`, root);
  if (shownWorkspace.value) url.searchParams.set("workspace", shownWorkspace.value);
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url.pathname + url.search;
}

export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  arrive(!replace);
}

function arrive(scroll = false): void {
  const before = route.peek();
  const now = read();
  const same = before.screen === now.screen && before.params.get("id") === now.params.get("id")
    && before.params.get("tab") === now.params.get("tab");
  shownWorkspace.value = now.params.get("workspace");
  route.value = now;
  if (same) return;
  visits.value += 1;
  if (scroll) scrollTo(0, 0);
}

/** Changes parameters of the present screen; an empty value removes one. */
export function setParams(changes: Params, replace = true): void {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, String(value));
  }
  if (url.href !== location.href) go(url.pathname + url.search, replace);
}

/** Follows links inside the dashboard without loading the page again. */
addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest?.("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (!link.pathname.startsWith(`${root.pathname}ui/`) || link.dataset["leave"] !== undefined) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  if (link.href !== location.href) go(link.pathname + link.search);
});
