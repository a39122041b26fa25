/** The differences between versions, read for the rows in view alone, a few at a time: versions never change. */
import { signal, type Signal } from "./signals";
import { useLayoutEffect } from "preact/hooks";
import { call } from "./api";
import { agentQuery } from "./data";
import { gapOf, type Gap } from "./releases";
import type { Agent } from "./types";

interface Entry {
  gap: Signal<Gap | null>;
  users: number;
  asked: boolean;
  read: () => Promise<void>;
}

const MOST = 4;
/** After so long what failed is read again, where its row is still in the window. */
const AGAIN = 10_000;
const entries = new Map<string, Entry>();
let waiting: Entry[] = [];
let running = 0;

function next(): void {
  while (running < MOST && waiting.length) {
    const entry = waiting.shift()!;
    // Its row has left the window.
    if (entry.users === 0) {
      entry.asked = false;
      continue;
    }
    running += 1;
    void entry
      .read()
      .catch(() => void setTimeout(ask, AGAIN, entry))
      .finally(() => {
        running -= 1;
        next();
      });
  }
}

function ask(entry: Entry): void {
  waiting.push(entry);
  next();
}

/** What lies between two versions of an agent, or null until it is known. */
export function useGap(agent: Agent, from: number | null, to: number | null): Gap | null {
  const key = from === null || to === null || from === to ? "" : `${agent.id} ${from} ${to}`;
  let entry = entries.get(key);
  if (key && !entry) {
    const gap = signal<Gap | null>(null);
    const read = async (): Promise<void> => {
      const { data } = await call<Parameters<typeof gapOf>[0]>("GET", "api/agents/diff", {
        query: { ...agentQuery(agent), from, to },
      });
      gap.value = gapOf(data);
    };
    entry = { gap, users: 0, asked: false, read };
    entries.set(key, entry);
  }
  useLayoutEffect(() => {
    const of = entries.get(key);
    if (!of) return;
    of.users += 1;
    if (!of.asked) {
      of.asked = true;
      ask(of);
    }
    return () => void (of.users -= 1);
  }, [key]);
  return entry?.gap.value ?? null;
}
