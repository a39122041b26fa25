// A fake for tests of programs that read their agents with AgentCfg: in memory, without a server.
import type { AgentConfig, ReleasedAgent, StatusReport } from "./generated.js";
import type { Health } from "./mirror.js";
import type { AnthropicClient, OpenAIClient } from "./providers.js";
import type { AgentRelease } from "./release.js";
import { differences, makeSnapshot, type Snapshot, type SnapshotChange } from "./snapshot.js";
import { agentOf, type AgentSource } from "./source.js";
import { StatusScopes, type Work } from "./status-scope.js";
import { systemClock } from "./clock.js";

/** The fields of an agent that a test cares for; the others have their defaults. */
export type FakeAgent = Partial<AgentConfig>;

/** Options of `FakeAgentCfg`. */
export interface FakeOptions {
  label?: string;
  /** What `openai()` and `anthropic()` return, such as a fake of the SDK. */
  openai?: (agentId: string) => OpenAIClient;
  anthropic?: (agentId: string) => AnthropicClient;
}

/** A report that was made by `reportStatus`. */
export interface FakeReport extends StatusReport {
  agent_id: string;
}

/**
 * Agents in memory with the interface of `AgentCfg`. A test releases others with `release`, which is one step for the listeners.
 *
 * ```ts
 * const cfg = new FakeAgentCfg({ support: { model: "gpt-5.5", persona_prompt: "Help {{name}}." } });
 * ```
 */
export class FakeAgentCfg implements AgentSource {
  readonly label: string;
  /** The reports of `reportStatus`, in their order. */
  readonly reports: FakeReport[] = [];
  #snapshot: Snapshot;
  #health: Health;
  #steps = 0;
  readonly #rows = new Map<string, ReleasedAgent>();
  readonly #versions = new Map<string, number>();
  readonly #listeners = new Set<(change: SnapshotChange) => void>();
  readonly #status: StatusScopes;

  constructor(
    agents: Readonly<Record<string, FakeAgent>> = {},
    private readonly options: FakeOptions = {},
  ) {
    this.label = options.label ?? "production";
    this.#status = new StatusScopes(
      systemClock,
      async (agent_id, report) => this.reports.push({ agent_id, ...report }),
      (error) => {
        throw error;
      },
    );
    this.#health = Object.freeze({ source: "server", state: "live", confirmedAt: new Date(), ageMs: 0, error: undefined });
    this.#snapshot = this.#next(agents);
  }

  /** Releases a next version of these agents, and no longer those that are `null`, in one step. The others stay. */
  release(agents: Readonly<Record<string, FakeAgent | null>>): void {
    const before = this.#snapshot;
    this.#snapshot = this.#next(agents);
    const changed = differences(before, this.#snapshot);
    if (changed.length === 0) return;
    for (const listener of this.#listeners)
      listener(Object.freeze({ snapshot: this.#snapshot, changed: Object.freeze(changed) }));
  }

  /** Sets parts of `health`, such as `{ state: "connecting", ageMs: 600_000 }`. */
  setHealth(health: Partial<Health>): void {
    this.#health = Object.freeze({ ...this.#health, ...health });
  }

  async ready(_options: { timeoutMs?: number } = {}): Promise<this> {
    return this;
  }

  agent(agentId: string): AgentRelease {
    return agentOf(this.#snapshot, agentId);
  }

  find(agentId: string): AgentRelease | undefined {
    return this.#snapshot.agents.get(agentId);
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  get health(): Health {
    return this.#health;
  }

  onChange(listener: (change: SnapshotChange) => void): () => void {
    const own = (change: SnapshotChange) => listener(change);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  async reportStatus<T>(agentId: string, work: Work, run: () => Promise<T> | T): Promise<T> {
    return await this.#status.run(agentId, work, run);
  }

  async openai(agentId: string): Promise<OpenAIClient> {
    if (this.options.openai === undefined) throw new Error("give FakeAgentCfg the option openai");
    return this.options.openai(agentId);
  }

  async anthropic(agentId: string): Promise<AnthropicClient> {
    if (this.options.anthropic === undefined) throw new Error("give FakeAgentCfg the option anthropic");
    return this.options.anthropic(agentId);
  }

  async close(): Promise<void> {
    this.#health = Object.freeze({ ...this.#health, state: "closed" });
    this.#listeners.clear();
  }

  #next(agents: Readonly<Record<string, FakeAgent | null>>): Snapshot {
    this.#steps += 1;
    for (const [agent_id, agent] of Object.entries(agents)) {
      if (agent === null) {
        this.#rows.delete(agent_id);
        continue;
      }
      const version = (this.#versions.get(agent_id) ?? 0) + 1;
      this.#versions.set(agent_id, version);
      const config = { ...defaults(agent_id), ...structuredClone(agent) };
      this.#rows.set(agent_id, { agent_id, label: this.label, version, updated_at: new Date().toISOString(), config });
    }
    return makeSnapshot(this.label, `fake-${this.#steps}`, [...this.#rows.values()], this.#snapshot);
  }
}

function defaults(agentId: string): AgentConfig {
  const none = { role: null, description: null, model: null, color: null, persona_prompt: null };
  return { display_name: agentId, agent_type: "ai", ...none, capabilities: [], parameters: {} };
}
