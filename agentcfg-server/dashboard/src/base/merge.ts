/** Three-way merge of an agent's configuration, after another save came in between. */
import { FIELDS, NAMES, toConfig, toDraft, type Draft } from "./config";
import type { Config, Num } from "./types";

export type Side = "theirs" | "mine" | "edit";

/** A field, or one parameter. */
export interface Part {
  key: string;
  label: string;
  field: keyof Config;
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
  const parts: Part[] = [];
  for (const field of FIELDS) {
    if (field === "parameters") continue;
    // An empty text that is stored and one that was left empty are the same to the user.
    const clean = (value: unknown): unknown => (value === "" ? null : value);
    parts.push({
      key: field,
      label: NAMES[field],
      field,
      parameter: null,
      base: clean(base[field]),
      theirs: clean(theirs[field]),
      mine: clean(mine[field]),
    });
  }
  const names = new Set([base, theirs, mine].flatMap((config) => Object.keys(config.parameters)));
  for (const name of names) {
    const of = (config: Config): Num | null => config.parameters[name] ?? null;
    parts.push({
      key: `parameters.${name}`,
      label: name,
      field: "parameters",
      parameter: name,
      base: of(base),
      theirs: of(theirs),
      mine: of(mine),
    });
  }
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

/** The draft that the decisions give; `edits` holds the texts of the parts that were edited. */
export function resolve(
  theirs: Config,
  found: Merge,
  sides: ReadonlyMap<string, Side>,
  edits: ReadonlyMap<string, string>,
): Draft {
  const draft = toDraft(theirs);
  const put = (part: Part, value: unknown): void => {
    if (part.parameter !== null) {
      const rows = draft.parameters.filter(({ name }) => name !== part.parameter);
      if (value !== null && value !== "") rows.push({ name: part.parameter, value: String(value) });
      draft.parameters = rows;
    } else if (part.field === "capabilities") draft.capabilities = value as string[];
    else (draft as unknown as Record<string, unknown>)[part.field] = value ?? "";
  };
  for (const part of found.merged) if (part.side === "mine") put(part, part.mine);
  for (const part of found.conflicts) {
    const side = sides.get(part.key);
    if (side === "mine") put(part, part.mine);
    if (side === "edit") {
      const edited = edits.get(part.key) ?? "";
      put(part, part.field === "capabilities" ? edited.split("\n").filter((tag) => tag !== "") : edited);
    }
  }
  return draft;
}

/** A part's value as text, for editing and comparing. */
export const asText = (part: Part, value: unknown): string => {
  if (value === null || value === undefined) return "";
  return part.field === "capabilities" ? (value as string[]).join("\n") : String(value);
};
