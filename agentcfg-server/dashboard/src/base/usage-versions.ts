/** The usage of an agent by its versions: which was in use when, and what one changed against another. */
import type { Release } from "./releases";
import { sum, type Span, type UsageRow } from "./usage";

/** Of fewer calls a mean says little. */
export const FEW = 20;

export interface Band {
  version: number | null;
  from: number;
  to: number;
}

/** Which version a label pointed at, over a range: newest moves first. Without a label the newest version counts. */
export function bandsOf(
  moves: readonly Release[],
  created: readonly { version: number; created_at: string }[],
  { from, to }: Pick<Span, "from" | "to">,
  agent: string,
): Band[] {
  const changes = moves.length
    ? moves.flatMap(({ created_at, moves }) =>
        moves
          .filter(({ agent_id }) => agent_id === agent)
          .map((move) => ({ at: Date.parse(created_at), version: move.to, before: move.from })),
      )
    : created.map(({ version, created_at }) => ({
        at: Date.parse(created_at),
        version,
        before: version > 1 ? version - 1 : null,
      }));
  changes.sort((a, b) => a.at - b.at);
  const bands: Band[] = [];
  let begin = from;
  let version = changes.findLast(({ at }) => at <= from)?.version ?? changes.find(({ at }) => at > from)?.before ?? null;
  for (const change of changes) {
    if (change.at <= from || change.at >= to) continue;
    if (change.at > begin) bands.push({ version, from: begin, to: change.at });
    [begin, version] = [change.at, change.version];
  }
  bands.push({ version, from: begin, to });
  return bands;
}

/** What a call cost, of those that have a price; null where there is none. */
export function callCost(row: UsageRow | undefined): number | null {
  const priced = row ? row.calls - row.unpriced_calls : 0;
  return priced > 0 ? Number(row!.cost_usd) / priced : null;
}

export interface Mean {
  label: string;
  /** Null where it is not known. */
  of: (row: UsageRow) => number | null;
  kind: "price" | "number" | "time" | "share";
}

/** The means that two versions are compared by: less is better. */
export const MEANS: Mean[] = [
  { label: "Cost of a call", of: callCost, kind: "price" },
  { label: "Output tokens", of: (row) => row.output_tokens / row.calls, kind: "number" },
  { label: "Input tokens", of: (row) => row.input_tokens / row.calls, kind: "number" },
  { label: "First byte", of: (row) => row.first_byte_ms / row.calls, kind: "time" },
  { label: "Whole answer", of: (row) => row.duration_ms / row.calls, kind: "time" },
  { label: "Errors", of: (row) => row.errors / row.calls, kind: "share" },
];

/** The versions in the order of use, newest first, each with one row. */
export function byVersion(rows: readonly UsageRow[]): { version: number; row: UsageRow }[] {
  const all = new Map<number, UsageRow[]>();
  for (const row of rows) if (row.version != null) all.set(row.version, [...(all.get(row.version) ?? []), row]);
  return [...all]
    .map(([version, of]) => ({ version, row: of.length === 1 ? of[0]! : sum(of) }))
    .sort((a, b) => b.version - a.version);
}

/** The pair to compare: the last two that were called often, else the last two. */
export function usualPair(rows: readonly { version: number; row: UsageRow }[]): [number, number] | null {
  const often = rows.filter(({ row }) => row.calls >= FEW);
  const [after, before] = often.length > 1 ? often : rows;
  return before ? [before.version, after!.version] : null;
}
