/** What is typed and not saved, in memory alone, kept while the page is open. */
import { signal } from "@preact/signals";
import type { Draft } from "./config";
import type { Agent } from "./types";

export interface Kept {
  /** The agent as it was when the editing began, with its tag and version. */
  base: Agent;
  etag: string | null;
  version: number | null;
  draft: Draft;
}

export const drafts = signal<ReadonlyMap<string, Kept>>(new Map());

export function keep(id: string, kept: Kept | null): void {
  const next = new Map(drafts.peek());
  if (kept) next.set(id, kept);
  else next.delete(id);
  drafts.value = next;
}

/** How many reasons there are to ask before the page is closed, such as a key that is shown once. */
export const holding = signal(0);

addEventListener("beforeunload", (event) => {
  if (drafts.peek().size || holding.peek()) event.preventDefault();
});
