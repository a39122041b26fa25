// The comparison of two texts shows both of them, and no line as changed that need not be.
import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { rows, words } = await source("base/diff.ts", "rows", "words");

/** A random generator with a seed, so that a failure can be repeated. */
function generator(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** The length of the longest common subsequence. */
function common(before, after) {
  let row = new Array(after.length + 1).fill(0);
  for (const old of before) {
    const next = [0];
    for (let k = 0; k < after.length; k += 1) next.push(old === after[k] ? row[k] + 1 : Math.max(next[k], row[k + 1]));
    row = next;
  }
  return row.at(-1);
}

const textOf = (line) => line.pieces.map(({ text }) => text).join("");

test("the rows are both texts, and the same lines a longest common subsequence", () => {
  const below = generator(7);
  for (let round = 0; round < 3000; round += 1) {
    const letters = 2 + below(4);
    const text = () => Array.from({ length: below(9) }, () => "abcdef"[below(letters)].repeat(below(3))).join("\n");
    const [before, after] = [text(), text()];
    const lines = (of) => (of === "" ? [] : of.split("\n"));
    const all = rows(before, after);
    for (const [side, of] of [
      ["left", before],
      ["right", after],
    ]) {
      const shown = all.flatMap((row) => (row[side] ? [row[side]] : []));
      assert.deepEqual(shown.map(textOf), lines(of), `${JSON.stringify(before)} to ${JSON.stringify(after)}`);
      assert.deepEqual(
        shown.map(({ number }) => number),
        shown.map((_, at) => at + 1),
      );
    }
    const same = all.filter(({ kind }) => kind === "same");
    for (const { left, right } of same) assert.equal(textOf(left), textOf(right));
    assert.equal(same.length, common(lines(before), lines(after)), `${JSON.stringify(before)} to ${JSON.stringify(after)}`);
  }
});

test("a line is compared with the one that it has become, and lines without a counterpart are whole ones", () => {
  const [gone, changed] = rows("alpha beta gamma delta\none two three four five", "one two three four six");
  assert.deepEqual([gone.left.pieces, gone.right], [[{ text: "alpha beta gamma delta", changed: false }], null]);
  assert.deepEqual(
    [changed.left, changed.right].map((line) => line.pieces.filter((piece) => piece.changed).map(({ text }) => text)),
    [["five"], ["six"]],
  );
  // Nothing is alike: no word of them is marked.
  const unlike = rows("Plain words, short sentences", "jumps over quickly; unrelated");
  assert.deepEqual(unlike.map(({ left, right }) => [left.pieces.length, left.pieces[0].changed, right.pieces.length, right.pieces[0].changed]), [[1, false, 1, false]]);
  // The second of two inserted lines is the one that the old line became.
  const inserted = rows("never invent quotes or numbers", "first of all, be kind\nnever invent quotes, numbers or names");
  assert.deepEqual(inserted.map(({ left, right }) => [left?.number, right?.number]), [[undefined, 1], [1, 2]]);
});

test("the words of two lines are both lines", () => {
  const below = generator(11);
  let compared = 0;
  for (let round = 0; round < 3000; round += 1) {
    const line = () => Array.from({ length: 1 + below(8) }, () => ["one", "two", "three,", "é", "漢"][below(5)]).join(" ");
    const [from, to] = [line(), line()];
    const parts = words(from, to);
    if (!parts) continue;
    compared += 1;
    const side = (other) =>
      parts
        .filter((part) => !part[other])
        .map(({ text }) => text)
        .join("");
    assert.deepEqual([side("added"), side("removed")], [from, to]);
  }
  assert.ok(compared > 1000, `${compared} pairs`);
});

test("two texts of the greatest length without a common line are compared", () => {
  const text = (sign) => Array.from({ length: 2500 }, () => sign).join("\n");
  const all = rows(text("a"), text("b"));
  assert.equal(all.length, 2500);
});
