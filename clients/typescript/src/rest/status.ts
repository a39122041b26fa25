import type { AgentStatus, StatusReport } from "../generated.js";
import type { Caller, CallOptions } from "./caller.js";

/** The live status of agents. */
export class Statuses {
  constructor(private readonly caller: Caller) {}

  /** Lists the status of each active agent. */
  async list(options: CallOptions = {}): Promise<AgentStatus[]> {
    return await this.caller.call("listAgentStatus", {}, options);
  }

  /** Reports what an agent does now. A report expires after two minutes by default: repeat it before. */
  async report(agentId: string, report: StatusReport, options: CallOptions = {}): Promise<AgentStatus> {
    const settings = { body: report, idempotent: true, signal: options.signal };
    return await this.caller.call("reportAgentStatus", { agent_id: agentId }, settings);
  }
}
