import type { RenderedPrompt } from "../generated.js";
import type { Variables } from "../prompt.js";
import type { Caller, CallOptions, QueryOf } from "./caller.js";

/** The prompts of agents, as the server renders them. */
export class Prompts {
  constructor(private readonly caller: Caller) {}

  /** Renders what a model call would fill in: of the current version, or of that of a label or a number. */
  async render(
    agentId: string,
    variables?: Variables,
    selector: Omit<QueryOf<"renderAgentPrompt">, "agent_id"> = {},
    options: CallOptions = {},
  ): Promise<RenderedPrompt> {
    const body = variables === undefined ? {} : { variables: { ...variables } };
    const settings = { body, isRead: true, signal: options.signal };
    return await this.caller.call("renderAgentPrompt", { ...selector, agent_id: agentId }, settings);
  }
}
