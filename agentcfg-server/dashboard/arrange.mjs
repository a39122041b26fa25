// The order of the statements in a script. That of functions and constants does not matter to what they do, but to how well the
// script compresses: order.txt has the best one that `node build.mjs --arrange` found, script by script, with an empty line between
// them: some names are in both. What it does not name stays where it is.
import { parse } from "acorn";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const ORDER = new URL("order.txt", import.meta.url);
/** How long it looks for a better order of each script. */
const SECONDS = 300;
/** So many bytes may a compressor that is fast and less good find more. */
const SLACK = 2;
const LONGEST = 4;

/** What a script exports is at its end. */
const EXPORTS = /export\{[^}]*\};?\s*$/;

/** Whether the evaluation of a value uses nothing and does nothing. */
const isConstant = (of) =>
  !of ||
  /^(ArrowFunctionExpression|FunctionExpression|Literal)$/.test(of.type) ||
  (of.type === "ArrayExpression" && of.elements.every(isConstant)) ||
  (of.type === "ObjectExpression" && of.properties.every(({ computed, value }) => !computed && value && isConstant(value)));

/**
 * The statements of a script with the names that they declare. A function is there from the begin on and may be anywhere; a
 * constant must stay before the statements that it was before; the others are `fixed`: they stay in their order.
 */
function statements(script) {
  const all = [];
  let fixed = 0;
  const add = (kind, name, text, isVar = false) =>
    all.push({ kind, name, text, isVar, before: kind === "fixed" ? (fixed += 1) : fixed + 1 });
  for (const node of parse(script, { ecmaVersion: "latest", sourceType: "module" }).body) {
    const text = (of) => script.slice(of.start, of.end);
    if (node.type === "ExportNamedDeclaration") continue;
    if (node.type === "FunctionDeclaration") add("function", node.id.name, text(node));
    else if (node.kind !== "var") add("fixed", "", `${text(node)}${/[;}]$/.test(text(node)) ? "" : ";"}`);
    else
      for (const one of node.declarations) {
        const named = one.id.type === "Identifier";
        add(named && isConstant(one.init) ? "constant" : "fixed", named ? one.id.name : "", text(one), true);
      }
  }
  return all;
}

/** The script of some statements; declarations that follow each other are one. */
const written = (all) =>
  all
    .map(({ text, isVar }, i) => (!isVar ? text : `${all[i - 1]?.isVar ? "," : "var "}${text}${all[i + 1]?.isVar ? "" : ";"}`))
    .join("");

/** Whether each constant is before the fixed statements that it must be before, and these are in their order. */
function isRight(all) {
  let passed = 0;
  return all.every(({ kind, before }) => (kind === "fixed" ? before === (passed += 1) : kind === "function" || before > passed));
}

/** The short names of a minified script with those that they had before. */
const longNames = (names) => new Map(Object.entries(names).map(([name, short]) => [short, name.slice(1)]));

/**
 * A minified script in the order of order.txt; what that does not name follows what it followed before. `names` has the short
 * name of each long one; `part` says which of the scripts it is.
 */
export function arrange(script, names, part) {
  const order = readFileSync(ORDER, "utf8").split("\n\n")[part].split("\n");
  const places = new Map(order.map((name, i) => [name, i]));
  const long = longNames(names);
  const all = statements(script);
  let last = -1;
  let passed = -1;
  for (const one of all) {
    one.place = last = places.get(long.get(one.name)) ?? last;
    if (one.kind === "fixed") one.place = last = passed = Math.max(passed, one.place);
  }
  // A constant whose place is behind a statement that it must be before comes right before that one.
  let limit = Infinity;
  for (const one of all.toReversed()) {
    if (one.kind === "fixed") limit = one.place;
    else if (one.kind === "constant" && one.place >= limit) one.place = limit - 0.5;
  }
  const arranged = all.toSorted((a, b) => a.place - b.place);
  if (!isRight(arranged)) throw new Error("order.txt: it puts a constant behind what uses it");
  return written(arranged) + (EXPORTS.exec(script)?.[0] ?? "");
}

const PIECE = 6;
const ALIKE = 12;

/** For each statement those that have the most pieces of text in common with it. */
function alike(all) {
  const pieces = all.map(
    ({ text }) => new Set(Array.from({ length: Math.max(0, text.length - PIECE) }, (_, i) => text.slice(i, i + PIECE))),
  );
  const having = new Map();
  pieces.forEach((set, i) => set.forEach((piece) => having.set(piece, [...(having.get(piece) ?? []), i])));
  return new Map(
    all.map((one, i) => {
      const shared = new Map();
      for (const piece of pieces[i]) {
        const others = having.get(piece);
        // What is everywhere tells nothing.
        if (others.length < 60) for (const other of others) shared.set(other, (shared.get(other) ?? 0) + 1);
      }
      shared.delete(i);
      const score = ([other, count]) => count / Math.sqrt(pieces[other].size);
      return [
        one,
        [...shared]
          .sort((a, b) => score(b) - score(a))
          .slice(0, ALIKE)
          .map(([other]) => all[other]),
      ];
    }),
  );
}

/** Numbers that look random and are the same each time. */
function* numbers() {
  for (let seed = 7; ;) yield (seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff) >>> 8;
}

/**
 * Looks for an order in which minified scripts compress better, and keeps it. `pack` compresses as the build does, which takes
 * long: it is asked about those orders alone that are not larger with a fast compressor.
 */
export async function search(scripts, names, pack) {
  const long = longNames(names);
  const order = [];
  for (const script of scripts) {
    const random = numbers();
    const below = (most) => random.next().value % most;
    const roughly = (all) => gzipSync(written(all), { level: 9 }).length;
    const exactly = async (all) => (await pack(Buffer.from(written(all)))).length;
    let all = statements(script);
    let rough = roughly(all);
    let best = await exactly(all);
    console.log(`${best} before`);
    const near = alike(all);
    const end = Date.now() + SECONDS * 1000;
    for (let share = 1; share > 0; share = (end - Date.now()) / (SECONDS * 1000)) {
      const next = [...all];
      // A few statements, to some place or to one that is like them.
      const moved = next.splice(below(next.length), 1 + below(1 + Math.ceil(LONGEST * share ** 2)));
      const friends = near.get(moved[below(moved.length)]);
      const friend = friends.length && below(3) ? next.indexOf(friends[below(friends.length)]) + below(2) : -1;
      next.splice(friend >= 0 ? friend : below(next.length + 1), 0, ...moved);
      if (!isRight(next)) continue;
      const bytes = roughly(next);
      if (bytes > rough + SLACK) continue;
      const packed = await exactly(next);
      if (packed <= best) [rough, best, all] = [bytes, packed, next];
    }
    console.log(`${best} after`);
    order.push(all.flatMap(({ name }) => long.get(name) ?? []).join("\n"));
  }
  writeFileSync(ORDER, `${order.join("\n\n")}\n`);
}
