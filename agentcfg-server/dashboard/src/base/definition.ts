/** The definition of an agent: its rules, which are those of the server, and its parts for reading. */
import { Exact, parse, pretty } from "./json-text";
import { count, list, plural } from "./text";

type Members = Record<string, unknown>;

const members = (value: unknown): Members | null =>
  value && typeof value === "object" && !Array.isArray(value) && !(value instanceof Exact) ? (value as Members) : null;

/** What is wrong with a value at a path, if anything. */
type Rule = (value: unknown, at: string) => string | null;

const first = (faults: Iterable<string | null>): string | null => {
  for (const fault of faults) if (fault) return fault;
  return null;
};

const text =
  (least: number, most: number): Rule =>
  (value, at) =>
    typeof value === "string" && count(value) >= least && count(value) <= most
      ? null
      : `${at} must be a text of ${least} to ${most} characters.`;

const object: Rule = (value, at) => (members(value) ? null : `${at} must be an object.`);

const array =
  (most: number, each: Rule): Rule =>
  (value, at) =>
    !Array.isArray(value)
      ? `${at} must be a list.`
      : value.length > most
        ? `${at} has ${value.length} entries. The limit is ${most}.`
        : first(value.map((item, i) => each(item, `${at}[${i}]`)));

const map =
  (most: number, each: (name: string, value: unknown, at: string) => string | null): Rule =>
  (value, at) =>
    object(value, at) ??
    (Object.keys(value as Members).length > most
      ? `${at} has more than ${plural(most, "entry", "entries")}.`
      : first(Object.entries(value as Members).map(([name, member]) => each(name, member, `${at}.${name}`))));

const textOrObject: Rule = (value, at) =>
  typeof value === "string" ? text(1, 200)(value, at) : members(value) ? null : `${at} must be a text or an object.`;

const server: Rule = (value, at) => {
  const of = members(value);
  if (!of) return object(value, at);
  return (
    text(1, 100)(of["name"], `${at}.name`) ??
    (of["url"] === undefined && of["command"] === undefined ? `${at} must have a url or a command.` : null) ??
    (of["url"] !== undefined && !/^https?:\/\/./i.test(String(of["url"]))
      ? `${at}.url must be an http or https address.`
      : null) ??
    (of["command"] !== undefined ? text(1, 1000)(of["command"], `${at}.command`) : null)
  );
};

const variable: Rule = (value, at) =>
  object(value, at) ??
  first(
    ["description", "default"].map((name) => {
      const given = (value as Members)[name];
      return given === undefined || typeof given === "string" ? null : `${at}.${name} must be a text.`;
    }),
  ) ??
  (["undefined", "boolean"].includes(typeof (value as Members)["required"]) ? null : `${at}.required must be true or false.`);

const FILLED = ["model", "messages", "input", "system", "instructions", "prompt", "stream"];

/** The parts that the server knows, with their names on screen. */
const PARTS = new Map<string, readonly [label: string, rule: Rule]>(
  Object.entries({
    model_settings: [
      "Model settings",
      map(Infinity, (name, _, at) => (FILLED.includes(name) ? `${at} is filled in by the server, and cannot be set.` : null)),
    ],
    fallback_models: ["Fallback models", array(5, text(1, 100))],
    variables: [
      "Variables",
      map(100, (name, value, at) =>
        /^[A-Za-z_]\w{0,63}$/.test(name) ? variable(value, at) : `${at}: a name has letters, digits and _, at most 64.`,
      ),
    ],
    tools: ["Tools", array(200, textOrObject)],
    mcp_servers: [
      "MCP servers",
      (value, at) =>
        array(50, server)(value, at) ??
        first(
          (value as Members[]).map(({ name }, i, all) =>
            all.findIndex((other) => other["name"] === name) < i ? `${at}[${i}].name is there twice: ${String(name)}.` : null,
          ),
        ),
    ],
    skills: ["Skills", array(100, textOrObject)],
    output_schema: ["Output schema", object],
    metadata: ["Metadata", map(100, (name, value, at) => text(1, 100)(name, `${at}: its name`) ?? text(0, 1000)(value, at))],
  }),
);

/** The first fault of a text that is a definition, with its place: the line of JSON, or the path of a value. */
export function definitionFault(source: string): string | null {
  if (!source.trim()) return null;
  let value: unknown;
  try {
    value = parse(source, (number) => new Exact(number));
  } catch (error) {
    // Browsers name the line or the place in the text, or nothing.
    const [, what, at] = /(line|position) (\d+)/.exec((error as Error).message) ?? [];
    return `It is no JSON: look at line ${what === "line" ? at : source.slice(0, Number(at ?? Infinity)).split("\n").length}.`;
  }
  const of = members(value);
  if (!of) return "It must be a JSON object.";
  return first(Object.entries(of).map(([name, value]) => PARTS.get(name)?.[1](value, `definition.${name}`) ?? null));
}

/** Something of a definition: the part it is in, its name, and what is to be known of it. */
export interface Item {
  part: string;
  name: string;
  note: string;
}

const written = (value: unknown): string =>
  typeof value === "string" ? value : value instanceof Exact ? value.source : pretty(value);

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
  const names = new Set([...PARTS.keys(), ...Object.keys(definition)]);
  return [...names].flatMap((part): Item[] => {
    const value = definition[part];
    const label = PARTS.get(part)?.[0] ?? part;
    if (value === undefined) return [];
    if (part === "output_schema" || !PARTS.has(part)) return [{ part: label, name: "", note: written(value) }];
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
