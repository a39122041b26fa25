// A live copy of what a label releases.
import { type Cache, isBehind, isRow, parseSaved, type Saved, savedText, stateAfter, textsOf } from "./cache.js";
import { Backoff, type Clock } from "./clock.js";
import {
  AgentCfgError,
  GoneError,
  isRefusal,
  LaggingError,
  mayPass,
  NotReadyError,
  TimeoutError,
  UnreadableAnswerError,
} from "./errors.js";
import { follow } from "./follow.js";
import type { Label, ReleasedAgent } from "./generated.js";
import { differences, isBefore, makeSnapshot, mayChange, type Snapshot, type SnapshotChange } from "./snapshot.js";
import { askedMs, json, orAborted, readGapMs, type Transport } from "./transport.js";

/** How the state in memory relates to the server. */
export interface Health {
  /** Where the state comes from: `none` before the first one. */
  readonly source: "none" | "cache" | "server";
  /**
   * `live`: changes are followed. `connecting`: the server is not reached, and the last state serves. `refused`: the server
   * refuses the credential or the request, and the last state serves; it is asked again from time to time. `closed`: after `close()`.
   */
  readonly state: "live" | "connecting" | "refused" | "closed";
  /** When the server confirmed the state last. */
  readonly confirmedAt: Date | undefined;
  /** The milliseconds since then. While changes are followed it stays below half a minute. */
  readonly ageMs: number | undefined;
  /** Why the server is not reached, or refuses. */
  readonly error: Error | undefined;
}

/** @internal */
export interface MirrorOptions {
  transport: Transport;
  workspaceId: () => Promise<string>;
  knownWorkspaceId: string | undefined;
  label: Label;
  cache: Cache | undefined;
  onError: (error: Error) => void;
}

const MIN_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
/** How often a server that refuses is asked again. */
const REFUSED_DELAY_MS = 30_000;
/** How long a start waits for the server when there is a cache. */
const CACHE_AFTER_MS = 3_000;
/** How often the time of the last confirmation is written to the cache while nothing changes. */
const SAVE_EVERY_MS = 60_000;
/** How long readers wait at most before they read a store again that was replaced, so that they do not come all at once. */
const GONE_SPREAD_MS = 1_000;

interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

/** Keeps the snapshot of one label. @internal */
export class Mirror {
  #snapshot: Snapshot | undefined;
  /** The tag of the state in memory; empty where a proxy has removed it. */
  #tag = "";
  #source: Health["source"] = "none";
  #state: Health["state"] = "connecting";
  #confirmedAt: number | undefined;
  #savedAt = 0;
  /** When the state may be read again because of an event. */
  #nextReadAt = 0;
  #error: Error | undefined;
  #saved: Saved | undefined;
  #saving: Promise<void> | undefined;
  #isDirty = false;
  /** The text that was written to the cache last. */
  #written: string | undefined;
  readonly #listeners = new Set<(change: SnapshotChange) => void>();
  readonly #waiters = new Set<Waiter>();
  readonly #closing = new AbortController();
  readonly #clock: Clock;
  readonly #running: Promise<void>;

  constructor(private readonly options: MirrorOptions) {
    this.#clock = options.transport.clock;
    this.#running = this.#run();
  }

  /** The present state. */
  get snapshot(): Snapshot {
    if (this.#snapshot !== undefined) return this.#snapshot;
    const reason = this.#error === undefined ? "" : `: ${this.#error.message}`;
    throw new NotReadyError(`the agents are not there yet, await ready() first${reason}`, { cause: this.#error });
  }

  get health(): Health {
    const confirmedAt = this.#confirmedAt;
    return Object.freeze({
      source: this.#source,
      state: this.#state,
      confirmedAt: confirmedAt === undefined ? undefined : new Date(confirmedAt),
      ageMs: confirmedAt === undefined ? undefined : Math.max(this.#clock.now() - confirmedAt, 0),
      error: this.#error,
    });
  }

  onChange(listener: (change: SnapshotChange) => void): () => void {
    const own = (change: SnapshotChange) => listener(change);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Waits until there is a state: that of the server or, where it is not reached, the cache. */
  async ready(timeoutMs: number): Promise<void> {
    if (this.#snapshot !== undefined) return;
    if (this.#state === "closed") throw new NotReadyError("the client is closed");
    if (this.#state === "refused" && this.#error !== undefined) throw this.#error;
    const timer = new AbortController();
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = { resolve, reject };
      this.#waiters.add(waiter);
      void this.#clock.sleep(timeoutMs, timer.signal).then(() => {
        if (!this.#waiters.delete(waiter)) return;
        reject(this.#error ?? new TimeoutError(`the server has not answered within ${timeoutMs} ms`));
      });
    }).finally(() => timer.abort());
  }

  /** Ends the streams, and waits until the cache is written. */
  async close(): Promise<void> {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#closing.abort(new NotReadyError("the client is closed"));
    await this.#running;
    this.#fail(new NotReadyError("the client is closed"));
    this.#listeners.clear();
    if (this.#source === "server") this.#save();
    await this.#saving;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const backoff = new Backoff(this.#clock, MIN_DELAY_MS, MAX_DELAY_MS);
    await this.#load();
    if (this.#saved !== undefined) void this.#clock.sleep(CACHE_AFTER_MS, signal).then(() => this.#fallBack());
    while (!signal.aborted) {
      try {
        await this.#read();
        await this.#follow(backoff);
      } catch (error) {
        if (signal.aborted) break;
        const pause = this.#pause(error, backoff);
        // Before there is a state only those who wait for it keep the process running.
        await this.#clock.sleep(pause, signal, this.#snapshot === undefined && this.#saved === undefined);
      }
    }
  }

  /** Takes note of a failure, and returns the delay before the next attempt. */
  #pause(error: unknown, backoff: Backoff): number {
    if (error instanceof GoneError) {
      this.#tag = "";
      return this.#clock.random() * GONE_SPREAD_MS;
    }
    const failed = error instanceof Error ? error : new AgentCfgError(String(error));
    const asked = askedMs(failed);
    // Without a state, an answer of something else than the server ends a start: the URL may be wrong.
    const hasState = this.#snapshot !== undefined || this.#saved !== undefined;
    if (mayPass(failed) || (hasState && !isRefusal(failed))) {
      this.#setState("connecting", failed);
      this.#fallBack();
      return Math.max(backoff.next(), asked);
    }
    if (this.#snapshot === undefined) {
      // The server is there, and its word counts.
      this.#saved = undefined;
      this.#tag = "";
    }
    this.#setState("refused", failed);
    this.#fail(failed);
    this.options.onError(failed);
    return Math.max(REFUSED_DELAY_MS * (1 + this.#clock.random()), asked);
  }

  /** Reads the whole state, in one request: the answer is of one moment, which is not before the cursor. */
  async #read(atLeast?: string): Promise<void> {
    const { transport, label, cache } = this.options;
    const workspaceId = await this.#workspaceId();
    // The tag of another workspace tells nothing about this one.
    if (this.#saved !== undefined && this.#saved.workspace_id !== workspaceId) this.#tag = "";
    const answer = await transport.sendOnce({
      method: "GET",
      path: "/api/agents/released",
      query: { workspace_id: workspaceId, label },
      headers: this.#tag === "" ? {} : { "if-none-match": `"${this.#tag}"` },
      signal: this.#closing.signal,
    });
    const cursor = answer.headers.get("change-cursor");
    if (cursor === null) throw new UnreadableAnswerError("the answer has no Change-Cursor");
    // One of several servers may answer from an earlier state than another one.
    const seen = [atLeast, this.#source === "server" ? this.#snapshot?.cursor : undefined];
    const later = seen.find((other) => other !== undefined && isBefore(cursor, other));
    if (later !== undefined) throw new LaggingError(`the answer is of ${cursor}, after one of ${later}`);
    let saved: Saved;
    if (answer.status === 304 && this.#saved !== undefined) {
      saved = { ...this.#saved, cursor };
    } else {
      const agents = json(answer, "array") as ReleasedAgent[];
      if (!agents.every(isRow)) throw new UnreadableAnswerError("the answer is not what agentcfg promises");
      const tag = tagOf(answer.headers.get("etag"));
      const texts = cache === undefined ? [] : textsOf(answer.text);
      saved = { format: 1, workspace_id: workspaceId, label, tag, cursor, agents, texts };
    }
    this.#confirmedAt = this.#clock.now();
    this.#replace(saved, "server");
  }

  /**
   * Reads the state after an event: at once, but for a burst, of which each read covers many events. Those that come meanwhile
   * are no news any more after it.
   */
  async #readAfter(event: string): Promise<void> {
    const { transport } = this.options;
    const wait = Math.min(this.#nextReadAt - this.#clock.now(), readGapMs(transport.rateLimit, this.#clock));
    if (wait > 0) await this.#clock.sleep(wait, this.#closing.signal);
    await this.#read(event);
    this.#nextReadAt = this.#clock.now() + readGapMs(transport.rateLimit, this.#clock);
  }

  #workspaceId(): Promise<string> {
    return orAborted(this.options.workspaceId(), this.#closing.signal);
  }

  /** Follows the changes until a failure that does not pass by itself. */
  async #follow(backoff: Backoff): Promise<void> {
    const { transport, label } = this.options;
    const after = this.snapshot.cursor;
    let isFirst = false;
    const items = follow(transport, {
      workspaceId: await this.#workspaceId(),
      after,
      label,
      signal: this.#closing.signal,
      onConnection: (state, error) => {
        if (state === "waiting") this.#setState("connecting", error as Error | undefined);
        else this.#setState("live");
        isFirst = state === "streaming";
      },
    });
    // One event after the other: a state that is read after an event is never older than it.
    for await (const item of items) {
      if (item.type === "change" && mayChange(item.event, this.snapshot)) {
        const saved = this.#saved && stateAfter(this.#saved, item.event);
        if (saved === undefined) await this.#readAfter(item.cursor);
        else this.#replace(saved, "server");
      }
      // Where a proxy answers in place of the feed, the state is read again and again, with growing delays.
      if (item.type === "change" || !isFirst) backoff.reset();
      // A bookmark comes after all changes until then, but for the first one of a stream, which only repeats the position.
      if (item.type === "bookmark" && !isFirst) this.#confirm();
      isFirst = false;
    }
  }

  #replace(saved: Saved, source: Health["source"]): void {
    const before = this.#snapshot;
    this.#tag = saved.tag;
    this.#source = source;
    const now = makeSnapshot(saved.label, saved.cursor, saved.agents, before);
    this.#snapshot = now;
    // The rows of agents that are as before need not be compared again.
    this.#saved = { ...saved, agents: saved.agents.map((row) => now.agents.get(row.agent_id) ?? row) };
    for (const waiter of this.#waiters) waiter.resolve();
    this.#waiters.clear();
    const changed = differences(before, now);
    if (source === "server" && (changed.length > 0 || before === undefined)) this.#save();
    if (changed.length === 0 || before === undefined) return;
    const change = Object.freeze({ snapshot: now, changed: Object.freeze(changed) });
    tell(this.#listeners, change, this.options.onError);
  }

  #confirm(): void {
    this.#confirmedAt = this.#clock.now();
    if (this.#source === "server" && this.#confirmedAt - this.#savedAt > SAVE_EVERY_MS) this.#save();
  }

  #setState(state: "live" | "connecting" | "refused", error?: Error): void {
    if (this.#state === "closed") return;
    this.#state = state;
    this.#error = error;
  }

  #fail(error: Error): void {
    for (const waiter of this.#waiters) waiter.reject(error);
    this.#waiters.clear();
  }

  async #load(): Promise<void> {
    try {
      const text = await this.options.cache?.load();
      if (text !== undefined) this.#saved = parseSaved(text, this.options.label, this.options.knownWorkspaceId);
      this.#tag = this.#saved?.tag ?? "";
    } catch (error) {
      this.options.onError(error as Error);
    }
  }

  /** Serves the cache while there is no answer of the server. */
  #fallBack(): void {
    if (this.#snapshot !== undefined || this.#saved === undefined || this.#state === "closed" || this.#state === "refused")
      return;
    const confirmedAt = Date.parse(this.#saved.confirmed_at ?? "");
    if (!Number.isNaN(confirmedAt)) this.#confirmedAt = confirmedAt;
    this.#replace(this.#saved, "cache");
  }

  /** Writes the present state, after a write that is under way: the last one wins. */
  #save(): void {
    const { cache } = this.options;
    if (cache === undefined) return;
    this.#isDirty = true;
    this.#savedAt = this.#clock.now();
    this.#saving ??= (async () => {
      while (this.#isDirty) {
        this.#isDirty = false;
        const confirmed = this.#confirmedAt === undefined ? undefined : new Date(this.#confirmedAt).toISOString();
        try {
          const saved = this.#saved;
          if (saved === undefined || (await isBehind(cache, saved, this.#written))) continue;
          const text = savedText(saved, confirmed);
          await cache.save(text);
          this.#written = text;
        } catch (error) {
          this.options.onError(error as Error);
        }
      }
      this.#saving = undefined;
    })();
  }
}

/** Calls the listeners that there are before the first call, but for those that one of them removes. @internal */
export function tell(
  listeners: ReadonlySet<(change: SnapshotChange) => void>,
  change: SnapshotChange,
  onError: (error: Error) => void,
): void {
  for (const listener of [...listeners]) {
    if (listeners.has(listener)) called(() => listener(change), onError);
  }
}

/** Calls a function of the program. A failure, also that of a promise that it returns, goes to `onError`. @internal */
export function called(run: () => unknown, onError: (error: Error) => void): void {
  const failed = (error: unknown) => onError(error instanceof Error ? error : new AgentCfgError(String(error)));
  try {
    Promise.resolve(run()).catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** The tag within an entity tag, without the mark of an answer in gzip. */
function tagOf(etag: string | null): string {
  return /^(?:W\/)?"([!#-~]*?)(?:-gzip)?"$/.exec(etag ?? "")?.[1] ?? "";
}
