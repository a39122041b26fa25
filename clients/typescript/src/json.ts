// JSON texts: those that are sent, and parts of those that were received.
import { InputError } from "./errors.js";

/** The text of a body. A number that JSON cannot hold is refused: it would be sent as null. @internal */
export function jsonText(body: unknown): string {
  const paths = new Map<unknown, string>();
  function checked(this: unknown, name: string, value: unknown): unknown {
    const above = paths.get(this) ?? "";
    const path = Array.isArray(this) ? `${above}[${name}]` : above === "" ? name : `${above}.${name}`;
    if (typeof value === "number" && !Number.isFinite(value)) throw new InputError(`${path} is ${value}, which JSON cannot hold`);
    if (typeof value === "object") paths.set(value, path);
    return value;
  }
  try {
    return JSON.stringify(body, checked);
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError("the body cannot be written as JSON", { cause: error });
  }
}

/** The text of a member of an object, as it was written. Of members with the same name the last one counts. @internal */
export function memberText(text: string, name: string): string | undefined {
  return partsOf(text).findLast(([key]) => key === name)?.[1];
}

/**
 * The texts of the members of an object with their names, or of the items of an array, as they were written: JSON.parse rounds
 * integers beyond 2^53 and moves keys that are digits to the front. The text must be valid JSON.
 *
 * @internal
 */
export function partsOf(text: string): [name: string, text: string][] {
  const isArray = text.trimStart().startsWith("[");
  const parts: [string, string][] = [];
  let depth = 0;
  let name = "";
  let start = isArray ? text.indexOf("[") + 1 : 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === '"') {
      const end = endOfString(text, at);
      if (depth === 1 && start === 0) name = JSON.parse(text.slice(at, end)) as string;
      at = end - 1;
    } else if (depth === 1 && character === ":") {
      start = at + 1;
    } else if (depth === 1 && (character === "," || character === "}" || character === "]")) {
      const part = start === 0 ? "" : text.slice(start, at).trim();
      if (part !== "") parts.push([name, part]);
      start = isArray ? at + 1 : 0;
    }
    if (character === "{" || character === "[") depth += 1;
    if (character === "}" || character === "]") depth -= 1;
  }
  return parts;
}

/** The position after a string that begins here. */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes += 1;
    if (escapes % 2 === 0) return end + 1;
  }
}

/** Whether two values are the same JSON, whatever the order of their members is. @internal */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [left, right] = [one as Record<string, unknown>, other as Record<string, unknown>];
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].every((name) => isSameJson(left[name], right[name]));
}
