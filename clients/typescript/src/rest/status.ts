import type { AgentStatus, StatusChange, StatusReport } from "../generated.js";
import type { Caller, CallOptions, QueryOf } from "./caller.js";

/** Changes of the status, and the time since which the server that answered has seen all of them. */
export interface StatusHistory {
  readonly changes: StatusChange[];
  readonly since: string | undefined;
}

/** The live status of agents. */
export class Statuses {
  constructor(private readonly caller: Caller) {}

  /** Lists the status of each active agent. */
  async list(options: CallOptions = {}): Promise<AgentStatus[]> {
    return await this.caller.call("listAgentStatus", {}, options);
  }

  /** Lists the changes of the status in the last 24 hours, the oldest first, and from when on the server has seen them. */
  async history(query: QueryOf<"listStatusHistory"> = {}, options: CallOptions = {}): Promise<StatusHistory> {
    const answer = await this.caller.send("listStatusHistory", query, options);
    return { changes: answer.value(), since: answer.headers.get("history-since") ?? undefined };
  }

  /** Reports what an agent does now. A report expires after two minutes by default: repeat it before. */
  async report(agentId: string, report: StatusReport, options: CallOptions = {}): Promise<AgentStatus> {
    const settings = { body: report, idempotent: true, signal: options.signal };
    return await this.caller.call("reportAgentStatus", { agent_id: agentId }, settings);
  }

  /** The same, sent once whatever the retry policy is: the next report follows anyway. @internal */
  async reportOnce(agentId: string, report: StatusReport): Promise<void> {
    const settings = { body: report, repeats: false, signal: this.caller.closing.signal };
    await this.caller.call("reportAgentStatus", { agent_id: agentId }, settings);
  }
}
