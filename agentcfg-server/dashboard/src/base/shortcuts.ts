/** Keys that work on every page. */
import { signal } from "./signals";
import { listening } from "./listening";
import { remembered } from "./remembered";
import { menu } from "../parts/page";
import { PLACES } from "./places";
import { go, href } from "./route";
import { can } from "./session";

/** The sheet that is open over the page. */
export const sheet = signal<"palette" | "shortcuts" | null>(null);

export const MAC = /Mac|iP(hone|ad)/.test(navigator.platform);

/** "off" where single letters do not work; speech input may type them by mistake. */
export const letters = remembered("letters");

/** Where `g` and a letter lead. */
const SCREENS: Record<string, string> = {
  o: "overview",
  a: "agents",
  r: "releases",
  u: "usage",
  s: "status",
  l: "audit-log",
};
const PAUSE = 1_500;

/** Listens until the returned function is called. */
export function listen(): () => void {
  let begun = 0;
  const pressed = (event: KeyboardEvent): void => {
    const { key } = event;
    const target = event.target as Element;
    if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "k" && !event.altKey && !event.shiftKey) {
      // Another dialog is finished first.
      if (document.querySelector("dialog[open]") && !menu.peek() && sheet.peek() === null) return;
      event.preventDefault();
      menu.value = false;
      sheet.value = sheet.peek() === "palette" ? null : "palette";
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || letters.peek()) return;
    if (target.closest("input, textarea, select, dialog, [role=menu]")) return;
    const place = Date.now() - begun < PAUSE ? SCREENS[key] : undefined;
    begun = key === "g" ? Date.now() : 0;
    if (place) {
      const { needs } = PLACES[place]!;
      if (needs === null || can(needs)) go(href(place));
    } else if (key === "?") sheet.value = "shortcuts";
    else if (key === "/") {
      const box = document.querySelector<HTMLElement>("[data-search]");
      if (!box) return;
      box.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  // Before the keys of the page: the second letter belongs to the first.
  return listening("keydown", pressed, true);
}
