/** Calls of the HTTP API, with relative addresses, so that the dashboard works below a path prefix. */
import { encode, parse, plain, Raw } from "./json-text";
import { signal } from "./signals";

/** Where the server is: the part of the page's address before `ui/`. */
export const root: URL = (() => {
  const path = location.pathname;
  const screen = /^(.*?\/)ui(\/.*)?$/.exec(path);
  return new URL(screen ? screen[1]! : path.replace(/[^/]*$/, ""), location.origin);
})();

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface Options {
  query?: Query;
  body?: unknown;
  ifMatch?: string | null;
  ifNoneMatch?: string | null;
  bearer?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface Answer<T> {
  data: T;
  status: number;
  etag: string | null;
  /** The header `Agent-Version`. */
  version: number | null;
  headers: Headers;
}

/** An answer that is no success: the server's message as it is. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly requestId: string | null,
    readonly retryAfter: number | null,
  ) {
    super(message);
  }
}

/** No answer came. */
export class Unreachable extends Error {
  /** The server may have done what it was asked to all the same. */
  constructor(readonly perhapsDone: boolean) {
    super("The server cannot be reached.");
  }
}

const SESSION_ENDED = "Your session has ended. Sign in in a new tab and come back.";
/** How long the answer to a change may take; a caller with a signal of its own has its own limit. */
const LONGEST = 30_000;

export const isStatus = (error: unknown, ...statuses: number[]): error is ApiError =>
  error instanceof ApiError && statuses.includes(error.status);

/** The time of the last answer, and the time since when no request has reached the server. */
export const lastAnswer = signal<number>(Date.now());
export const lostSince = signal<number | null>(null);
/** True after a 401 in a session that had begun. */
export const ended = signal(false);

export function address(path: string, query: Query = {}): URL {
  const url = new URL(path, root);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url;
}

/** Takes the end of a request without an answer: throws `Unreachable`, but where the caller itself has stopped it. */
function lost(method: string, error: unknown): never {
  if (error instanceof DOMException && error.name === "AbortError") throw error;
  if (lostSince.peek() === null) lostSince.value = lastAnswer.peek();
  // A browser that knows that it is offline has sent nothing.
  throw new Unreachable(method !== "GET" && navigator.onLine);
}

/**
 * What must hold before a change by the cookie is sent: `same` throws where the cookie is that of another user by now. What it
 * gives does so once there is an answer: that may be a secret.
 */
export const session = { same: async (): Promise<() => void> => () => undefined };

/** Sends a request and gives its response, whatever its status. Throws `Unreachable`. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const same = method !== "GET" && options.bearer === undefined && (await session.same());
  const headers = new Headers(options.headers);
  if (options.body !== undefined) headers.set("Content-Type", "application/json");
  if (options.ifMatch) headers.set("If-Match", options.ifMatch);
  if (options.ifNoneMatch) headers.set("If-None-Match", options.ifNoneMatch);
  if (options.bearer) headers.set("Authorization", `Bearer ${options.bearer}`);
  const response = await fetch(address(path, options.query), {
    method,
    headers,
    body: options.body === undefined ? null : encode(options.body),
    redirect: "error",
    signal: options.signal ?? (method === "GET" ? null : AbortSignal.timeout(LONGEST)),
  }).catch((error) => lost(method, error));
  lastAnswer.value = Date.now();
  lostSince.value = null;
  if (same) same();
  return response;
}

/** Sends a request and decodes its answer. Throws `ApiError` for a status of 400 and above. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
  const response = await send(method, path, options);
  if (response.status >= 400) throw await failure(response, !options.bearer);
  const text =
    response.status === 204 || response.status === 304 ? "" : await response.text().catch((error) => lost(method, error));
  const version = response.headers.get("Agent-Version");
  return {
    data: (text ? decode(text) : null) as T,
    status: response.status,
    etag: response.headers.get("ETag"),
    version: version ? Number(version) : null,
    headers: response.headers,
  };
}

export async function failure(response: Response, session = true): Promise<ApiError> {
  const over = response.status === 401 && session;
  if (over) ended.value = true;
  let message = `The server answered ${response.status}.`;
  try {
    const { error } = JSON.parse(await response.text()) as { error?: { message?: unknown } | null };
    // The API sends a text; a provider of models sends an object with a message.
    const said = error?.message ?? error;
    if (typeof said === "string") message = said;
  } catch {
    // A proxy in between answers with something else than JSON.
  }
  const retry = Number(response.headers.get("Retry-After"));
  return new ApiError(
    response.status,
    over ? SESSION_ENDED : message,
    response.headers.get("X-Request-Id"),
    retry > 0 ? retry : null,
  );
}

/**
 * Decodes JSON. An integer that a double cannot hold stays the text that the server sent; within the definition of an agent each
 * number stays as it is written, and is marked, because there a text is another value.
 */
export function decode(text: string): unknown {
  let found = false;
  const exact = (source: string): Raw => {
    found = true;
    return new Raw(source);
  };
  const value = parse(text, exact);
  return found ? plain(value, "definition") : value;
}
