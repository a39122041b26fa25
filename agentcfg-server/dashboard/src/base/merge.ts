/** Three-way merge of an agent's configuration, after another save came in between. */
import type { Num } from "./agent-fields";
import {
  FIELDS,
  isEmpty,
  NAMES,
  textOf,
  toConfig,
  toDraft,
  withValue,
  type Config,
  type Draft,
  type FieldName,
  type Parameter,
} from "./config";

export type Side = "theirs" | "mine" | "edit";

/** A field, or one number of it. */
export interface Part {
  key: string;
  label: string;
  field: FieldName;
  /** The name of the number. */
  parameter: string | null;
  base: unknown;
  theirs: unknown;
  mine: unknown;
}

export interface Merged extends Part {
  side: "theirs" | "mine" | "both";
}

export interface Merge {
  conflicts: Part[];
  merged: Merged[];
}

const text = (value: unknown): string => JSON.stringify(value ?? null);
const same = (a: unknown, b: unknown): boolean => text(a) === text(b);

export function merge(base: Config, theirs: Config, draft: Draft): Merge {
  const mine = toConfig(draft);
  const parts = NAMES.flatMap((field): Part[] => {
    const part = (key: string, label: string, parameter: string | null, of: (config: Config) => unknown): Part => ({
      key,
      label,
      field,
      parameter,
      base: of(base),
      theirs: of(theirs),
      mine: of(mine),
    });
    if (FIELDS[field].kind !== "numbers") {
      // An empty text that is stored and one that was left empty are the same to the user.
      return [part(field, FIELDS[field].label, null, (config) => (isEmpty(config[field]) ? null : config[field]))];
    }
    const numbers = (config: Config) => config[field] as Record<string, Num>;
    const names = new Set([base, theirs, mine].flatMap((config) => Object.keys(numbers(config))));
    return [...names].map((name) => part(`${field}.${name}`, name, name, (config) => numbers(config)[name] ?? null));
  });
  const result: Merge = { conflicts: [], merged: [] };
  for (const part of parts) {
    const theirsChanged = !same(part.base, part.theirs);
    const mineChanged = !same(part.base, part.mine);
    if (theirsChanged && mineChanged && !same(part.theirs, part.mine)) result.conflicts.push(part);
    else if (theirsChanged || mineChanged)
      result.merged.push({ ...part, side: theirsChanged ? (mineChanged ? "both" : "theirs") : "mine" });
  }
  return result;
}

export const isTags = ({ field }: Part): boolean => FIELDS[field].kind === "tags";

/** The draft that the decisions give; `edits` holds the texts of the parts that were edited. */
export function resolve(
  theirs: Config,
  found: Merge,
  sides: ReadonlyMap<string, Side>,
  edits: ReadonlyMap<string, string>,
): Draft {
  let draft = toDraft(theirs);
  const put = ({ field, parameter }: Part, value: unknown): void => {
    if (parameter === null) {
      draft = withValue(draft, field, value);
      return;
    }
    const rows = (draft[field] as Parameter[]).filter(({ name }) => name !== parameter);
    if (!isEmpty(value)) rows.push({ name: parameter, value: String(value) });
    draft = { ...draft, [field]: rows };
  };
  for (const part of found.merged) if (part.side === "mine") put(part, part.mine);
  for (const part of found.conflicts) {
    const side = sides.get(part.key);
    if (side === "mine") put(part, part.mine);
    if (side === "edit") {
      const edited = edits.get(part.key) ?? "";
      put(part, isTags(part) ? edited.split("\n").filter((tag) => tag !== "") : edited);
    }
  }
  return draft;
}

/** A part's value as text, for editing and comparing; a tag is a line. */
export const asText = (part: Part, value: unknown): string =>
  isEmpty(value) ? "" : isTags(part) ? (value as string[]).join("\n") : textOf(part.field, value);
