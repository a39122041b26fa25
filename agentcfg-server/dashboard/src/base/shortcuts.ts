/** Keys that work on every page. */
import { signal } from "./signals";
import { listening } from "./listening";
import { remembered } from "./remembered";
import { menu } from "../parts/page";
import { go, href } from "./route";
import { can } from "./session";

/** The sheet that is open over the page. */
export const sheet = signal<"palette" | "shortcuts" | null>(null);

export const MAC = /Mac|iP(hone|ad)/.test(navigator.platform);

/** "off" where single letters do not work; speech input may type them by mistake. */
export const letters = remembered("letters");

/** Where `g` and a letter lead, and what the place needs. */
const PLACES: Record<string, [screen: string, needs: string | null]> = {
  o: ["overview", null],
  a: ["agents", "agents:read"],
  r: ["releases", "agents:read"],
  u: ["usage", "analytics:read"],
  s: ["status", "agents:read"],
  l: ["audit-log", "audit_log:read"],
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
    const place = Date.now() - begun < PAUSE ? PLACES[key] : undefined;
    begun = key === "g" ? Date.now() : 0;
    if (place) {
      if (place[1] === null || can(place[1])) go(href(place[0]));
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
