import { InputError } from "../errors.js";
import { type OperationAddress, type Operations, OPERATIONS, type WhoAmI } from "../generated.js";
import { readLines } from "../lines.js";
import { type ApiAnswer, type ApiRequest, etag, json, type JsonForm, type Transport } from "../transport.js";

/** Options of each call. */
export interface CallOptions {
  /** Cancels the call. */
  signal?: AbortSignal | undefined;
}

/** Options of each change of agents and labels. */
export interface ChangeOptions extends CallOptions {
  /** Why the change is made: it is kept in the audit log, and with the version if the change makes one. */
  message?: string | undefined;
}

/** Options of a change that refuses to overwrite what the caller has not read. */
export interface ConditionalOptions extends ChangeOptions {
  /** The `etag` of the record that the change is based on, or `*`. Where the record has changed since, the call fails with 412. */
  ifMatch?: string | undefined;
}

/** A record with its entity tag. */
export interface Tagged<T> {
  readonly value: T;
  /** The entity tag, for `ifMatch` and `ifNoneMatch`. */
  readonly etag: string;
}

/** The query of an operation without the workspace, which is that of the client. */
export type QueryOf<K extends keyof Operations> = Omit<Operations[K]["query"], "workspace_id">;

/** @internal */
export interface CallSettings {
  body?: unknown;
  headers?: Record<string, string> | undefined;
  signal?: AbortSignal | undefined;
  idempotent?: boolean | undefined;
  isRead?: boolean | undefined;
  attemptMs?: number | undefined;
  repeats?: boolean | undefined;
  /** The form of the answer, where it follows from the query. */
  form?: JsonForm | undefined;
}

/** What an operation answers. @internal */
export interface OperationAnswer<K extends keyof Operations> extends ApiAnswer {
  /** Reads the record, or the list of them. */
  value(): Operations[K]["answer"];
}

/** Sends operations of the OpenAPI document. @internal */
export class Caller {
  /** Ends what the client sends by itself: the question for its workspace, and reports. */
  readonly closing = new AbortController();
  #only: string | undefined;
  /** The questions for the workspace that are sent: one that is repeated, and one that is not. */
  readonly #asked = new Map<boolean, Promise<string>>();

  constructor(
    readonly transport: Transport,
    readonly workspace: string | undefined,
  ) {}

  /** The client's workspace: the one that it was given, else the only one of the credential. */
  async workspaceId(repeats = true): Promise<string> {
    const known = this.workspace ?? this.#only;
    if (known !== undefined) return known;
    const asked = this.#asked.get(repeats) ?? this.#ask(repeats).finally(() => this.#asked.delete(repeats));
    this.#asked.set(repeats, asked);
    return (this.#only = await asked);
  }

  async #ask(repeats: boolean): Promise<string> {
    const request = { method: "GET", path: OPERATIONS.whoAmI.path };
    const answer = repeats
      ? await this.transport.send(request)
      : await this.transport.sendOnce({ ...request, signal: this.closing.signal });
    const { workspaces } = json(answer, OPERATIONS.whoAmI.answer) as WhoAmI;
    const [only] = workspaces;
    if (only === undefined || workspaces.length > 1) {
      const ids = workspaces.map(({ id }) => id).join(", ") || "none";
      throw new InputError(`the option workspace is required: the credential has ${workspaces.length} workspaces (${ids})`);
    }
    return only.id;
  }

  /** Sends an operation, and returns its whole answer. */
  async send<K extends keyof Operations>(name: K, query: QueryOf<K>, settings: CallSettings = {}): Promise<OperationAnswer<K>> {
    const answer = await this.transport.send(await this.#request(name, query, settings));
    const form = settings.form ?? (OPERATIONS[name].answer as JsonForm);
    return { ...answer, value: () => json(answer, form) as Operations[K]["answer"] };
  }

  /** Sends an operation once, and reads its answer line by line. */
  async *lines<K extends keyof Operations>(
    name: K,
    query: QueryOf<K>,
    options: CallOptions,
  ): AsyncGenerator<Operations[K]["answer"], void, undefined> {
    for await (const line of readLines(this.transport, await this.#request(name, query, options))) {
      yield line as Operations[K]["answer"];
    }
  }

  async #request<K extends keyof Operations>(name: K, query: QueryOf<K>, settings: CallSettings): Promise<ApiRequest> {
    const address: OperationAddress = OPERATIONS[name];
    const all = { ...query } as NonNullable<ApiRequest["query"]>;
    // Where an agent may be left out, the workspace is required without it.
    const isRequired = address.workspace === "required" || (address.workspace === "optional" && all["agent_id"] === undefined);
    if (isRequired) all["workspace_id"] = await this.workspaceId(settings.repeats);
    else if (address.workspace === "optional") all["workspace_id"] ??= this.workspace;
    const headers: Record<string, string> = {};
    for (const [header, value] of Object.entries(settings.headers ?? {})) {
      if (/[^\t -~]/.test(value)) throw new InputError(`${header} holds a character that no header may have`);
      headers[header] = value;
    }
    return {
      method: address.method,
      path: address.path,
      query: all,
      body: settings.body,
      headers,
      signal: settings.signal,
      ...(settings.idempotent === undefined ? {} : { idempotent: settings.idempotent }),
      ...(settings.isRead === undefined ? {} : { isRead: settings.isRead }),
      ...(settings.repeats === undefined ? {} : { repeats: settings.repeats }),
      ...(settings.attemptMs === undefined ? {} : { attemptMs: settings.attemptMs }),
    };
  }

  /** Sends an operation, and returns the record that it answers. */
  async call<K extends keyof Operations>(
    name: K,
    query: QueryOf<K>,
    settings: CallSettings & { body?: Operations[K]["body"] } = {},
  ): Promise<Operations[K]["answer"]> {
    return (await this.send(name, query, settings)).value();
  }
}

/** @internal */
export function etagOf(answer: ApiAnswer): string {
  return etag(answer.headers) ?? "";
}

/** The header of a condition. A text that is no entity tag never meets it, so it is sent as one. @internal */
export function ifMatch(options: ConditionalOptions): Record<string, string> {
  return options.ifMatch === undefined ? {} : { "if-match": options.ifMatch === "" ? '""' : options.ifMatch };
}
