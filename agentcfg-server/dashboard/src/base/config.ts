/** The configurable fields of an agent: drafts, limits, and what is sent. */
import { Raw } from "./api";
import { count, number, plural } from "./text";
import type { Agent, AgentType, Config, Num } from "./types";

/** A configuration as it is typed: every text is a text, and parameters are rows that need not be valid yet. */
export interface Draft {
  display_name: string;
  role: string;
  description: string;
  agent_type: AgentType;
  model: string;
  color: string;
  persona_prompt: string;
  capabilities: string[];
  /** A tag that is being typed. */
  entry: string;
  parameters: Parameter[];
}

export interface Parameter {
  name: string;
  value: string;
  /** Its slider was used as one from 0 to 1. */
  fine?: boolean;
}

export type TextField = "display_name" | "role" | "description" | "model" | "color" | "persona_prompt";

export const LIMITS: Record<TextField | "agent_id" | "message" | "tag", number> = {
  agent_id: 50,
  display_name: 100,
  role: 100,
  description: 2000,
  model: 100,
  color: 20,
  persona_prompt: 5000,
  message: 500,
  tag: 100,
};
export const MOST = 100;

export const NAMES: Record<keyof Config, string> = {
  display_name: "Display name",
  role: "Role",
  description: "Description",
  agent_type: "Type",
  model: "Model",
  color: "Colour",
  persona_prompt: "Persona prompt",
  capabilities: "Capabilities",
  parameters: "Parameters",
};

export const FIELDS = Object.keys(NAMES) as (keyof Config)[];

export const toDraft = (config: Config): Draft => ({
  display_name: config.display_name,
  role: config.role ?? "",
  description: config.description ?? "",
  agent_type: config.agent_type,
  model: config.model ?? "",
  color: config.color ?? "",
  persona_prompt: config.persona_prompt ?? "",
  capabilities: [...config.capabilities],
  entry: "",
  parameters: Object.entries(config.parameters).map(([name, value]) => ({ name, value: String(value) })),
});

export const emptyDraft = (): Draft =>
  toDraft({
    display_name: "",
    role: null,
    description: null,
    agent_type: "ai",
    model: null,
    color: null,
    persona_prompt: null,
    capabilities: [],
    parameters: {},
  });

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
/** Writes what people type as a number, such as ".5", "+3" or "05", the way that JSON wants it. */
export function jsonNumber(text: string): string | null {
  const typed = text.trim().replace(",", ".");
  if (NUMBER.test(typed) && Number.isFinite(Number(typed))) return typed;
  const value = Number(typed);
  return typed !== "" && /^[+\-.\d]/.test(typed) && !/^[+-]?0[xob]/i.test(typed) && Number.isFinite(value) ? String(value) : null;
}

const tooLong = (name: string, limit: number): string | null => {
  const over = count(name) - limit;
  return over > 0 ? `${plural(over, "character")} too many. The limit is ${number(limit)}.` : null;
};

export const textFault = (field: TextField | "message" | "agent_id", text: string): string | null => {
  if (text.includes("\0")) return "It contains a NUL character, which cannot be stored.";
  if (field === "display_name" && !/\P{White_Space}/u.test(text)) return "An agent needs a name.";
  if (field === "color" && text && !/^#([0-9a-f]{3}|[0-9a-f]{4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(text))
    return "Write # and 3, 4, 6 or 8 hex digits.";
  if (field === "agent_id") {
    if (!text) return "An agent needs an id.";
    if (!/^[a-z0-9_-]*$/.test(text)) return "Lowercase letters, digits, hyphens and underscores.";
  }
  return tooLong(text, LIMITS[field]);
};

/** The tags of a draft, also those that are being typed. */
export const tagsOf = ({ capabilities, entry }: Draft): string[] => [
  ...capabilities,
  ...entry
    .split(",")
    .map((tag) => tag.trim())
    .filter(Boolean),
];

export interface ParameterFaults {
  name?: string;
  value?: string;
}

export function parameterFaults(rows: Parameter[]): ParameterFaults[] {
  const seen = new Set<string>();
  return rows.map(({ name, value }) => {
    const faults: ParameterFaults = {};
    if (!name) faults.name = "A parameter needs a name.";
    else if (seen.has(name)) faults.name = "There is another parameter of this name.";
    else if (tooLong(name, LIMITS.tag)) faults.name = tooLong(name, LIMITS.tag)!;
    if (jsonNumber(value) === null) faults.value = "Write a number.";
    seen.add(name);
    return faults;
  });
}

export type Faults = Partial<Record<keyof Config, string>>;

export function draftFaults(draft: Draft): Faults {
  const faults: Faults = {};
  for (const field of ["display_name", "role", "description", "model", "color", "persona_prompt"] as const) {
    const fault = textFault(field, draft[field]);
    if (fault) faults[field] = fault;
  }
  const tags = tagsOf(draft);
  const fault = tags.map((tag) => tooLong(tag, LIMITS.tag)).find(Boolean);
  if (fault) faults.capabilities = fault;
  if (tags.length > MOST) faults.capabilities = `${plural(tags.length - MOST, "tag")} too many. The limit is ${MOST}.`;
  if (draft.parameters.length > MOST)
    faults.parameters = `${plural(draft.parameters.length - MOST, "parameter")} too many. The limit is ${MOST}.`;
  const row = parameterFaults(draft.parameters).find(({ name, value }) => name || value);
  if (row) faults.parameters = (row.name ?? row.value)!;
  return faults;
}

const sameNumber = (a: Num | undefined, b: Num | undefined): boolean =>
  a !== undefined && b !== undefined && (String(a) === String(b) || (typeof a === "number" && typeof b === "number" && a === b));

/** The fields of a draft whose content is not that of `base`. */
export function changedFields(base: Config, draft: Draft): (keyof Config)[] {
  const stored = toDraft(base);
  return FIELDS.filter((field) => {
    if (field === "parameters") return !sameParameters(stored.parameters, draft.parameters);
    if (field === "capabilities") return JSON.stringify(tagsOf(draft)) !== JSON.stringify(stored.capabilities);
    return stored[field] !== draft[field];
  });
}

export function sameParameters(a: Parameter[], b: Parameter[]): boolean {
  if (a.length !== b.length) return false;
  const values = new Map(a.map(({ name, value }) => [name, value]));
  return b.every(({ name, value }) => {
    const other = values.get(name);
    return other !== undefined && (other === value || (jsonNumber(other) !== null && jsonNumber(other) === jsonNumber(value)));
  });
}

/** The names of the parameters that differ. */
export function changedParameters(a: Record<string, Num>, b: Record<string, Num>): string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((name) => !sameNumber(a[name], b[name]));
}

/** The body of a creation or a change with these fields; an empty text clears a field that may be absent. */
export function toBody(draft: Draft, fields: readonly (keyof Config)[]): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const field of fields) {
    if (field === "parameters") {
      const members = draft.parameters.map(({ name, value }) => `${JSON.stringify(name)}:${jsonNumber(value) ?? "null"}`);
      body[field] = new Raw(`{${members.join(",")}}`);
    } else if (field === "capabilities") body[field] = tagsOf(draft);
    else if (field === "agent_type" || field === "display_name") body[field] = draft[field];
    else body[field] = draft[field] === "" ? null : draft[field];
  }
  return body;
}

/** A draft as a configuration, for comparison. Its faults were looked for before. */
export const toConfig = (draft: Draft): Config => ({
  display_name: draft.display_name,
  role: draft.role || null,
  description: draft.description || null,
  agent_type: draft.agent_type,
  model: draft.model || null,
  color: draft.color || null,
  persona_prompt: draft.persona_prompt || null,
  capabilities: tagsOf(draft),
  parameters: Object.fromEntries(
    draft.parameters.map(({ name, value }) => {
      const text = jsonNumber(value) ?? value;
      return [name, Number.isFinite(Number(text)) && String(Number(text)) === text ? Number(text) : text];
    }),
  ),
});

/** A value for reading. */
export const shown = (value: unknown): string => {
  if (value === null || value === undefined || value === "") return "None";
  if (Array.isArray(value)) return value.length ? value.map(String).join(", ") : "None";
  if (typeof value === "object") {
    const members = Object.entries(value as object);
    return members.length ? members.map(([name, member]) => `${name} ${String(member)}`).join(", ") : "None";
  }
  return typeof value === "boolean" ? (value ? "Yes" : "No") : String(value);
};

export const configOf = (agent: Agent): Config => {
  const { display_name, role, description, agent_type, model, color, persona_prompt, capabilities, parameters } = agent;
  return { display_name, role, description, agent_type, model, color, persona_prompt, capabilities, parameters };
};
