/**
 * The configurable fields of an agent, a row each, in the order of the API. The type of a configuration, the forms, drafts,
 * checks, requests, comparisons and merges follow from it; a test compares it with the OpenAPI document of the server.
 */
import type { Help } from "./texts";

/** A number; as it is written where JavaScript cannot hold it. */
export type Num = number | string;

/** The parts of the form of an agent; `editor.tsx` and `new-agent.tsx` say where each of them is. */
export type Section = "identity" | "persona" | "description" | "model" | "parameters" | "capabilities" | "definition";

export interface AgentField {
  label: string;
  /** The type of its values: their rules are in `config.ts`, its control is in `form.tsx`. */
  kind: "text" | "model" | "color" | "choice" | "tags" | "numbers" | "json";
  section: Section;
  /** At the right of the field before it. */
  beside?: true;
  nullable?: true;
  /** The message where a text that an agent must have is blank. */
  required?: string;
  /** The most characters of a text, of a tag, or of the name of a number. */
  limit?: number;
  /** The most tags, or numbers. */
  most?: number;
  /** The height of a text of several lines. */
  rows?: number;
  /** Versions of the text are compared line by line, outside of the table of fields. */
  long?: true;
  mono?: true;
  /** A sentence of texts.json. */
  hint?: Help;
  /** The label of each value of a choice; the first is the default. */
  choices?: Readonly<Record<string, string>>;
}

const TABLE = {
  display_name: { label: "Display name", kind: "text", section: "identity", required: "An agent needs a name.", limit: 100 },
  role: { label: "Role", kind: "text", section: "identity", beside: true, nullable: true, limit: 100 },
  description: { label: "Description", kind: "text", section: "description", nullable: true, limit: 2000, rows: 4 },
  agent_type: { label: "Type", kind: "choice", section: "identity", choices: { ai: "AI", human: "Human" } },
  model: { label: "Model", kind: "model", section: "model", nullable: true, limit: 100, mono: true },
  color: { label: "Colour", kind: "color", section: "identity", beside: true, nullable: true, limit: 20, mono: true },
  persona_prompt: {
    label: "Persona prompt",
    kind: "text",
    section: "persona",
    nullable: true,
    limit: 5000,
    rows: 21,
    long: true,
    mono: true,
    hint: "persona",
  },
  capabilities: { label: "Capabilities", kind: "tags", section: "capabilities", limit: 100, most: 100 },
  parameters: {
    label: "Parameters",
    kind: "numbers",
    section: "parameters",
    limit: 100,
    most: 100,
    hint: "parameters",
  },
  definition: {
    label: "Definition",
    kind: "json",
    section: "definition",
    nullable: true,
    rows: 12,
    long: true,
    mono: true,
    hint: "definition",
  },
} as const satisfies Record<string, AgentField>;

type Table = typeof TABLE;
export type FieldName = keyof Table;

type Value<F> = F extends { choices: infer C }
  ? keyof C
  : F extends { kind: "tags" }
    ? string[]
    : F extends { kind: "numbers" }
      ? Record<string, Num>
      : F extends { kind: "json" }
        ? Record<string, unknown>
        : string;

/** The content of an agent. */
export type Config = {
  -readonly [N in FieldName]: Value<Table[N]> | (Table[N] extends { nullable: true } ? null : never);
};

const rows: Record<FieldName, AgentField> = { ...TABLE };
/** The fields whose drafts are JSON as text. */
export type JsonField = { [N in FieldName]: Table[N] extends { kind: "json" } ? N : never }[FieldName];

export const FIELDS: Readonly<Record<FieldName, AgentField>> = rows;

/** The limits of the deployment. */
export interface Limits {
  persona_prompt: number;
}

/** Takes over the limits of the deployment; the table has the default ones. */
export function setLimits(limits: Limits | undefined): void {
  rows.persona_prompt = { ...TABLE.persona_prompt, limit: limits?.persona_prompt ?? TABLE.persona_prompt.limit };
}
export const NAMES = Object.keys(TABLE) as FieldName[];
