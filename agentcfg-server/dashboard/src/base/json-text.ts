/** JSON whose numbers stay as they are written, for values that people edit as text. */

/** JSON text that is sent as it is, such as a number that JavaScript cannot hold. */
export class Raw {
  constructor(readonly text: string) {}
}

/** Parses JSON; `exact` gives the value of an integer that a double cannot hold. */
export function parse(text: string, exact: (source: string) => unknown): unknown {
  const revive = (_: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source
      ? exact(context.source)
      : value;
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown);
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

/** A value in which integers that a double cannot hold are texts, but for those of members of this name. */
export function plain(value: unknown, but: string): unknown {
  if (value instanceof Raw) return value.text;
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
