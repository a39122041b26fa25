import type { AgentDiff, AgentVersion, AgentVersionDetail, LabelDiff, Rollback } from "../generated.js";
import { type VersionedAgent, versioned } from "./agents.js";
import { type Caller, type CallOptions, type ConditionalOptions, ifMatch, type QueryOf } from "./caller.js";

/** One version of an agent: at most one of the selectors. Without one it is the current version. */
export interface VersionSelector {
  version?: number | undefined;
  label?: string | undefined;
  /** What was current at this time. */
  at?: Date | string | undefined;
  /** What was current at this revision of the workspace. */
  revision?: number | undefined;
}

/** The versions of agents. */
export class Versions {
  constructor(private readonly caller: Caller) {}

  /** Lists the versions of an agent, the newest first. */
  async list(
    agentId: string,
    page: Omit<QueryOf<"listAgentVersions">, "agent_id"> = {},
    options: CallOptions = {},
  ): Promise<AgentVersion[]> {
    return await this.caller.call("listAgentVersions", { ...page, agent_id: agentId }, options);
  }

  /** Lists the current version of each active agent. */
  async current(options: CallOptions = {}): Promise<AgentVersion[]> {
    return await this.caller.call("listAgentVersions", {}, options);
  }

  /** Reads one version with its content, also of a deactivated agent. There is no fallback to another one. */
  async get(agentId: string, selector: VersionSelector = {}, options: CallOptions = {}): Promise<AgentVersionDetail> {
    const at = selector.at instanceof Date ? selector.at.toISOString() : selector.at;
    return await this.caller.call("getAgentVersion", { ...selector, at, agent_id: agentId }, options);
  }

  /** Compares two versions, each by its number or a label; `to` is the current one where it is left out. */
  async diff(agentId: string, from: number | string, to?: number | string, options: CallOptions = {}): Promise<AgentDiff> {
    const query = { agent_id: agentId, from: String(from), to: to === undefined ? undefined : String(to) };
    return (await this.caller.call("diffAgentVersions", query, { ...options, form: "object" })) as AgentDiff;
  }

  /** Compares what two labels point at, for each active agent that has both; `latest` is the current version. */
  async diffLabels(from: string, to: string, options: CallOptions = {}): Promise<LabelDiff[]> {
    return (await this.caller.call("diffAgentVersions", { from, to }, { ...options, form: "array" })) as LabelDiff[];
  }

  /** Gives an agent the content of an earlier version, as a new version. */
  async rollback(agentId: string, to: Rollback, options: ConditionalOptions = {}): Promise<VersionedAgent> {
    const query = { agent_id: agentId, message: options.message };
    const answer = await this.caller.send("rollBackAgent", query, {
      body: to,
      headers: ifMatch(options),
      signal: options.signal,
    });
    return versioned(answer, answer.value());
  }
}
