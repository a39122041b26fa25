/** What is typed and not saved, in memory alone, kept while the page is open. */
import { signal } from "./signals";
import type { Draft } from "./config";
import type { Side } from "./merge";
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
}

export const drafts = signal<ReadonlyMap<string, Kept>>(new Map());

export function keep(id: string, kept: Kept | null): void {
  const next = new Map(drafts.peek());
  if (kept) next.set(id, kept);
  else next.delete(id);
  drafts.value = next;
}

/** Other texts, by what they are for; the page may be closed on one that is `safe`. */
export const typed = signal<Readonly<Record<string, { safe?: boolean } | null>>>({});

/** The text for one thing, of type `T`, and how it is set; null removes it. */
export const useTyped = <T extends { safe?: boolean }>(key: string): [T | null, (value: T | null) => void] => [
  (typed.value[key] ?? null) as T | null,
  (value) => (typed.value = { ...typed.peek(), [key]: value }),
];

/** Whether text would be lost with the page. */
export const unsaved = (): boolean => drafts.peek().size > 0 || Object.values(typed.peek()).some((text) => text && !text.safe);

const aside = new Map<string, [typeof drafts.value, typeof typed.value]>();

/** Puts the texts of a user aside until they are back, and shows those of another one. */
export function handOver(from: string, to: string): void {
  aside.set(from, [drafts.peek(), typed.peek()]);
  discard();
  const back = aside.get(to);
  if (back) [drafts.value, typed.value] = back;
}

export function discard(): void {
  drafts.value = new Map();
  typed.value = {};
}

/** True while something is shown that cannot be shown again, such as a key: the page asks before it is closed. */
export const holding = signal(false);

addEventListener("beforeunload", (event) => {
  if (unsaved() || holding.peek()) event.preventDefault();
});
