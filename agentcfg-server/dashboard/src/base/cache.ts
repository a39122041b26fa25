/** What was read from the server: shared by the screens, shown at once when it is visited again, and read again when it changes. */
import { signal, type Signal } from "./signals";
import { useLayoutEffect } from "preact/hooks";
import { call, ended, lostSince, type Query } from "./api";

/** What a change on the server can touch. */
export type Topic =
  "agents" | "status" | "versions" | "keys" | "members" | "providers" | "audit" | "webhooks" | "usage" | "whoami";

export interface State<T> {
  data: T | undefined;
  error: unknown;
  etag: string | null;
  headers: Headers | null;
}

interface Entry {
  state: Signal<State<unknown>>;
  topic: Topic;
  path: string;
  query: Query;
  users: number;
  stale: boolean;
  running: Promise<void> | null;
}

const entries = new Map<string, Entry>();

/** What is read waits for this: a stream of changes that begins before the reading leaves no gap between them. */
let opening: Promise<unknown> = Promise.resolve();

/** Nothing is read before the promise is kept, and what was read before it is old. */
export function readAfter(opened: Promise<unknown>): void {
  opening = opened;
  for (const entry of entries.values()) entry.stale = true;
}

const NOTHING: State<never> = { data: undefined, error: null, etag: null, headers: null };

export interface Resource<T> extends State<T> {
  reload: () => Promise<void>;
}

/**
 * Reads a resource while the component is shown; `path` null reads nothing. What is no event of the feed is read again each
 * `every` milliseconds, while the page is visible and the server answers.
 */
export function useResource<T>(topic: Topic, path: string | null, query: Query = {}, every?: number): Resource<T> {
  const key = path === null ? "" : `${path}?${JSON.stringify(query)}`;
  const entry = path === null ? null : find(key, topic, path, query);
  // Preact runs the cleanup of other effects only after the next paint: until then a screen that is gone would still read.
  useLayoutEffect(() => {
    if (!entry) return;
    entry.users += 1;
    if (entry.stale) void load(entry);
    const again = (): void => {
      if (!document.hidden && lostSince.peek() === null && !ended.peek()) void load(entry);
    };
    const timer = every && setInterval(again, every);
    return () => {
      entry.users -= 1;
      clearInterval(timer);
    };
  }, [key]);
  const state = (entry ? entry.state.value : NOTHING) as State<T>;
  return { ...state, reload: () => (entry ? load(entry) : Promise.resolve()) };
}

function find(key: string, topic: Topic, path: string, query: Query): Entry {
  let entry = entries.get(key);
  if (!entry) {
    entry = { state: signal(NOTHING), topic, path, query, users: 0, stale: true, running: null };
    entries.set(key, entry);
  }
  return entry;
}

function load(entry: Entry): Promise<void> {
  if (entry.running) {
    entry.stale = true;
    return entry.running;
  }
  entry.running = read(entry).finally(() => {
    entry.running = null;
    // A change that came during the request needs another one.
    if (entry.stale && entry.users > 0 && entry.state.peek().error === null) void load(entry);
  });
  return entry.running;
}

async function read(entry: Entry): Promise<void> {
  const before = entry.state.peek();
  entry.stale = false;
  try {
    await opening;
    const answer = await call<unknown>("GET", entry.path, {
      query: entry.query,
      ifNoneMatch: before.data === undefined ? null : before.etag,
    });
    if (answer.status === 304) {
      if (before.error) entry.state.value = { ...before, error: null };
      return;
    }
    entry.state.value = {
      data: answer.data,
      error: null,
      etag: answer.etag,
      headers: answer.headers,
    };
  } catch (error) {
    entry.stale = true;
    entry.state.value = { ...entry.state.peek(), error };
  }
}

/** Reads again what is shown of these topics, and the rest when it is shown the next time. */
export function invalidate(...topics: Topic[]): void {
  for (const entry of entries.values()) {
    if (topics.length && !topics.includes(entry.topic)) continue;
    entry.stale = true;
    if (entry.users > 0) void load(entry);
  }
}

/** Replaces a record in the lists that hold it, or removes it; `etag` is the tag of a list of it alone. */
export function update<T extends { id: string }>(path: string, record: T, now?: T, etag: string | null = null): void {
  for (const entry of entries.values()) {
    const state = entry.state.peek() as State<T[]>;
    if (entry.path !== path || !state.data?.some(({ id }) => id === record.id)) continue;
    entry.state.value = {
      ...state,
      data: state.data.flatMap((one) => (one.id === record.id ? (now ?? []) : one)),
      etag: entry.query["agent_id"] ? etag : null,
    };
  }
}

export function forget(): void {
  entries.clear();
}
