/** JSON whose numbers stay as they are written, for values that people edit as text. */

/** JSON text that is sent as it is, such as a number that JavaScript would write in another way. */
export class Raw {
  constructor(readonly text: string) {}
}

/** Parses JSON; `exact` gives the value of a number that JavaScript would write in another way, such as 1.0. */
export function parse(text: string, exact: (source: string) => unknown): unknown {
  const revive = (_: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === "number" && context?.source && context.source !== String(value) ? exact(context.source) : value;
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown);
}

const TOKEN =
  /"(?:[^"\\\0-\x1f]|\\["\\/bfnrt]|\\u[\da-f]{4})*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[-+]?\d+)?|true|false|null|[{}[\],:]/iy;
const VALUE = '{["v';

/** The line of the first token that cannot stand where it is. Browsers name it in some of their messages only. */
export function faultyLine(text: string): number {
  const open: string[] = [];
  // The first characters of what may come next; "v" is a number or a word.
  let next = VALUE;
  let at = 0;
  for (;;) {
    while (/[ \t\r\n]/.test(text[at] ?? "")) at += 1;
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text)?.[0] ?? "";
    const kind = /^[-\d]|^(true|false|null)$/.test(token) ? "v" : token[0];
    if (!kind || !next.includes(kind)) return text.slice(0, at).split("\n").length;
    at += token.length;
    const isName = kind === '"' && next[0] === '"';
    if (kind === "{" || kind === "[") open.push(kind);
    if (kind === "}" || kind === "]") open.pop();
    const inside = open.at(-1);
    if (kind === "{") next = '"}';
    else if (kind === "[") next = `${VALUE}]`;
    else if (isName) next = ":";
    else if (kind === ":") next = VALUE;
    else if (kind === ",") next = inside === "{" ? '"' : VALUE;
    else next = !inside ? "" : inside === "{" ? ",}" : ",]";
  }
}

/** JSON in lines. */
export const pretty = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) => (member instanceof Raw ? `\0${member.text}` : member), 2).replace(
    // No text of the API has a NUL character, which JSON writes as an escape.
    /"\\u0000(-?\d[-+.eE\d]*)"/g,
    "$1",
  );

/** The object that a text is; `null` where it is none. */
export function object(text: string): Record<string, unknown> | null {
  try {
    const value = parse(text, (source) => new Raw(source));
    // A text that begins with a brace is an object.
    return text.trimStart()[0] === "{" ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** A value with numbers as they are written in members of this name alone; elsewhere an integer that a double cannot hold is a text. */
export function plain(value: unknown, but: string): unknown {
  if (value instanceof Raw) return Number.isInteger(+value.text) && !Number.isSafeInteger(+value.text) ? value.text : +value.text;
  if (Array.isArray(value)) return value.map((item) => plain(item, but));
  if (!value || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, name === but ? member : plain(member, but)]));
}

export function encode(value: unknown): string {
  if (value instanceof Raw) return value.text;
  if (Array.isArray(value)) return `[${value.map(encode).join(",")}]`;
  if (value && typeof value === "object") {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${encode(field)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}
