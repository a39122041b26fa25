// The change feed as one sequence over many connections.
import { Backoff } from "./clock.js";
import { AgentCfgError, ConnectionError, GoneError, mayPass, RateLimitedError, UnreadableAnswerError } from "./errors.js";
import type { AgentStatus, ChangeEvent, Timestamp } from "./generated.js";
import { EventReader, type ServerSentEvent } from "./sse.js";
import { type ApiRequest, askedMs, json, type Transport } from "./transport.js";

/** What `changes.follow` yields: a change, the position without a change, or a live status. */
export type Followed =
  | { readonly type: "change"; readonly cursor: string; readonly event: ChangeEvent }
  | { readonly type: "bookmark"; readonly cursor: string }
  | { readonly type: "status"; readonly entry: AgentStatus & { readonly reported_at: Timestamp | null } };

/** @internal */
export interface FollowOptions {
  workspaceId: string;
  after: string;
  status?: boolean;
  signal: AbortSignal;
  /** Is called when a connection ends or fails, before the next one, and with nothing when one works. */
  onConnection?: (state: "streaming" | "polling" | "waiting", error?: unknown) => void;
}

const PATH = "/api/changes";
/** How long a stream may be silent before it counts as dead. It has a bookmark every 15 seconds. */
const SILENCE_MS = 45_000;
const MIN_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
/** How long a poll waits for an event. A poll does not count as a stream. */
const POLL_WAIT_S = 25;
/** How long polls replace a stream that was refused because of too many. */
const POLL_FOR_MS = 60_000;

/**
 * Follows the changes after a position: each once, in order, over all connections. A failure that may pass is waited out, with
 * backoff and jitter; any other one is thrown. Where the server has no room for another stream, polls replace it.
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
  let hasConnected = false;
  for (;;) {
    let pause: number;
    try {
      const isPoll = clock.now() < pollUntil;
      const query = { workspace_id: options.workspaceId, after };
      const request = { method: "GET", path: PATH, signal };
      // The first poll does not wait, so that it tells at once whether the server answers.
      const wait = hasPolled ? POLL_WAIT_S : 0;
      const items = isPoll
        ? poll(transport, { ...request, query: { ...query, wait }, attemptMs: (wait + 20) * 1000 })
        : stream(transport, {
            ...request,
            query: { ...query, status: options.status === true ? true : undefined },
            headers: { accept: "text/event-stream" },
          });
      hasPolled = isPoll;
      let ended: Ended;
      try {
        let item = await items.next();
        for (; item.done !== true; item = await items.next()) {
          hasConnected = true;
          backoff.reset();
          report(isPoll ? "polling" : "streaming");
          if (item.value.type !== "status") after = item.value.cursor;
          yield item.value;
        }
        ended = item.value;
      } finally {
        // A reader that stops early ends the connection too.
        await items.return({});
      }
      if (isPoll) continue;
      // The server draws the delay after an orderly end at random for each stream.
      pause = ended.retryMs === undefined ? backoff.next() : Math.min(ended.retryMs, MAX_DELAY_MS);
      report("waiting", ended.error);
    } catch (error) {
      signal.throwIfAborted();
      // A certificate that was accepted before may be invalid for a while.
      const wasConnected = hasConnected && error instanceof ConnectionError;
      if (!wasConnected && !mayPass(error)) throw error;
      const delay = backoff.next();
      const asked = askedMs(error);
      if (error instanceof RateLimitedError && clock.now() >= pollUntil) {
        // Too many streams or too many requests: the poll tells, which counts as a request and not as a stream.
        pollUntil = clock.now() + Math.max(asked, POLL_FOR_MS);
        pause = delay;
      } else {
        pause = Math.max(delay, asked);
      }
      report("waiting", error);
    }
    await clock.sleep(pause, signal);
    signal.throwIfAborted();
  }
}

/** How a connection ended: with the delay that the server asks for when it did so in order. */
interface Ended {
  retryMs?: number | undefined;
  error?: unknown;
}

async function* poll(transport: Transport, request: ApiRequest): AsyncGenerator<Followed, Ended> {
  const answer = await transport.sendOnce(request);
  const cursor = answer.headers.get("change-cursor");
  if (cursor === null) throw new UnreadableAnswerError("the answer has no Change-Cursor");
  for (const event of json(answer) as ChangeEvent[]) yield { type: "change", cursor: event.cursor, event };
  yield { type: "bookmark", cursor };
  return {};
}

/** One connection. Returns when the server ends it in order or when it breaks. */
async function* stream(transport: Transport, request: ApiRequest & { signal: AbortSignal }): AsyncGenerator<Followed, Ended> {
  const connection = new AbortController();
  const forward = () => connection.abort(request.signal.reason);
  request.signal.addEventListener("abort", forward);
  const reader = new EventReader();
  try {
    const body = await transport.open({ ...request, signal: connection.signal });
    const decoder = new TextDecoder();
    const pieces = body.getReader();
    for (;;) {
      const piece = await withinSilence(transport, connection, pieces.read());
      if (piece === undefined || piece.done) return { error: new ConnectionError("the stream broke", "unknown") };
      for (const event of read(reader, decoder.decode(piece.value, { stream: true }))) {
        if (event.name === "gone") {
          throw new GoneError("the position in the change feed is gone: read the list again", 410, "final");
        }
        if (event.name === "end") {
          // The answer to the next connection tells whether the credential is the reason.
          return {
            retryMs: reader.retryMs,
            error: new ConnectionError(`the server ended the stream: ${reason(event)}`, "unknown"),
          };
        }
        const followed = parsed(event);
        if (followed !== undefined) yield followed;
      }
    }
  } finally {
    request.signal.removeEventListener("abort", forward);
    connection.abort();
  }
}

/** The next piece; nothing when the connection breaks or is silent for too long. */
async function withinSilence<T>(transport: Transport, connection: AbortController, next: Promise<T>): Promise<T | undefined> {
  const timer = new AbortController();
  const silence = transport.clock.sleep(SILENCE_MS, timer.signal).then(() => undefined);
  try {
    return await Promise.race([next.catch(() => undefined), silence]);
  } finally {
    timer.abort();
    if (connection.signal.aborted) await next.catch(() => undefined);
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
