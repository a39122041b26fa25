import { NotFoundError } from "../errors.js";
import type { Agent, AgentPatch, AppliedAgents, ApplyAgents, NewAgent } from "../generated.js";
import { type ApiAnswer, facts } from "../transport.js";
import {
  type Caller,
  type CallOptions,
  type ChangeOptions,
  type ConditionalOptions,
  etagOf,
  ifMatch,
  type OperationAnswer,
  type QueryOf,
  type Tagged,
} from "./caller.js";

/** An agent with its entity tag and the number of its current version. */
export interface VersionedAgent extends Tagged<Agent> {
  readonly version: number;
}

/** A list of agents, its entity tag, and the position in the change feed at which it was read. */
export interface AgentList extends Tagged<Agent[]> {
  readonly cursor: string | undefined;
}

/** The configurations of agents. */
export class Agents {
  constructor(private readonly caller: Caller) {}

  /** Lists the agents, as they are or as they were. */
  async list(query: QueryOf<"listAgents"> = {}, options: CallOptions = {}): Promise<AgentList> {
    return list(await this.caller.send("listAgents", query, options));
  }

  /** Lists the agents, unless the list is still the one with this tag. */
  async listIfChanged(
    etag: string,
    query: QueryOf<"listAgents"> = {},
    options: CallOptions = {},
  ): Promise<AgentList | undefined> {
    const answer = await this.caller.send("listAgents", query, { ...options, headers: { "if-none-match": etag } });
    return answer.status === 304 ? undefined : list(answer);
  }

  /** Reads an active agent. */
  async get(agentId: string, options: CallOptions = {}): Promise<VersionedAgent> {
    const answer = await this.caller.send("listAgents", { agent_id: agentId }, options);
    const [value] = answer.value();
    if (value === undefined) {
      throw new NotFoundError(`there is no active agent ${agentId}`, 404, "final", { requestId: facts(answer).requestId });
    }
    return versioned(answer, value);
  }

  /** Creates an agent. */
  async create(agent: Omit<NewAgent, "workspace_id">, options: ChangeOptions = {}): Promise<VersionedAgent> {
    const body: NewAgent = { ...agent, workspace_id: await this.caller.workspaceId() };
    return one(await this.caller.send("createAgent", { message: options.message }, { body, signal: options.signal }));
  }

  /** Changes the fields that are given; `null` empties a nullable one. */
  async update(agentId: string, patch: AgentPatch, options: ConditionalOptions = {}): Promise<VersionedAgent> {
    const query = { agent_id: agentId, message: options.message };
    return one(await this.caller.send("updateAgent", query, { body: patch, headers: ifMatch(options), signal: options.signal }));
  }

  /** Deactivates an agent. Its history and its labels stay. */
  async delete(agentId: string, options: ConditionalOptions = {}): Promise<void> {
    const query = { agent_id: agentId, message: options.message };
    await this.caller.call("deleteAgent", query, { headers: ifMatch(options), signal: options.signal });
  }

  /** Brings a deactivated agent back. */
  async restore(agentId: string, options: ConditionalOptions = {}): Promise<VersionedAgent> {
    const query = { agent_id: agentId, message: options.message };
    return one(await this.caller.send("restoreAgent", query, { headers: ifMatch(options), signal: options.signal }));
  }

  /** Brings agents to the state that the body names, all in one commit or none. With `dryRun` nothing is changed. */
  async apply(body: ApplyAgents, options: ChangeOptions & { dryRun?: boolean | undefined } = {}): Promise<AppliedAgents> {
    const query = { message: options.message, dry_run: options.dryRun };
    return await this.caller.call("applyAgents", query, { body, isRead: options.dryRun === true, signal: options.signal });
  }
}

function list(answer: OperationAnswer<"listAgents">): AgentList {
  return { value: answer.value(), etag: etagOf(answer), cursor: answer.headers.get("change-cursor") ?? undefined };
}

function one(answer: OperationAnswer<"createAgent" | "updateAgent" | "restoreAgent">): VersionedAgent {
  return versioned(answer, answer.value());
}

/** The version is 0 where a proxy has removed it. @internal */
export function versioned(answer: ApiAnswer, value: Agent): VersionedAgent {
  return { value, etag: etagOf(answer), version: Number(answer.headers.get("agent-version") ?? 0) };
}
