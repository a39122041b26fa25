// A fake for tests of programs that read their agents with AgentCfg: in memory, without a server.
import type { AgentConfig, ReleasedAgent, StatusReport } from "./generated.js";
import { InputError } from "./errors.js";
import { isSameJson } from "./json.js";
import { type Health, tell } from "./mirror.js";
import type { AnthropicClient, OpenAIClient } from "./providers.js";
import type { AgentRelease } from "./release.js";
import { checkLabel, differences, makeSnapshot, type Snapshot, type SnapshotChange } from "./snapshot.js";
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
  /** The last version of each agent, also of those that are no longer released. */
  readonly #versions = new Map<string, ReleasedAgent>();
  readonly #listeners = new Set<(change: SnapshotChange) => void>();
  readonly #status: StatusScopes;

  constructor(
    agents: Readonly<Record<string, FakeAgent>> = {},
    private readonly options: FakeOptions = {},
  ) {
    this.label = options.label ?? "production";
    checkLabel(this.label);
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

  /**
   * Releases a next version of these agents, and no longer those that are `null`, in one step. The others stay. As on the server, the
   * content of the last version makes no new one. A listener that fails is written to the console.
   */
  release(agents: Readonly<Record<string, FakeAgent | null>>): void {
    if (this.#health.state === "closed") return;
    const before = this.#snapshot;
    this.#snapshot = this.#next(agents);
    const changed = differences(before, this.#snapshot);
    if (changed.length === 0) return;
    const change = Object.freeze({ snapshot: this.#snapshot, changed: Object.freeze(changed) });
    tell(this.#listeners, change, (error) => console.error("agentcfg:", error));
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
    for (const [agent_id, agent] of Object.entries(agents)) check(agent_id, agent ?? {});
    this.#steps += 1;
    for (const [agent_id, agent] of Object.entries(agents)) {
      if (agent === null) {
        this.#rows.delete(agent_id);
        continue;
      }
      const config = configOf(agent_id, agent);
      const last = this.#versions.get(agent_id);
      const version = last === undefined ? 1 : last.version + (isSameJson(config, last.config) ? 0 : 1);
      const updated_at = last?.version === version ? last.updated_at : new Date().toISOString();
      const row = { agent_id, label: this.label, version, updated_at, config };
      this.#versions.set(agent_id, row);
      this.#rows.set(agent_id, row);
    }
    return makeSnapshot(this.label, `fake-${this.#steps}`, [...this.#rows.values()], this.#snapshot);
  }
}

function check(agentId: string, agent: FakeAgent): void {
  if (!/^[a-z0-9_-]{1,50}$/.test(agentId)) {
    throw new InputError(`agent_id must be 1 to 50 of a-z, 0-9, - and _, got ${JSON.stringify(agentId)}`);
  }
  const known = [...Object.keys(defaults(agentId)), "definition"];
  const unknown = Object.keys(agent).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new InputError(`${unknown.join(", ")} of ${agentId} is no field of an agent`);
}

/** The configuration as a server has it: what is left out has its default, and `definition` is there where one is set. */
function configOf(agentId: string, agent: FakeAgent): AgentConfig {
  const given = Object.entries(structuredClone(agent)).filter(
    ([name, value]) => value !== undefined && !(name === "definition" && value === null),
  );
  return { ...defaults(agentId), ...Object.fromEntries(given) };
}

function defaults(agentId: string): AgentConfig {
  const none = { role: null, description: null, model: null, color: null, persona_prompt: null };
  return { display_name: agentId, agent_type: "ai", ...none, capabilities: [], parameters: {} };
}
