/**
 * The address of the page is its state: the path names the screen and what it shows, such as `ui/agents/writer/history`;
 * everything else is in the query.
 */
import { signal } from "./signals";
import { root } from "./api";
import { holding } from "./drafts";

export interface Route {
  screen: string;
  params: URLSearchParams;
}

export type Params = Record<string, string | number | null | undefined>;

/** Screens whose path goes on, by its first part, with the parameters that the further parts are. */
const OF_ONE: Record<string, { screen: string; parts: string[] }> = {
  agents: { screen: "agent", parts: ["id", "tab"] },
  webhooks: { screen: "webhook", parts: ["id"] },
  releases: { screen: "releases", parts: ["tab"] },
};

const read = (): Route => {
  const rest = location.pathname.slice(root.pathname.length);
  const params = new URLSearchParams(location.search);
  const [first = "", ...parts] = rest.startsWith("ui/") ? rest.slice(3).replace(/\/+$/, "").split("/") : [];
  const one = parts.length ? OF_ONE[first] : undefined;
  parts.forEach((part, i) => one?.parts[i] && params.set(one.parts[i], part));
  return { screen: parts.length ? (one?.screen ?? rest) : first || "overview", params };
};

export const route = signal<Route>(read());
/** Counts the visits of screens: focus goes to the heading after each but the first. */
export const visits = signal(0);

addEventListener("popstate", () => arrive());

/** The workspace in the address, which is there when the user has several. */
export const shownWorkspace = signal<string | null>(route.value.params.get("workspace"));

export function href(screen: string, params: Params = {}): string {
  const left = { ...params };
  let path = screen;
  const one = Object.entries(OF_ONE).find(([, of]) => of.screen === screen);
  if (one) {
    path = one[0];
    for (const name of one[1].parts) {
      if (left[name]) path += `/${left[name]}`;
      delete left[name];
    }
  }
  const url = new URL(`ui/${path}`, root);
  if (shownWorkspace.value) url.searchParams.set("workspace", shownWorkspace.value);
  for (const [name, value] of Object.entries(left)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url.pathname + url.search;
}

export function go(address: string, replace = false, opened?: string): void {
  if (replace) history.replaceState(history.state, "", address);
  else history.pushState({ opened }, "", address);
  arrive(!replace);
}

function arrive(scroll = false): void {
  const before = route.peek();
  const now = read();
  shownWorkspace.value = now.params.get("workspace");
  route.value = now;
  if (before.screen === now.screen && ["id", "tab"].every((name) => before.params.get(name) === now.params.get(name))) return;
  visits.value += 1;
  if (scroll) scrollTo(0, 0);
}

/** Changes parameters of the present screen; an empty value removes one. */
export function setParams(changes: Params, replace = true, opened?: string): void {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, String(value));
  }
  if (url.href !== location.href) go(url.pathname + url.search, replace, opened);
}

/** Opens a part of the screen that the address names, such as a dialog: going back closes it. */
export const openPart = (name: string): void => setParams({ [name]: 1 }, false, name);

/**
 * Closes it. The entry of the history that it was opened with goes, or the next step back would do nothing; but such a step is
 * wanted while something is shown that is lost with the page.
 */
export function closePart(name: string): void {
  if ((history.state as { opened?: string } | null)?.opened === name && !holding.peek()) history.back();
  else setParams({ [name]: null });
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
