/** The definition of an agent: what the server says of it, and its parts for reading. */
import { faultyLine, object, parse, pretty, Raw } from "./json-text";
import type { Config } from "./agent-fields";
import { signal } from "./signals";
import { capital, list } from "./text";

type Members = Record<string, unknown>;

const members = (value: unknown): Members | null =>
  value && typeof value === "object" && !Array.isArray(value) && !(value instanceof Raw) ? (value as Members) : null;

/** The parts that the server knows, in the order in which they are shown. */
const PARTS = "model_settings fallback_models variables tools mcp_servers skills output_schema metadata".split(" ");

/** The last definition that the server has refused, and why. */
export const refused = signal<{ text: string; why: string } | null>(null);

/** What is wrong with a text that is a definition, with its place: the line of JSON, or the path of a value. */
export function definitionFault(text: string): string | null {
  if (!text.trim()) return null;
  try {
    parse(text, () => 0);
  } catch {
    return `It is no JSON: look at line ${faultyLine(text)}.`;
  }
  if (!object(text)) return "It must be a JSON object.";
  return refused.value?.text === text ? refused.value.why : null;
}

/** Something of a definition: the part it is in, its name, and what is to be known of it. */
export interface Item {
  part: string;
  name: string;
  note: string;
}

const written = (value: unknown): string =>
  typeof value === "string" ? value : value instanceof Raw ? value.text : pretty(value);

const noteOf = (value: unknown): string => {
  const of = members(value);
  if (!of) return written(value);
  const known = ["description", "url", "command"].map((name) => of[name]).find((note) => typeof note === "string");
  return [of["required"] === true && "required", of["default"] !== undefined && `default: ${written(of["default"])}`, known]
    .filter(Boolean)
    .join(" · ");
};

/** What a definition has, in the order of its parts; unknown ones come last. */
export function definitionItems(definition: Members): Item[] {
  const names = new Set([...PARTS, ...Object.keys(definition)]);
  return [...names].flatMap((part): Item[] => {
    const value = definition[part];
    const isKnown = PARTS.includes(part);
    const label = isKnown ? capital(part.replace("_", " ")).replace("Mcp", "MCP") : part;
    if (value === undefined) return [];
    if (part === "output_schema" || !isKnown) return [{ part: label, name: "", note: written(value) }];
    if (!Array.isArray(value))
      return Object.entries(members(value) ?? {}).map(([name, member]) => ({ part: label, name, note: noteOf(member) }));
    return value.map((item: unknown) => {
      const of = members(item);
      const inner = of && (members(of["function"]) ?? of);
      const name = inner ? written(inner["name"] ?? inner["type"] ?? "") : written(item);
      return { part: label, name, note: inner ? noteOf(inner) : "" };
    });
  });
}

export interface Variable {
  required?: boolean;
  default?: string;
}

/** What of a definition counts for a call. */
export const settingsOf = ({ definition }: Config) =>
  (definition ?? {}) as { variables?: Record<string, Variable>; model_settings?: object };

/** Whether calls without a value are refused. */
export const mustBeGiven = ({ required, default: value }: Variable): boolean => !!required && value === undefined;

/** What a persona and the declared variables do not agree on. */
export function variableNotes(persona: string, definition: Members | null): string[] {
  const declared = Object.keys(members(definition?.["variables"]) ?? {});
  const used = [...new Set([...persona.matchAll(/\{\{ *([A-Za-z_]\w{0,63}) *\}\}/g)].map(([, name]) => name!))];
  const said = (names: string[], what: string): string[] =>
    names.length ? [`${list(names.map((name) => `{{${name}}}`))} ${names.length === 1 ? "is" : "are"} ${what}.`] : [];
  return [
    ...said(
      used.filter((name) => !declared.includes(name)),
      "in the persona and not declared: sent as written",
    ),
    ...said(
      declared.filter((name) => !used.includes(name)),
      "declared and not in the persona",
    ),
  ];
}
