import { type CacheStorage, openCache } from "./cache.js";
import { Client, type ClientOptions } from "./client.js";
import { InputError, mayPass, NotReadyError } from "./errors.js";
import { called, type Health, Mirror } from "./mirror.js";
import {
  type AnthropicClient,
  anthropicClient,
  type OpenAIClient,
  openaiClient,
  type ProviderOptions,
  type ProviderTarget,
} from "./providers.js";
import type { AgentRelease } from "./release.js";
import { checkLabel, type Snapshot, type SnapshotChange } from "./snapshot.js";
import { agentOf, type AgentSource } from "./source.js";
import { StatusScopes, type Work } from "./status-scope.js";

/** Options of `AgentCfg`. */
export interface AgentCfgOptions extends ClientOptions {
  /** The label whose releases are read. The default is `production`; `latest` reads each edit. */
  label?: string | undefined;
  /**
   * Where the last state is kept, so that a start succeeds while the server is down: the path of a file, or in a browser a
   * storage such as `localStorage`.
   */
  cache?: string | URL | CacheStorage | undefined;
  /** Is called for failures that no call reports, such as a cache that cannot be written. The default writes to the console. */
  onError?: ((error: Error) => void) | undefined;
}

const READY_MS = 45_000;

/**
 * The agents that a label releases, in memory and live: one request reads them all, and a stream of changes keeps them so. A
 * release of many agents is one step.
 *
 * ```ts
 * const cfg = await new AgentCfg({ url, key, label: "production", cache: "agents.json" }).ready();
 * const support = cfg.agent("support");
 * ```
 *
 * It begins to read when it is made, and keeps a connection open until `close()`.
 */
export class AgentCfg implements AgentSource {
  /** The REST API, with the same server, credential and workspace. */
  readonly api: Client;
  /** The label whose releases are read. */
  readonly label: string;
  readonly #mirror: Mirror;
  readonly #status: StatusScopes;

  constructor(options: AgentCfgOptions) {
    const { label = "production" } = options;
    checkLabel(label);
    const report = options.onError ?? ((error: Error) => console.error("agentcfg:", error));
    const onError = (error: Error) =>
      called(
        () => report(error),
        (failed) => console.error("agentcfg: onError has failed:", failed),
      );
    this.label = label;
    this.api = new Client(options);
    const { caller } = this.api;
    const { workspace } = caller;
    const { cache } = options;
    this.#mirror = new Mirror({
      transport: caller.transport,
      workspaceId: () => caller.workspaceId(false),
      knownWorkspaceId: workspace,
      label,
      cache: cache === undefined ? undefined : openCache(cache, `agentcfg:${workspace ?? caller.transport.base}:${label}`),
      onError,
    });
    this.#status = new StatusScopes(
      caller.transport.clock,
      (agentId, report) => this.api.status.reportOnce(agentId, report),
      (error) => {
        if (!caller.closing.signal.aborted) onError(error);
      },
    );
  }

  /**
   * Waits until the agents are there: those of the server or, while it cannot be reached, those of the cache. It fails when the
   * server refuses, and when there is nothing after `timeoutMs` (45 s by default). A client that has no agents yet keeps no
   * process running, so a program whose start failed ends.
   */
  async ready({ timeoutMs = READY_MS }: { timeoutMs?: number } = {}): Promise<this> {
    await this.#mirror.ready(timeoutMs);
    return this;
  }

  agent(agentId: string): AgentRelease {
    return agentOf(this.#mirror.snapshot, agentId);
  }

  find(agentId: string): AgentRelease | undefined {
    return this.#mirror.snapshot.agents.get(agentId);
  }

  get snapshot(): Snapshot {
    return this.#mirror.snapshot;
  }

  get health(): Health {
    return this.#mirror.health;
  }

  onChange(listener: (change: SnapshotChange) => void): () => void {
    return this.#mirror.onChange(listener);
  }

  async reportStatus<T>(agentId: string, work: Work, run: () => Promise<T> | T): Promise<T> {
    return await this.#status.run(agentId, work, run);
  }

  /**
   * A client of the package `openai`, which must be installed, that calls as this agent: the server fills in the model, the
   * persona and the credential of the provider. A request may name `model: ""` for the agent's own.
   */
  async openai(agentId: string, options: ProviderOptions = {}): Promise<OpenAIClient> {
    return await openaiClient(await this.#target(agentId), options);
  }

  /** A client of the package `@anthropic-ai/sdk`, which must be installed, that calls as this agent. */
  async anthropic(agentId: string, options: ProviderOptions = {}): Promise<AnthropicClient> {
    return await anthropicClient(await this.#target(agentId), options);
  }

  async close(): Promise<void> {
    const closed = this.#mirror.close();
    this.api.caller.closing.abort(new NotReadyError("the client is closed"));
    await closed;
  }

  async #target(agentId: string): Promise<ProviderTarget> {
    const { transport } = this.api.caller;
    const key = await transport.key();
    if (key === undefined) throw new InputError("model calls need the option key");
    // While the server cannot be reached, it is left out: a key has one workspace.
    const workspace = await this.api.workspaceId().catch((error: unknown) => {
      if (mayPass(error)) return undefined;
      throw error;
    });
    return { base: transport.base, key, agentId, label: this.label, workspace };
  }
}
