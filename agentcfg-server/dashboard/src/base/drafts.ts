/** What is typed and not saved: drafts of agents survive a reload in the browser's storage, other texts are in memory alone. */
import { signal } from "./signals";
import { decode, root } from "./api";
import { toDraft, type Draft } from "./config";
import { pretty } from "./json-text";
import type { Side } from "./merge";
import { DAY } from "./text";
import type { Agent } from "./types";

export interface Kept {
  /** The agent as it was when the editing began, with its tag and version. */
  base: Agent;
  etag: string | null;
  version: number | null;
  draft: Draft;
  /** The message of the save: a save that ends in a merge keeps it. */
  message?: string;
  /** What was stored in between, and the decisions of the merge with the texts that were edited in it. */
  theirs?: { agent: Agent; etag: string | null; version: number | null };
  sides?: ReadonlyMap<string, Side>;
  edits?: ReadonlyMap<string, string>;
  /** When it was typed, where it comes from before a reload and was not changed since. */
  restored?: number | undefined;
  /** Where the browser stores it: each tab has places of its own, which it remembers when it is loaded again. */
  place?: string | undefined;
}

export const drafts = signal<ReadonlyMap<string, Kept>>(new Map());

const LONGEST = 7 * DAY;
const ALL = `agentcfg draft ${root.pathname} `;
/** What the names of the drafts of this user begin with. */
let own = ALL;
/** Drafts that are not in the storage, such as those that it has no room for. */
const unstored = new Set<string>();

export function keep(id: string, kept: Kept | null): void {
  const next = new Map(drafts.peek());
  const place = (kept ?? next.get(id))?.place ?? `${own}${kept?.base.workspace_id} ${id} ${Math.random()}`;
  if (kept) next.set(id, { ...kept, place });
  else next.delete(id);
  drafts.value = next;
  unstored.delete(id);
  try {
    if (kept) {
      sessionStorage[place] = 1;
      localStorage.setItem(
        place,
        `${Date.now()} ${pretty({ ...kept, sides: [...(kept.sides ?? [])], edits: [...(kept.edits ?? [])] })}`,
      );
    } else localStorage.removeItem(place);
  } catch {
    unstored.add(id);
  }
}

/** A draft as it was stored; a field that the dashboard did not have then is empty. */
function readKept(text: string): Kept {
  const kept = decode(text.slice(text.indexOf(" "))) as Kept;
  return {
    ...kept,
    draft: { ...toDraft({}), ...kept.draft },
    sides: new Map(kept.sides),
    edits: new Map(kept.edits),
    restored: parseInt(text, 10),
  };
}

/** The places of all users, or of this one. */
const places = (begin: string): string[] => Object.keys(localStorage).filter((name) => name.startsWith(begin));

/** The stored drafts of a user: this tab's, else the newest ones. Those that are too old, of whichever user, are removed. */
function stored(): Map<string, Kept> {
  const time = (place: string): number => parseInt(localStorage.getItem(place)!, 10);
  const rank = (place: string): number => (sessionStorage[place] ? Infinity : time(place));
  for (const place of places(ALL)) if (!(time(place) > Date.now() - LONGEST)) localStorage.removeItem(place);
  const found = new Map<string, Kept>();
  for (const place of places(own).sort((a, b) => rank(a) - rank(b))) {
    try {
      found.set(place.slice(own.length).split(" ")[1]!, { ...readKept(localStorage.getItem(place)!), place });
    } catch {
      localStorage.removeItem(place);
    }
  }
  return found;
}

/**
 * Where another tab goes on with a draft of this one, this one takes another place; where it removes it, closing this one asks.
 * What was typed in the other tab alone stays there.
 */
addEventListener("storage", ({ key, newValue }) => {
  for (const [id, kept] of drafts.peek())
    if (kept.place !== key || !sessionStorage[key!]) continue;
    else if (!newValue) unstored.add(id);
    else {
      delete sessionStorage[key!];
      keep(id, { ...kept, place: undefined });
    }
});

/** Other texts, by what they are for; the page may be closed on one that is `safe`. */
export const typed = signal<Readonly<Record<string, { safe?: boolean } | null>>>({});

/** The text for one thing, of type `T`, and how it is set; null removes it. */
export const useTyped = <T extends { safe?: boolean }>(key: string): [T | null, (value: T | null) => void] => [
  (typed.value[key] ?? null) as T | null,
  (value) => (typed.value = { ...typed.peek(), [key]: value }),
];

/** Whether text would be lost with the page. */
const fragile = (): boolean => unstored.size > 0 || Object.values(typed.peek()).some((text) => text && !text.safe);
/** Whether text would be lost with the session. */
export const unsaved = (): boolean => drafts.peek().size > 0 || fragile();

const aside = new Map<string, typeof typed.value>();

/** Puts the texts of a user aside until they are back, and shows those of another one. */
export function handOver(from: string | undefined, to: string): void {
  if (from) aside.set(from, typed.peek());
  typed.value = aside.get(to) ?? {};
  own = `${ALL}${encodeURIComponent(to)} `;
  drafts.value = stored();
}

export function discard(): void {
  for (const place of places(own)) localStorage.removeItem(place);
  unstored.clear();
  drafts.value = new Map();
  typed.value = {};
}

/** True while something is shown that cannot be shown again, such as a key: the page asks before it is closed. */
export const holding = signal(false);

addEventListener("beforeunload", (event) => {
  if (fragile() || holding.peek()) event.preventDefault();
});
