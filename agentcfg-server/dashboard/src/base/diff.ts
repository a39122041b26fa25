/** Differences of texts: lines, and words within lines that were replaced. */
import { diffArrays } from "diff";

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

const lines = (text: string): string[] => (text === "" ? [] : text.split("\n"));
const whole = (number: number, text: string): Line => ({ number, pieces: [{ text, changed: false }] });

export function rows(before: string, after: string): Row[] {
  const result: Row[] = [];
  let left = 0;
  let right = 0;
  const parts = diffArrays(lines(before), lines(after));
  for (let i = 0; i < parts.length; i += 1) {
    const part = parts[i]!;
    if (!part.added && !part.removed) {
      for (const text of part.value)
        result.push({ kind: "same", left: whole((left += 1), text), right: whole((right += 1), text) });
      continue;
    }
    const next = parts[i + 1];
    const removed = part.removed ? part.value : next?.removed ? next.value : [];
    const added = part.added ? part.value : next?.added ? next.value : [];
    if (next && (next.added || next.removed)) i += 1;
    for (let k = 0; k < Math.max(removed.length, added.length); k += 1) {
      const from = removed[k];
      const to = added[k];
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
    }
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
  const parts = diffArrays(from.match(WORD) ?? [], to.match(WORD) ?? []).map(({ value, added, removed }) => ({
    text: value.join(""),
    added,
    removed,
  }));
  const common = parts.reduce((sum, { text, added, removed }) => sum + (added || removed ? 0 : text.trim().length), 0);
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
