/** Three-way merge of an agent's configuration, after another save came in between. */
import type { Num } from "./agent-fields";
import { lines } from "./diff";
import { object } from "./json-text";
import { mergeLines, type Segment } from "./merge-lines";
import { number } from "./text";
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

/** "both" is for lines of a text alone: theirs, then mine. */
export type Side = "theirs" | "mine" | "both" | "edit";

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
  /** Its place among the segments of a text, where it is a few lines of it. */
  segment?: number;
}

export interface Merged extends Part {
  side: "theirs" | "mine" | "both" | "lines";
}

export interface Merge {
  conflicts: Part[];
  merged: Merged[];
  /** The segments of the texts that were merged line by line. */
  texts: ReadonlyMap<FieldName, Segment[]>;
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
  const texts = new Map<FieldName, Segment[]>();
  const result: Merge = { conflicts: [], merged: [], texts };
  for (const part of parts) {
    const theirsChanged = !same(part.base, part.theirs);
    const mineChanged = !same(part.base, part.mine);
    if (theirsChanged && mineChanged && !same(part.theirs, part.mine)) {
      const segments = byLines(part);
      if (!segments) {
        result.conflicts.push(part);
        continue;
      }
      texts.set(part.field, segments);
      segments.forEach(({ kind, line, base, theirs, mine }, segment) => {
        if (kind !== "conflict") return;
        const [of, from, to] = [base, theirs, mine].map((some) => some.join("\n"));
        const label = `${part.label}, line ${number(line)}`;
        result.conflicts.push({ ...part, key: `${part.key} ${line}`, label, segment, base: of, theirs: from, mine: to });
      });
      if (segments.some(({ kind }) => kind === "theirs" || kind === "mine")) result.merged.push({ ...part, side: "lines" });
    } else if (theirsChanged || mineChanged)
      result.merged.push({ ...part, side: theirsChanged ? (mineChanged ? "both" : "theirs") : "mine" });
  }
  return result;
}

/** The segments of a text of several lines; nothing where it is to be merged as a whole. */
function byLines(part: Part): Segment[] | null {
  const { rows, kind } = FIELDS[part.field];
  if (!rows) return null;
  const segments = mergeLines(asText(part, part.base), asText(part, part.theirs), asText(part, part.mine));
  // JSON is merged where its lines are JSON afterwards: a choice for a part of it could break it.
  const isWhole = kind === "json" && (segments.some((one) => one.kind === "conflict") || !object(textFrom(segments, () => [])));
  return isWhole ? null : segments;
}

/** The text of segments, with the lines that were decided for each conflict. */
const textFrom = (segments: Segment[], decided: (segment: number) => string[]): string =>
  segments
    .flatMap(({ kind, theirs, mine }, i) => (kind === "conflict" ? decided(i) : kind === "mine" ? mine : theirs))
    .join("\n");

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
  for (const [field, segments] of found.texts) {
    const decided = (segment: number): string[] => {
      const part = found.conflicts.find((one) => one.field === field && one.segment === segment)!;
      const side = sides.get(part.key);
      if (side === "edit") return lines(edits.get(part.key) ?? "");
      const { theirs, mine } = segments[segment]!;
      return side === "mine" ? mine : side === "both" ? [...theirs, ...mine] : theirs;
    };
    draft = withValue(draft, field, textFrom(segments, decided));
  }
  for (const part of found.conflicts) {
    if (part.segment !== undefined) continue;
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
