/** Differences of texts: lines, and words within lines that were replaced. */
export interface Piece {
  text: string;
  changed: boolean;
}

export interface Line {
  number: number;
  pieces: Piece[];
}

/** A row of the comparison: the same line on both sides, or a removed and an added one. */
export interface Row {
  kind: "same" | "changed";
  left: Line | null;
  right: Line | null;
}

export interface Fold {
  kind: "fold";
  rows: Row[];
}

const CONTEXT = 3;
/** Beyond this length words are not compared: it would take too long. */
const WORDS = 2_000;
/** Words, runs of spaces, and single signs; also single letters of scripts that write no spaces between words. */
const WORD = /[\p{Ideo}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}]\p{M}*|[\p{L}\p{M}\p{N}_]+|[^\S\n]+|[^]/gu;

export const lines = (text: string): string[] => (text === "" ? [] : text.split("\n"));
const whole = (number: number, text: string): Line => ({ number, pieces: [{ text, changed: false }] });

/** Items that are in one list alone, before items that both have. */
export interface Block {
  removed: string[];
  added: string[];
  same: string[];
}

/** Equal items of two lists: where they begin in each, and the match before them. */
interface Match {
  old: number;
  new: number;
  length: number;
  earlier: Match | null;
}

/**
 * The matches of a shortest way from one list to the other, last one first; after E. Myers, "An O(ND) Difference Algorithm".
 * A diagonal holds the pairs of places whose difference is the same: a removal leads to the next diagonal, an addition to the one before.
 */
function lastMatch(before: string[], after: string[]): Match | null {
  // The furthest place in `before` on each diagonal, and the matches on the way there.
  const reached = new Map([[1, { at: 0, match: null as Match | null }]]);
  for (let changes = 0; ; changes += 1) {
    // Diagonals beyond the ends of the lists hold nothing.
    const least = 2 * Math.max(0, changes - after.length) - changes;
    const most = changes - 2 * Math.max(0, changes - before.length);
    for (let diagonal = least; diagonal <= most; diagonal += 2) {
      const adding = reached.get(diagonal + 1);
      const removing = reached.get(diagonal - 1);
      const from = !removing || (adding && removing.at < adding.at) ? adding! : removing;
      const start = from === removing ? from.at + 1 : from.at;
      let at = start;
      while (at < before.length && before[at] === after[at - diagonal]) at += 1;
      const match = at > start ? { old: start, new: start - diagonal, length: at - start, earlier: from.match } : from.match;
      if (at >= before.length && at - diagonal >= after.length) return match;
      reached.set(diagonal, { at, match });
    }
  }
}

export function blocks(before: string[], after: string[]): Block[] {
  const result: Block[] = [];
  let match: Match | null = { old: before.length, new: after.length, length: 0, earlier: lastMatch(before, after) };
  while (match) {
    const { old, new: place, length, earlier }: Match = match;
    const [oldEnd, newEnd] = earlier ? [earlier.old + earlier.length, earlier.new + earlier.length] : [0, 0];
    result.unshift({
      removed: before.slice(oldEnd, old),
      added: after.slice(newEnd, place),
      same: before.slice(old, old + length),
    });
    match = earlier;
  }
  return result;
}

/** So many pairs of lines are compared to find those that belong together. */
const PAIRS = 900;

/**
 * Which of some removed lines became which added ones: the pairs that have the most in common, in their order. Where there are
 * too many, each is compared with that of its place.
 */
function pairs(removed: string[], added: string[]): [from: number, to: number][] {
  if (removed.length * added.length > PAIRS) return removed.flatMap((_, i) => (i < added.length ? [[i, i]] : []));
  const alike = removed.map((from) => added.map((to) => likeness(from, to)));
  // The most that the lines from these places on have in common.
  const most = Array.from({ length: removed.length + 1 }, () => Array<number>(added.length + 1).fill(0));
  for (let i = removed.length - 1; i >= 0; i -= 1)
    for (let j = added.length - 1; j >= 0; j -= 1)
      most[i]![j] = Math.max(most[i + 1]![j]!, most[i]![j + 1]!, alike[i]![j]! && alike[i]![j]! + most[i + 1]![j + 1]!);
  const found: [number, number][] = [];
  for (let i = 0, j = 0; i < removed.length && j < added.length;)
    if (alike[i]![j]! && most[i]![j] === alike[i]![j]! + most[i + 1]![j + 1]!) found.push([i++, j++]);
    else if (most[i]![j] === most[i + 1]![j]) i += 1;
    else j += 1;
  return found;
}

/** How much two lines have in common, from 0 to 1; 0 where their words are not worth a comparison. */
function likeness(from: string, to: string): number {
  const parts = words(from, to);
  const same = parts?.reduce((sum, { added, removed, text }) => sum + (added || removed ? 0 : text.length), 0) ?? 0;
  return same / Math.max(1, from.length, to.length);
}

export function rows(before: string, after: string): Row[] {
  const result: Row[] = [];
  let left = 0;
  let right = 0;
  const put = (from: string | undefined, to: string | undefined): void => {
    const paired = from !== undefined && to !== undefined ? words(from, to) : null;
    const line = (number: number, text: string, mine: "added" | "removed", other: "added" | "removed"): Line =>
      paired
        ? { number, pieces: paired.filter((part) => !part[other]).map((part) => ({ text: part.text, changed: part[mine] })) }
        : whole(number, text);
    result.push({
      kind: "changed",
      left: from === undefined ? null : line((left += 1), from, "removed", "added"),
      right: to === undefined ? null : line((right += 1), to, "added", "removed"),
    });
  };
  for (const { removed, added, same } of blocks(lines(before), lines(after))) {
    let [i, j] = [0, 0];
    for (const [from, to] of [...pairs(removed, added), [removed.length, added.length] as const]) {
      // Lines between two pairs have no counterpart: they stand beside each other as they come.
      while (i < from || j < to) put(i < from ? removed[i++] : undefined, j < to ? added[j++] : undefined);
      if (from < removed.length) put(removed[i++], added[j++]);
    }
    for (const text of same) result.push({ kind: "same", left: whole((left += 1), text), right: whole((right += 1), text) });
  }
  return result;
}

/** A part of two texts: it is in both, or in one of them alone. */
export interface Part {
  text: string;
  added: boolean;
  removed: boolean;
}

/** The parts of both texts, or null when they have too little in common. */
export function words(from: string, to: string): Part[] | null {
  if (from.length > WORDS || to.length > WORDS) return null;
  let common = 0;
  const parts = blocks(from.match(WORD) ?? [], to.match(WORD) ?? []).flatMap(({ removed, added, same }) => {
    const part = (of: string[], kind?: "added" | "removed"): Part[] =>
      of.length ? [{ text: of.join(""), added: kind === "added", removed: kind === "removed" }] : [];
    common += same.join("").trim().length;
    return [...part(removed, "removed"), ...part(added, "added"), ...part(same)];
  });
  return common * 4 < Math.max(from.length, to.length) ? null : parts;
}

/** Puts long runs of equal lines together. */
export function folded(all: Row[]): (Row | Fold)[] {
  const result: (Row | Fold)[] = [];
  for (let i = 0; i < all.length;) {
    let end = i;
    while (all[end]?.kind === "same") end += 1;
    if (end === i) {
      result.push(all[i]!);
      i += 1;
      continue;
    }
    const head = i === 0 ? 0 : CONTEXT;
    const tail = end === all.length ? 0 : CONTEXT;
    if (end - i > head + tail + 1) {
      result.push(
        ...all.slice(i, i + head),
        { kind: "fold", rows: all.slice(i + head, end - tail) },
        ...all.slice(end - tail, end),
      );
    } else result.push(...all.slice(i, end));
    i = end;
  }
  return result;
}

export const tally = (all: Row[]): { removed: number; added: number } => ({
  removed: all.filter(({ kind, left }) => kind === "changed" && left).length,
  added: all.filter(({ kind, right }) => kind === "changed" && right).length,
});

/** The lines of some texts that are not the same in all of them, with a line around, and how many were left out before and after. */
export function middle(texts: string[]): { texts: string[]; above: number; below: number } {
  const all = texts.map(lines);
  const least = Math.min(...all.map((one) => one.length));
  const alike = (of: (one: string[]) => string | undefined): boolean => all.every((one) => of(one) === of(all[0]!));
  let above = 0;
  while (above < least && alike((one) => one[above])) above += 1;
  let below = 0;
  while (below < least - above && alike((one) => one[one.length - 1 - below])) below += 1;
  above = Math.max(0, above - 1);
  below = Math.max(0, below - 1);
  return { texts: all.map((one) => one.slice(above, one.length - below).join("\n")), above, below };
}
