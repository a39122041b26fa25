import type { AgentConfig, AgentId, Label, ReleasedAgent, Timestamp } from "./generated.js";
import { renderPrompt, type Variables } from "./prompt.js";

/** A type whose members, and those of its members, cannot be changed. */
export type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T;

/**
 * An agent as its label releases it: the fields of the API under their own names, and the prompt. It is frozen, and so is all
 * that it holds.
 */
export interface AgentRelease extends Frozen<AgentConfig> {
  readonly agent_id: AgentId;
  /** The label that releases the version. */
  readonly label: Label;
  /** The number of the version. */
  readonly version: number;
  /** When the label was moved to this version. */
  readonly updated_at: Timestamp;
  /** The content of the version: the same fields as those of the agent itself. */
  readonly config: Frozen<AgentConfig>;
  /**
   * The persona with its variables filled in, as a model call fills it in. It is null for an agent without a persona, and
   * where nothing is left of it.
   *
   * @throws InputError for a value of a variable that is not declared, and for a required one without a value.
   */
  prompt(variables?: Variables): string | null;
}

/** @internal */
export function makeRelease(row: Frozen<ReleasedAgent>): AgentRelease {
  const config = deepFreeze(row.config);
  const prompt = (variables?: Variables) => renderPrompt(row.config, variables);
  const { agent_id, label, version, updated_at } = row;
  const release = { ...config, agent_id, label, version, updated_at, config };
  // The method is no field: copies and JSON of an agent hold data alone.
  Object.defineProperty(release, "prompt", { value: prompt, enumerable: false });
  return Object.freeze(release) as AgentRelease;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}
