// The change feed as one sequence over many connections.
import { Backoff, type Clock } from "./clock.js";
import {
  AgentCfgError,
  ConnectionError,
  GoneError,
  mayPass,
  RateLimitedError,
  StatusError,
  UnreadableAnswerError,
} from "./errors.js";
import type { AgentStatus, ChangeEvent, Timestamp } from "./generated.js";
import { EventReader, type ServerSentEvent } from "./sse.js";
import { type ApiRequest, askedMs, json, pollGapMs, type Transport } from "./transport.js";

/** What `changes.follow` yields: a change, the position without a change, or a live status. */
export type Followed =
  | { readonly type: "change"; readonly cursor: string; readonly event: ChangeEvent }
  | { readonly type: "bookmark"; readonly cursor: string }
  | { readonly type: "status"; readonly entry: AgentStatus & { readonly reported_at: Timestamp | null } };

/** The texts of the events of streams, as the server wrote them. @internal */
export const eventTexts = new WeakMap<ChangeEvent, string>();

/** @internal */
export interface FollowOptions {
  workspaceId: string;
  after: string;
  status?: boolean;
  /** The label whose released versions the events of a stream have. */
  label?: string | undefined;
  signal: AbortSignal;
  /** Is called when a connection ends or fails, before the next one, and before the first item of one that works. */
  onConnection?: (state: "streaming" | "polling" | "waiting", error?: unknown) => void;
}

const PATH = "/api/changes";
/** How long a stream may be silent before it counts as dead. It has a bookmark every 15 seconds. */
const SILENCE_MS = 25_000;
/** For how long the word of the server counts. After that it is asked for changes before the next stream is opened. */
const FRESH_MS = 20_000;
const MIN_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
/** How long a poll waits for an event. A poll does not count as a stream. */
const POLL_WAIT_S = 25;
/** How long polls replace a stream that was refused because of too many. */
const POLL_FOR_MS = 60_000;
/** After how many streams without an event the way to the server counts as one that lets none through. */
const FRUITLESS_STREAMS = 3;
/** How long polls replace a stream then. */
const POLL_FOR_FRUITLESS_MS = 300_000;

/**
 * Follows the changes after a position: each once, in order, over all connections. A failure that may pass is waited out, with
 * backoff and jitter; any other one is thrown. Where the server has no room for another stream, or the way to it lets none
 * through, polls replace it.
 *
 * @internal
 */
export async function* follow(transport: Transport, options: FollowOptions): AsyncGenerator<Followed, void, undefined> {
  const { signal } = options;
  const { clock } = transport;
  const backoff = new Backoff(clock, MIN_DELAY_MS, MAX_DELAY_MS);
  const report = options.onConnection ?? (() => {});
  let { after } = options;
  let pollUntil = 0;
  let hasPolled = false;
  /**
   * How many streams in a row have ended without an event after the first bookmark, and whether what the last one should have
   * brought was asked for.
   */
  let fruitless = 0;
  let isChecked = true;
  let hasConnected = false;
  /** When the server said last that the position is the present one. */
  let confirmedAt = clock.now();
  for (;;) {
    let pause: number;
    const begun = clock.now();
    const before = fruitless;
    const isLongPoll = begun < pollUntil;
    const isPoll = isLongPoll || !isChecked || begun - confirmedAt > FRESH_MS;
    try {
      const query = { workspace_id: options.workspaceId, after };
      const request = { method: "GET", path: PATH, signal };
      // The first poll does not wait, so that it tells at once whether the server answers.
      const wait = isLongPoll && hasPolled ? POLL_WAIT_S : 0;
      const items = isPoll
        ? poll(transport, { ...request, query: { ...query, wait }, attemptMs: (wait + 20) * 1000 })
        : stream(transport, {
            ...request,
            query: { ...query, status: options.status === true ? true : undefined, label: options.label },
            headers: { accept: "text/event-stream" },
          });
      hasPolled = isLongPoll;
      if (!isPoll) {
        fruitless += 1;
        isChecked = false;
      }
      let ended: Ended;
      try {
        let item = await items.next();
        for (let isFirst = true; item.done !== true; item = await items.next()) {
          hasConnected = true;
          const isBookmark = item.value.type === "bookmark";
          // A stream opens with a bookmark of the position that was asked for. That proves nothing: a proxy that passes it on may
          // hold back what follows.
          if (isPoll || !isFirst || !isBookmark) {
            backoff.reset();
            if (!isPoll) fruitless = 0;
            if (isBookmark) confirmedAt = clock.now();
          }
          if (isFirst && (!isPoll || isLongPoll)) report(isPoll ? "polling" : "streaming");
          isFirst = false;
          if (item.value.type !== "status") after = item.value.cursor;
          yield item.value;
        }
        ended = item.value;
      } finally {
        // A reader that stops early ends the connection too.
        await items.return({});
      }
      if (isPoll) {
        isChecked = true;
        const gap = isLongPoll ? pollGapMs(transport.rateLimit, clock) - (clock.now() - begun) : 0;
        if (gap > 0) await clock.sleep(gap, signal);
        signal.throwIfAborted();
        continue;
      }
      if (ended.isOrderly === true) fruitless = 0;
      // The server draws the delay after an orderly end at random for each stream.
      pause = ended.retryMs === undefined ? backoff.next() : Math.min(ended.retryMs, MAX_DELAY_MS);
      report("waiting", ended.error);
    } catch (error) {
      signal.throwIfAborted();
      // A certificate that was accepted before may be invalid for a while.
      const wasConnected = hasConnected && error instanceof ConnectionError;
      if (!wasConnected && !mayPass(error)) throw error;
      const isAnswer = error instanceof StatusError && error.isOfService;
      // There was no stream: no connection, or a refusal of the server itself.
      if (isAnswer || (error instanceof AgentCfgError && error.outcome === "not-applied")) fruitless = before;
      const delay = backoff.next();
      const asked = askedMs(error);
      if (error instanceof RateLimitedError && !isPoll) {
        // Too many streams or too many requests: the poll tells, which counts as a request and not as a stream.
        pollUntil = clock.now() + Math.max(asked, POLL_FOR_MS);
        pause = delay;
      } else {
        pause = Math.max(delay, asked);
      }
      report("waiting", error);
    }
    if (fruitless === 0) isChecked = true;
    if (!isPoll && fruitless >= FRUITLESS_STREAMS) pollUntil = clock.now() + pause + POLL_FOR_FRUITLESS_MS;
    await clock.sleep(pause, signal);
    signal.throwIfAborted();
  }
}

/** How a connection ended: with the delay that the server asks for when it did so in order. */
interface Ended {
  retryMs?: number | undefined;
  isOrderly?: boolean;
  error?: unknown;
}

async function* poll(transport: Transport, request: ApiRequest): AsyncGenerator<Followed, Ended> {
  const answer = await transport.sendOnce(request);
  const cursor = answer.headers.get("change-cursor");
  if (cursor === null) throw new UnreadableAnswerError("the answer has no Change-Cursor");
  for (const event of json(answer, "array") as ChangeEvent[]) yield { type: "change", cursor: event.cursor, event };
  yield { type: "bookmark", cursor };
  return {};
}

/** One connection. Returns when the server ends it in order or when it breaks. */
async function* stream(transport: Transport, request: ApiRequest & { signal: AbortSignal }): AsyncGenerator<Followed, Ended> {
  const connection = new AbortController();
  const forward = () => connection.abort(request.signal.reason);
  request.signal.addEventListener("abort", forward);
  const reader = new EventReader();
  let silence: Silence | undefined;
  try {
    const body = await transport.open({ ...request, signal: connection.signal });
    const decoder = new TextDecoder();
    const pieces = body.getReader();
    silence = new Silence(transport.clock);
    for (;;) {
      const piece = await silence.or(pieces.read(), connection.signal);
      if (piece === undefined || piece.done) return { error: new ConnectionError("the stream broke", "unknown") };
      const events = read(reader, decoder.decode(piece.value, { stream: true }));
      // A comment may be a proxy's: only events, and parts of a long one, show that the server is there.
      if (events.length === 0 && !reader.isWithinEvent) continue;
      silence.end();
      for (const event of events) {
        if (event.name === "gone") {
          throw new GoneError("the position in the change feed is gone: read the list again", 410, "final");
        }
        if (event.name === "end") {
          // The answer to the next connection tells whether the credential is the reason.
          return {
            retryMs: reader.retryMs,
            isOrderly: true,
            error: new ConnectionError(`the server ended the stream: ${reason(event)}`, "unknown"),
          };
        }
        const followed = parsed(event);
        if (followed !== undefined) yield followed;
      }
      silence = new Silence(transport.clock);
    }
  } finally {
    silence?.end();
    request.signal.removeEventListener("abort", forward);
    connection.abort();
  }
}

/** A time without an event. */
class Silence {
  readonly #timer = new AbortController();
  readonly #isOver: Promise<undefined>;

  constructor(clock: Clock) {
    this.#isOver = clock.sleep(SILENCE_MS, this.#timer.signal).then(() => undefined);
  }

  end(): void {
    // The default reason is an error, with its stack.
    this.#timer.abort(null);
  }

  /** The next piece; nothing when the connection breaks or is silent for too long. */
  async or<T>(next: Promise<T>, connection: AbortSignal): Promise<T | undefined> {
    try {
      return await Promise.race([next.catch(() => undefined), this.#isOver]);
    } finally {
      if (connection.aborted) await next.catch(() => undefined);
    }
  }
}

function read(reader: EventReader, text: string): ServerSentEvent[] {
  try {
    return reader.take(text);
  } catch (error) {
    throw new UnreadableAnswerError((error as Error).message);
  }
}

function reason(event: ServerSentEvent): string {
  try {
    return String((JSON.parse(event.data) as { error?: unknown }).error);
  } catch {
    return "without a reason";
  }
}

function parsed(event: ServerSentEvent): Followed | undefined {
  try {
    switch (event.name) {
      case "change": {
        const change = JSON.parse(event.data) as ChangeEvent;
        eventTexts.set(change, event.data);
        return { type: "change", cursor: change.cursor, event: change };
      }
      case "status":
        return { type: "status", entry: JSON.parse(event.data) as AgentStatus & { reported_at: Timestamp | null } };
      case "bookmark":
        if (event.id === undefined) throw new UnreadableAnswerError("a bookmark has no cursor");
        return { type: "bookmark", cursor: event.id };
      default:
        return undefined; // an event of a later release
    }
  } catch (error) {
    if (error instanceof AgentCfgError) throw error;
    throw new UnreadableAnswerError("an event is not what agentcfg promises", { cause: error });
  }
}
