import type {
  AgentLabel,
  LabelMoves,
  LabelTarget,
  PromotedLabel,
  Promotion,
  ReleasedAgent,
  RestoredLabel,
} from "../generated.js";
import {
  type Caller,
  type CallOptions,
  type ChangeOptions,
  etagOf,
  type OperationAnswer,
  type QueryOf,
  type Tagged,
} from "./caller.js";

/** Options of a change that can be tried. */
export interface TrialOptions extends ChangeOptions {
  /** Answers the same, and changes nothing. */
  dryRun?: boolean | undefined;
}

/** What a label releases, its entity tag, and the position in the change feed. */
export interface ReleasedList extends Tagged<ReleasedAgent[]> {
  readonly cursor: string | undefined;
}

/** Which of the agents that a label releases are read. */
type ReleasedQuery = Omit<QueryOf<"listReleasedAgents">, "label">;

/** The labels of versions: what is released. */
export class Labels {
  constructor(private readonly caller: Caller) {}

  /**
   * Reads what a label releases: all agents that bear it, with their content, at one moment. A key that is pinned to a label needs
   * to name none.
   */
  async released(label?: string, query: ReleasedQuery = {}, options: CallOptions = {}): Promise<ReleasedList> {
    return released(await this.caller.send("listReleasedAgents", { ...query, label }, options));
  }

  /** Reads what a label releases, unless it is still the state with this tag. */
  async releasedIfChanged(
    etag: string,
    label?: string,
    query: ReleasedQuery = {},
    options: CallOptions = {},
  ): Promise<ReleasedList | undefined> {
    const settings = { ...options, headers: { "if-none-match": etag } };
    const answer = await this.caller.send("listReleasedAgents", { ...query, label }, settings);
    return answer.status === 304 ? undefined : released(answer);
  }

  /** Lists labels. */
  async list(query: QueryOf<"listAgentLabels"> = {}, options: CallOptions = {}): Promise<AgentLabel[]> {
    return await this.caller.call("listAgentLabels", query, options);
  }

  /** Points a label at a version, or at the version of another label. */
  async set(agentId: string, label: string, target: LabelTarget, options: ChangeOptions = {}): Promise<AgentLabel> {
    const query = { agent_id: agentId, label, message: options.message };
    return await this.caller.call("setAgentLabel", query, { body: target, signal: options.signal });
  }

  /** Takes a label from an agent. */
  async remove(agentId: string, label: string, options: ChangeOptions = {}): Promise<void> {
    await this.caller.call(
      "removeAgentLabel",
      { agent_id: agentId, label, message: options.message },
      { signal: options.signal },
    );
  }

  /** Moves the label `to` to where `from` points: of all agents that bear it, of a set or of those named, in one commit. */
  async promote(promotion: Promotion, options: TrialOptions = {}): Promise<PromotedLabel[]> {
    const query = { message: options.message, dry_run: options.dryRun };
    const settings = { body: promotion, isRead: options.dryRun === true, signal: options.signal };
    return await this.caller.call("promoteAgentLabels", query, settings);
  }

  /** Lists the commits that moved a label, the newest first. */
  async history(
    label: string,
    query: Omit<QueryOf<"listLabelMoves">, "label"> = {},
    options: CallOptions = {},
  ): Promise<LabelMoves[]> {
    return await this.caller.call("listLabelMoves", { ...query, label }, options);
  }

  /** Puts a label of all agents back to where it was at a revision, in one commit. */
  async restore(
    label: string,
    revision: number,
    options: TrialOptions & { base?: string | undefined } = {},
  ): Promise<RestoredLabel[]> {
    const query = { message: options.message, dry_run: options.dryRun };
    const body = { label, revision, ...(options.base === undefined ? {} : { base: options.base }) };
    return await this.caller.call("restoreAgentLabels", query, {
      body,
      isRead: options.dryRun === true,
      signal: options.signal,
    });
  }
}

function released(answer: OperationAnswer<"listReleasedAgents">): ReleasedList {
  return { value: answer.value(), etag: etagOf(answer), cursor: answer.headers.get("change-cursor") ?? undefined };
}
