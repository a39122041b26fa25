/** Three-way merge of texts: changes of disjoint lines are all taken, those of the same lines are conflicts. */
import { blocks, lines } from "./diff";

/** Lines of a text: the same in all versions, changed by one side or by both in the same way, or changed by both. */
export interface Segment {
  kind: "same" | "theirs" | "mine" | "both" | "conflict";
  /** The number of its first line in the base. */
  line: number;
  base: string[];
  theirs: string[];
  mine: string[];
}

/** Lines of the base that a side has replaced. */
interface Hunk {
  from: number;
  to: number;
  lines: string[];
}

function hunks(base: string[], other: string[]): Hunk[] {
  let at = 0;
  return blocks(base, other).flatMap(({ removed, added, same }) => {
    const from = at;
    const to = from + removed.length;
    at = to + same.length;
    return removed.length || added.length ? [{ from, to, lines: added }] : [];
  });
}

/** The lines of a side from one place of the base to another. */
function sideOf(base: string[], changes: Hunk[], from: number, to: number): string[] {
  const result: string[] = [];
  let at = from;
  for (const hunk of changes) {
    result.push(...base.slice(at, hunk.from), ...hunk.lines);
    at = hunk.to;
  }
  return [...result, ...base.slice(at, to)];
}

export function mergeLines(base: string, theirs: string, mine: string): Segment[] {
  const all = lines(base);
  const waiting = { theirs: hunks(all, lines(theirs)), mine: hunks(all, lines(mine)) };
  const result: Segment[] = [];
  let at = 0;
  const same = (to: number): void => {
    const equal = all.slice(at, to);
    if (equal.length) result.push({ kind: "same", line: at + 1, base: equal, theirs: equal, mine: equal });
  };
  for (;;) {
    const from = Math.min(...[waiting.theirs[0], waiting.mine[0]].map((hunk) => hunk?.from ?? Infinity));
    if (from === Infinity) break;
    same(from);
    let to = from;
    const taken: { theirs: Hunk[]; mine: Hunk[] } = { theirs: [], mine: [] };
    // What begins where the others are, or at the same place, is of one piece with them.
    for (let grown = true; grown;) {
      grown = false;
      for (const side of ["theirs", "mine"] as const) {
        const next = waiting[side][0];
        if (!next || !(next.from < to || next.from === from)) continue;
        taken[side].push(waiting[side].shift()!);
        to = Math.max(to, next.to);
        grown = true;
      }
    }
    const [ofTheirs, ofMine] = [sideOf(all, taken.theirs, from, to), sideOf(all, taken.mine, from, to)];
    const kind = !taken.mine.length
      ? "theirs"
      : !taken.theirs.length
        ? "mine"
        : ofTheirs.join("\n") === ofMine.join("\n") && ofTheirs.length === ofMine.length
          ? "both"
          : "conflict";
    result.push({ kind, line: from + 1, base: all.slice(from, to), theirs: ofTheirs, mine: ofMine });
    at = to;
  }
  same(all.length);
  return result;
}
