// Requests and answers over HTTP: time limits, the classes of failures, and which failed calls are repeated.
import { Backoff, type Clock, timerMs } from "./clock.js";
import {
  AgentCfgError,
  ConnectionError,
  CredentialError,
  type ErrorFacts,
  InputError,
  mayBeApplied,
  type RateLimit,
  statusError,
  TimeoutError,
  UnreadableAnswerError,
} from "./errors.js";
import { jsonText } from "./json.js";
import { VERSION } from "./version.js";

/** Time limits of calls, in milliseconds. */
export interface Timeouts {
  /** For one attempt, from connecting to the last byte of the answer. The default is 15 s. */
  attemptMs?: number;
  /** For a call with all its attempts and the delays between them. The default is 45 s. */
  totalMs?: number;
}

/** How often and with which delays a failed call is repeated. */
export interface RetryPolicy {
  /** Attempts after the first one at most. The default is 3; 0 turns repetition off. */
  maxRetries?: number;
  /** The first delay in milliseconds. The default is 100. */
  minDelayMs?: number;
  /** The longest delay in milliseconds, without its jitter. The default is 5,000. */
  maxDelayMs?: number;
}

/** A credential, or what returns the one to use now, such as a session token that is renewed. It is asked before each request. */
export type Key = string | (() => string | Promise<string>);

/** @internal */
export interface TransportOptions {
  url: string;
  key?: Key | undefined;
  fetch?: typeof globalThis.fetch | undefined;
  timeouts?: Timeouts | undefined;
  retry?: RetryPolicy | undefined;
  clock: Clock;
}

/** @internal */
export interface ApiRequest {
  method: string;
  path: string;
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  /** Whether sending the request twice has the effect of sending it once. */
  idempotent?: boolean;
  /** Whether the request changes nothing, whatever its method. */
  isRead?: boolean;
  signal?: AbortSignal | undefined;
  /** Whether it may be sent more than once. */
  repeats?: boolean;
  /** Replaces the time limit of an attempt. */
  attemptMs?: number;
}

/** @internal */
export interface ApiAnswer {
  status: number;
  headers: Headers;
  text: string;
  /** Whether the request asked for a change. */
  isOfChange: boolean;
}

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** Larger than any error message of the service. */
const MAX_ERROR_BYTES = 64 * 1024;
const MAX_QUOTED = 200;

/** The codes of Node.js for a connection that was not made. */
const UNSENT = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Sends requests of one credential to one server. @internal */
export class Transport {
  readonly base: string;
  readonly clock: Clock;
  readonly attemptMs: number;
  rateLimit: RateLimit | undefined;
  readonly #key: Key | undefined;
  readonly #fetch: typeof globalThis.fetch;
  readonly #totalMs: number;
  readonly #retry: Required<RetryPolicy>;

  constructor(options: TransportOptions) {
    this.base = baseUrl(options.url);
    this.#key = typeof options.key === "string" ? checkedKey(options.key) : options.key;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.attemptMs = options.timeouts?.attemptMs ?? 15_000;
    this.#totalMs = options.timeouts?.totalMs ?? 45_000;
    this.#retry = { maxRetries: 3, minDelayMs: 100, maxDelayMs: 5_000, ...options.retry };
    this.clock = options.clock;
  }

  /**
   * Sends a request, and repeats it where that is safe. A failure before the server processed the request (no connection, 429, a
   * 503 of the service with `Retry-After`) is repeated; one that leaves the outcome open (a broken connection, no answer in
   * time, 502, 504, any other 503) only where the request is idempotent; any other failure is not.
   */
  async send(request: ApiRequest): Promise<ApiAnswer> {
    const deadline = this.clock.now() + this.#totalMs;
    const maxRetries = request.repeats === false ? 0 : this.#retry.maxRetries;
    const backoff = new Backoff(this.clock, this.#retry.minDelayMs, this.#retry.maxDelayMs);
    for (let retries = 0; ; retries += 1) {
      try {
        return await this.sendOnce(request, deadline - this.clock.now());
      } catch (error) {
        if (!(error instanceof AgentCfgError)) throw error;
        const isSafe = error.outcome === "not-applied" || (error.outcome === "unknown" && isIdempotent(request));
        // A server's Retry-After is waited out in full. A delay that does not fit into the rest of the time is not begun.
        const pause = backoff.next() + (error.retryAfterMs ?? 0);
        if (!isSafe || retries >= maxRetries || pause >= deadline - this.clock.now()) throw error;
        await this.clock.sleep(pause, request.signal);
        request.signal?.throwIfAborted();
      }
    }
  }

  /** Sends a request without repetition, and reads its whole answer. */
  async sendOnce(request: ApiRequest, withinMs = Number.POSITIVE_INFINITY): Promise<ApiAnswer> {
    const limit = Math.min(request.attemptMs ?? this.attemptMs, withinMs);
    return await this.#within(limit, request, async (signal) => {
      const response = await this.#respond(request, signal);
      const text = await readText(response);
      if (!response.ok && response.status !== 304) throw failure(response, text);
      return { status: response.status, headers: response.headers, text, isOfChange: !isRead(request) };
    });
  }

  /** Sends a request without repetition, and returns the body of its successful answer as a stream. */
  async open(request: ApiRequest & { signal: AbortSignal }): Promise<ReadableStream<Uint8Array>> {
    // The time limit is for the head of the answer; the signal of the request goes on to the stream.
    const stream = new AbortController();
    const forward = () => stream.abort(request.signal.reason);
    if (request.signal.aborted) forward();
    request.signal.addEventListener("abort", forward, { once: true });
    return await this.#within(this.attemptMs, request, async (signal) => {
      const giveUp = () => stream.abort(signal.reason);
      signal.addEventListener("abort", giveUp);
      const response = await this.#respond(request, stream.signal);
      if (!response.ok) throw failure(response, await readText(response));
      signal.removeEventListener("abort", giveUp);
      if (response.body === null) throw new UnreadableAnswerError("the answer has no content", facts(response));
      return response.body;
    });
  }

  /** The credential to use now. */
  async key(): Promise<string | undefined> {
    if (typeof this.#key !== "function") return this.#key;
    let key: string;
    try {
      key = await this.#key();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new CredentialError(`the function that returns the key has failed: ${reason}`, { cause: error });
    }
    return checkedKey(key);
  }

  async #within<T>(ms: number, request: ApiRequest, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const outer = request.signal;
    outer?.throwIfAborted();
    const controller = new AbortController();
    const timeout = new TimeoutError("no answer came in time");
    const timer = setTimeout(() => controller.abort(timeout), timerMs(ms));
    const forward = () => controller.abort(outer?.reason);
    outer?.addEventListener("abort", forward);
    try {
      return await run(controller.signal);
    } catch (error) {
      outer?.throwIfAborted();
      const failed = controller.signal.aborted ? timeout : error;
      if (failed instanceof AgentCfgError && !isRead(request)) failed.mayHaveBeenApplied = mayBeApplied(failed);
      throw failed;
    } finally {
      clearTimeout(timer);
      outer?.removeEventListener("abort", forward);
    }
  }

  async #respond(request: ApiRequest, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { accept: "application/json", ...request.headers };
    const key = await orAborted(this.key(), signal);
    if (key !== undefined) headers["authorization"] = `Bearer ${key}`;
    if (isNode()) headers["user-agent"] = `agentcfg-typescript/${VERSION}`;
    if (request.body !== undefined) headers["content-type"] = "application/json";
    const init: RequestInit = {
      method: request.method,
      headers,
      signal,
      redirect: "manual",
      cache: "no-store",
      credentials: "omit",
    };
    if (request.body !== undefined) init.body = jsonText(request.body);
    const target = `${this.base}${request.path}${queryText(request.query)}`;
    let response: Response;
    try {
      response = await this.#fetch(target, init);
    } catch (error) {
      throw connectionError(error);
    }
    this.rateLimit = rateLimit(response.headers) ?? this.rateLimit;
    return response;
  }
}

/** What the promise gives, unless the signal is aborted before. @internal */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    const done = () => signal.removeEventListener("abort", abort);
    promise.then(resolve, reject).then(done, done);
  });
}

function isIdempotent(request: ApiRequest): boolean {
  return request.idempotent === true || isRead(request);
}

function isRead(request: ApiRequest): boolean {
  return request.isRead === true || request.method === "GET";
}

/** Whether the program runs in Node.js or a runtime that is like it. @internal */
export function isNode(): boolean {
  return typeof process !== "undefined" && process.versions?.node !== undefined;
}

/** The base URL without trailing slashes; the path of each call is appended to it. @internal */
export function baseUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    throw new InputError("the server's URL must start with http:// or https://, such as http://127.0.0.1:7420");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new InputError("the server's URL must start with http:// or https://, such as http://127.0.0.1:7420");
  }
  if (url.username !== "" || url.password !== "") {
    throw new InputError("the server's URL must not hold a user or password: set the credential apart");
  }
  if (/[?#]/.test(text)) throw new InputError("the server's URL must not have a query or fragment");
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

function checkedKey(key: string): string {
  if (typeof key !== "string" || key === "") throw new InputError("the key is empty");
  if (!/^[!-~]+$/.test(key)) {
    throw new InputError("the key holds a space, a line break or another character that cannot be sent");
  }
  return key;
}

function queryText(query: ApiRequest["query"]): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  if (pairs.length === 0) return "";
  return `?${pairs.map(([name, value]) => `${name}=${urlPart(String(value))}`).join("&")}`;
}

/** A text as part of a URL. @internal */
export function urlPart(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch (error) {
    throw new InputError("a parameter holds half of a surrogate pair", { cause: error });
  }
}

/** Why no answer came. The runtime tells more in the error's cause, if at all. */
function connectionError(error: unknown): AgentCfgError {
  const code = causeCode(error);
  if (code !== undefined && UNSENT.has(code)) {
    return new ConnectionError(`no connection could be made (${code})`, "not-applied", { cause: error });
  }
  if (code !== undefined && /CERT|TLS|SELF_SIGNED|UNABLE_TO_/.test(code)) {
    return new ConnectionError(`the server's certificate was refused (${code})`, "final", { cause: error });
  }
  return new ConnectionError("the connection broke before an answer came", "unknown", { cause: error });
}

function causeCode(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = (cause as { code?: unknown }).code;
    if (typeof code === "string") return code;
    // A name with several addresses fails with one error for each.
    if (cause instanceof AggregateError) return causeCode(cause.errors[0]);
  }
  return undefined;
}

async function readText(response: Response): Promise<string> {
  const tooLong = () =>
    new UnreadableAnswerError(`the answer is longer than the ${MAX_ANSWER_BYTES} bytes allowed`, facts(response));
  if (response.body === null) return "";
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let text = "";
  let length = 0;
  for (;;) {
    let piece: ReadableStreamReadResult<Uint8Array>;
    try {
      piece = await reader.read();
    } catch (error) {
      // The status alone classifies a failure.
      if (!response.ok) return "";
      throw new ConnectionError("the connection broke within the answer", "unknown", { ...facts(response), cause: error });
    }
    if (piece.done) return text + decoder.decode();
    length += piece.value.length;
    if (length > (response.ok ? MAX_ANSWER_BYTES : MAX_ERROR_BYTES)) {
      await reader.cancel();
      if (!response.ok) return "";
      throw tooLong();
    }
    text += decoder.decode(piece.value, { stream: true });
  }
}

function failure(response: Response, text: string): AgentCfgError {
  let own: unknown;
  try {
    own = (JSON.parse(text) as { error?: unknown } | null)?.error;
  } catch {
    own = undefined;
  }
  if (typeof own === "string") return statusError(own, response.status, true, facts(response));
  return statusError(foreignMessage(response), response.status, false, facts(response));
}

/** The message for an answer that is not the service's, such as a proxy's page. */
function foreignMessage(response: Response): string {
  const location = response.headers.get("location");
  if (response.type === "opaqueredirect") return "the answer is a redirect, which is not followed";
  if (response.status >= 300 && response.status < 400 && location !== null) {
    return `the answer is a redirect to ${location.slice(0, MAX_QUOTED)}, which is not followed`;
  }
  const type = response.headers.get("content-type");
  if (type !== null) return `the answer is an error in ${type.slice(0, MAX_QUOTED)} that is not from agentcfg`;
  return "the answer is an error without a message";
}

/** @internal */
export function facts(response: { status: number; headers: Headers }): ErrorFacts {
  return {
    status: response.status,
    requestId: response.headers.get("x-request-id")?.slice(0, MAX_QUOTED),
    retryAfterMs: retryAfterMs(response.headers),
    rateLimit: rateLimit(response.headers),
    fields: response.status === 400 ? faultFields(response.headers) : undefined,
    currentEtag: response.status === 412 ? currentEtag(response.headers) : undefined,
  };
}

/** The names in `Fault-Fields`, without those that are not UTF-8 after percent-decoding. @internal */
export function faultFields(headers: Headers): string[] {
  const text = headers.get("fault-fields") ?? "";
  if (/[^\t -~]/.test(text)) return [];
  return text.split(",").flatMap((name) => {
    try {
      return name.trim().replace(/(?:%[0-9a-f]{2})+/gi, decodeURIComponent) || [];
    } catch {
      return [];
    }
  });
}

/** The entity tag. It is the same whether the answer came in gzip or not, so that tags can be compared. @internal */
export function etag(headers: Headers): string | undefined {
  return headers.get("etag")?.replace(/-gzip"$/, '"');
}

/** The entity tag; nothing where it is not a strong one, such as one that a proxy has changed. @internal */
export function currentEtag(headers: Headers): string | undefined {
  const tag = etag(headers);
  return tag !== undefined && /^"[!#-~]+"$/.test(tag) ? tag : undefined;
}

/** Reads the three headers; nothing unless all of them are there and numbers. @internal */
export function rateLimit(headers: Headers): RateLimit | undefined {
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) => {
    const text = headers.get(`x-ratelimit-${name}`);
    return text !== null && /^\d+$/.test(text.trim()) ? Number(text) : undefined;
  });
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined;
  return { limit, remaining, reset: new Date(reset * 1000) };
}

/**
 * The delay that `Retry-After` asks for. A date is compared with the answer's own `Date`, so that the two clocks need not agree.
 *
 * @internal
 */
export function retryAfterMs(headers: Headers): number | undefined {
  const text = headers.get("retry-after")?.trim();
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const delay = Date.parse(text) - Date.parse(headers.get("date") ?? "");
  return Number.isNaN(delay) ? undefined : Math.max(delay, 0);
}

/** The shortest and the longest time from one poll for changes to the next. */
const POLL_MIN_GAP_MS = 2_000;
const POLL_MAX_GAP_MS = 60_000;

/** The shortest and the longest time from one read of what is released to the next, where changes come in a burst. */
const READ_MIN_GAP_MS = 100;
const READ_MAX_GAP_MS = 20_000;

/** The time from one poll to the next. @internal */
export function pollGapMs(limit: RateLimit | undefined, clock: Clock): number {
  return gapMs(limit, clock, POLL_MIN_GAP_MS, POLL_MAX_GAP_MS);
}

/** The time from one read of what is released to the next: longer once half of the rate limit is used. @internal */
export function readGapMs(limit: RateLimit | undefined, clock: Clock): number {
  if (limit !== undefined && limit.remaining * 2 >= limit.limit) return READ_MIN_GAP_MS;
  return gapMs(limit, clock, READ_MIN_GAP_MS, READ_MAX_GAP_MS);
}

/** A time between requests that use half of what the rate limit has left at most. */
function gapMs(limit: RateLimit | undefined, clock: Clock, least: number, most: number): number {
  if (limit === undefined) return least;
  const gap = (limit.reset.getTime() - clock.now()) / Math.max(1, Math.floor(limit.remaining / 2));
  return Math.min(Math.max(least, gap), most);
}

/** The longest delay that a reader of the change feed waits because a server, or a proxy, asks for it. */
const MAX_ASKED_MS = 300_000;

/** How long a reader of the change feed waits because the server asks for it. @internal */
export function askedMs(error: unknown): number {
  return error instanceof AgentCfgError ? Math.min(error.retryAfterMs ?? 0, MAX_ASKED_MS) : 0;
}

/** What the JSON of an answer is; `either` is an array or an object. @internal */
export type JsonForm = "array" | "object" | "either";

/** Reads the JSON of an answer, which must have this form. @internal */
export function json(answer: ApiAnswer, form: JsonForm): unknown {
  const unreadable = (message: string, cause?: unknown) => {
    const error = new UnreadableAnswerError(message, { ...facts(answer), cause });
    error.mayHaveBeenApplied = answer.isOfChange;
    return error;
  };
  let value: unknown;
  try {
    value = JSON.parse(answer.text);
  } catch (error) {
    const type = answer.headers.get("content-type") ?? "";
    const message = type.startsWith("application/json")
      ? "the answer is not the JSON that agentcfg promises"
      : `the answer is ${type.slice(0, MAX_QUOTED) || "without a type"}, not the JSON of agentcfg`;
    throw unreadable(message, error);
  }
  const found = Array.isArray(value) ? "array" : typeof value === "object" && value !== null ? "object" : undefined;
  if (found !== undefined && (form === "either" || form === found)) return value;
  throw unreadable(`the answer is no JSON ${form === "either" ? "array or object" : form}`);
}
