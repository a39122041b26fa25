/** Drafts of the configurable fields of an agent: their checks, and what is sent. */
import { FIELDS, NAMES, type AgentField, type Config, type FieldName, type JsonField, type Num } from "./agent-fields";
import { definitionFault } from "./definition";
import { object, pretty, Raw } from "./json-text";
import { count, number, plural } from "./text";
import type { Agent } from "./types";

export { FIELDS, NAMES, type Config, type FieldName };

export interface Tags {
  tags: string[];
  /** A tag that is being typed. */
  entry: string;
}

export interface Parameter {
  name: string;
  value: string;
  /** Its slider was used as one from 0 to 1. */
  fine?: boolean;
}

/** A configuration as it is typed: every text is a text, and parameters are rows that need not be valid yet. */
export type Draft = {
  [N in FieldName]: N extends JsonField
    ? string
    : Config[N] extends string | null
      ? NonNullable<Config[N]>
      : Config[N] extends string[] | null
        ? Tags
        : Parameter[];
};

/** The limits of texts that are no fields of an agent. */
export const LIMITS = { agent_id: 50, message: 500 };

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
/** Writes what people type as a number, such as ".5", "+3" or "05", the way that JSON wants it. */
export function jsonNumber(text: string): string | null {
  const typed = text.trim();
  const value = Number(typed);
  return /^[-+.e\d]+$/i.test(typed) && Number.isFinite(value) ? (NUMBER.test(typed) ? typed : String(value)) : null;
}

const tooMany = (over: number, what: string, limit: number): string | null =>
  over > 0 ? `${plural(over, what)} too many. The limit is ${number(limit)}.` : null;

export const tooLong = (text: string, limit: number): string | null => tooMany(count(text) - limit, "character", limit);

export const textFault = (text: string, limit = Infinity, required?: string): string | null =>
  text.includes("\0")
    ? "It contains a NUL character, which cannot be stored."
    : required && !/\P{White_Space}/u.test(text)
      ? required
      : tooLong(text, limit);

export const messageFault = (text: string): string | null => textFault(text, LIMITS.message);

/** All tags, also those that are being typed. */
export const tagsOf = ({ tags, entry }: Tags): string[] => [
  ...tags,
  ...entry
    .split(",")
    .map((tag) => tag.trim())
    .filter(Boolean),
];

export interface ParameterFaults {
  name: string | null;
  value: string | null;
}

export function parameterFaults(rows: Parameter[], limit: number): ParameterFaults[] {
  const seen = new Set<string>();
  return rows.map(({ name, value }) => {
    const twice = seen.has(name);
    seen.add(name);
    return {
      name: !name ? "A parameter needs a name." : twice ? "There is another parameter of this name." : tooLong(name, limit),
      value: jsonNumber(value) === null ? "Write a number." : null,
    };
  });
}

function sameParameters(a: Parameter[], b: Parameter[]): boolean {
  if (a.length !== b.length) return false;
  const values = new Map(a.map(({ name, value }) => [name, value]));
  return b.every(({ name, value }) => {
    const other = values.get(name);
    return other !== undefined && (other === value || (jsonNumber(other) !== null && jsonNumber(other) === jsonNumber(value)));
  });
}

/** What is done with the values `V` of a kind of field, and with their drafts `D`. */
interface Kind<V = unknown, D = unknown> {
  draft(value: V | null | undefined, field: AgentField): D;
  value(draft: D): V;
  /** The value as JSON, where it is not that of `value`. */
  body?(draft: D): Raw;
  same(stored: D, draft: D): boolean;
  fault(draft: D, field: AgentField): string | null | undefined;
}

const text: Kind<string, string> = {
  draft: (value) => value ?? "",
  value: (draft) => draft,
  same: (stored, draft) => stored === draft,
  fault: (draft, { limit, required }) => textFault(draft, limit, required),
};

const color: Kind<string, string> = {
  ...text,
  fault: (draft, field) =>
    draft && !/^#([0-9a-f]{3}|[0-9a-f]{4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(draft)
      ? "Write # and 3, 4, 6 or 8 hex digits."
      : text.fault(draft, field),
};

const choice: Kind<string, string> = { ...text, draft: (value, { choices }) => value ?? Object.keys(choices!)[0]! };

const tags: Kind<string[], Tags> = {
  draft: (value) => ({ tags: [...(value ?? [])], entry: "" }),
  value: tagsOf,
  same: (stored, draft) => JSON.stringify(tagsOf(stored)) === JSON.stringify(tagsOf(draft)),
  fault: (draft, { limit, most }) => {
    const all = tagsOf(draft);
    return tooMany(all.length - most!, "tag", most!) ?? all.map((tag) => tooLong(tag, limit!)).find(Boolean);
  },
};

const numbers: Kind<Record<string, Num>, Parameter[]> = {
  draft: (value) => Object.entries(value ?? {}).map(([name, number]) => ({ name, value: String(number) })),
  value: (draft) =>
    Object.fromEntries(
      draft.map(({ name, value }) => {
        const text = jsonNumber(value) ?? value;
        return [name, Math.abs(Number(text)) < 2 ** 53 && String(Number(text)) === text ? Number(text) : text];
      }),
    ),
  body: (draft) =>
    new Raw(`{${draft.map(({ name, value }) => `${JSON.stringify(name)}:${jsonNumber(value) ?? "null"}`).join(",")}}`),
  same: sameParameters,
  fault: (draft, { limit, most }) => {
    const row = parameterFaults(draft, limit!).find(({ name, value }) => name ?? value);
    return row?.name ?? row?.value ?? tooMany(draft.length - most!, "parameter", most!);
  },
};

/** JSON, drafted as text. A draft that was merged is a text already. */
const json: Kind<Record<string, unknown> | string, string> = {
  draft: (value) => (typeof value === "string" ? value : value ? pretty(value) : ""),
  value: (draft) => object(draft) ?? "",
  body: (draft) => new Raw(draft.trim() ? draft : "null"),
  same: (stored, draft) => stored === draft || (object(draft) !== null && pretty(object(draft)) === stored),
  fault: definitionFault,
};

const KINDS: Record<AgentField["kind"], Kind> = { text, model: text, color, choice, tags, numbers, json };

const kindOf = (name: FieldName): Kind => KINDS[FIELDS[name].kind];

/** An object with a member for each field. */
const each = <T>(make: (name: FieldName) => unknown): T => Object.fromEntries(NAMES.map((name) => [name, make(name)])) as T;

const draftOf = (name: FieldName, value: unknown): unknown => kindOf(name).draft(value, FIELDS[name]);

/** A draft of a configuration; fields that are left out are empty, or have their default. */
export const toDraft = (config: Partial<Config>): Draft => each((name) => draftOf(name, config[name]));

/** A draft with another value of a field. */
export const withValue = (draft: Draft, name: FieldName, value: unknown): Draft => ({ ...draft, [name]: draftOf(name, value) });

export const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || value === "" || (typeof value === "object" && !Object.keys(value).length);

/** The value of a field; an empty one clears a field that may be null. */
const valueOf = (draft: Draft, name: FieldName): unknown => {
  const value = kindOf(name).value(draft[name]);
  return FIELDS[name].nullable && isEmpty(value) && (value === "" || FIELDS[name].kind !== "json") ? null : value;
};

/** A draft as a configuration, for comparison. Its faults were looked for before. */
export const toConfig = (draft: Draft): Config => each((name) => valueOf(draft, name));

export const configOf = (agent: Agent): Config => each((name) => agent[name] ?? null);

/** The value of a field as one text, for comparison line by line. */
export const textOf = (name: FieldName, value: unknown): string =>
  value === null || value === undefined
    ? ""
    : FIELDS[name].kind === "json" && typeof value === "object"
      ? pretty(value)
      : String(value);

export type Faults = Partial<Record<FieldName, string>>;

/** The faults of a draft. A text may stay as it is stored, even if it is longer than the deployment allows now. */
export function draftFaults(draft: Draft, stored?: Config): Faults {
  const faults: Faults = {};
  for (const name of NAMES) {
    if (stored && FIELDS[name].kind === "text" && draft[name] === draftOf(name, stored[name])) continue;
    const fault = kindOf(name).fault(draft[name], FIELDS[name]);
    if (fault) faults[name] = fault;
  }
  return faults;
}

/** The fields of a draft whose content is not that of `base`. */
export const changedFields = (base: Config, draft: Draft): FieldName[] =>
  NAMES.filter((name) => !kindOf(name).same(draftOf(name, base[name]), draft[name]));

export interface NumberRow {
  /** The name of the number. */
  label: string;
  from: unknown;
  to: unknown;
}

/** The numbers of two values of a field that differ. */
export function numberRows(from: unknown, to: unknown): NumberRow[] {
  const [old, next] = [from ?? {}, to ?? {}] as [Record<string, Num>, Record<string, Num>];
  return [...new Set([...Object.keys(old), ...Object.keys(next)])]
    .filter((label) => String(old[label]) !== String(next[label]))
    .map((label) => ({ label, from: old[label] ?? null, to: next[label] ?? null }));
}

/** The body of a creation or a change with these fields. */
export const toBody = (draft: Draft, names: readonly FieldName[]): Record<string, unknown> =>
  Object.fromEntries(names.map((name) => [name, kindOf(name).body?.(draft[name]) ?? valueOf(draft, name)]));

/** A value for reading. */
export const shown = (value: unknown): string => {
  if (isEmpty(value)) return "None";
  if (Array.isArray(value)) return value.map(String).join(", ");
  if (typeof value === "object")
    return Object.entries(value as object)
      .map(([name, member]) => `${name} ${String(member)}`)
      .join(", ");
  return typeof value === "boolean" ? (value ? "Yes" : "No") : String(value);
};
