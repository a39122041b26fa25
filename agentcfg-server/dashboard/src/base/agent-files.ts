/** Files of agents: Markdown as `agentcfg export` writes it, and JSON as `apply` takes it. */
import type { Entry } from "./apply";
import { faultyLine, parse, Raw } from "./json-text";
import { yaml, YamlFault } from "./yaml";

/** What the server says about an agent and is not to be set. */
const READ_ONLY = ["id", "workspace_id", "is_active", "created_at", "updated_at"];

const isObject = (value: unknown): value is Record<string, unknown> =>
  !!value && typeof value === "object" && !Array.isArray(value) && !(value instanceof Raw);

function ofMarkdown(name: string, text: string): Entry[] {
  const id = name.replace(/\.md$/i, "");
  const [, front, body] = /^---\n([\s\S]*?)^---(?:\n([\s\S]*))?$/m.exec(text.replace(/\r\n/g, "\n")) ?? [];
  if (front === undefined) throw new YamlFault(0, "A file begins with ---, the fields of the agent, and --- again.");
  let fields: unknown;
  try {
    fields = yaml(front);
  } catch (error) {
    // The first line of the file is the one before.
    throw error instanceof YamlFault ? new YamlFault(error.line + 1, error.message) : error;
  }
  if (!isObject(fields)) throw new YamlFault(1, "The fields are no map.");
  if ("agent_id" in fields && fields["agent_id"] !== id)
    throw new YamlFault(1, `agent_id must be ${id}, the name of the file, or be left out.`);
  return [{ ...fields, agent_id: id, ...(body ? { persona_prompt: body.replace(/\n$/, "") } : {}) }];
}

function ofJson(text: string): Entry[] {
  let value: unknown;
  try {
    value = parse(text, (source) => new Raw(source));
  } catch {
    throw new YamlFault(faultyLine(text) - 1, "It is no JSON.");
  }
  const all = isObject(value) ? (value["agents"] ?? [value]) : value;
  if (!Array.isArray(all) || !all.every((one) => isObject(one) && typeof one["agent_id"] === "string"))
    throw new Error("It must be an agent with an agent_id, or a list of them.");
  if (!all.length) throw new Error("It has no agent.");
  return all.map(
    (one) => Object.fromEntries(Object.entries(one as object).filter(([name]) => !READ_ONLY.includes(name))) as Entry,
  );
}

export interface Read {
  entries: Entry[];
  faults: string[];
  /** Files that are none of an agent. */
  ignored: string[];
  /** The file and the line of a field, or of what has it. */
  place: (id: string, field: string) => string;
}

/** The agents of files, in the order of their names. */
export function readFiles(files: readonly (readonly [name: string, text: string])[]): Read {
  const from = new Map<string, string>();
  const place = (id: string, field: string): string => {
    const name = from.get(id)!;
    const text = new Map(files).get(name)!;
    const begin = Math.max(0, text.indexOf(`"${id}"`));
    const at = field ? text.slice(begin).search(new RegExp(`\\b${field}\\b`)) : 0;
    return `${name}:${text.slice(0, begin + Math.max(0, at)).split("\n").length}`;
  };
  const read: Read = { entries: [], faults: [], ignored: [], place };
  for (const [name, text] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!/\.(md|json)$/i.test(name) || /^(readme\.md$|\.)/i.test(name)) {
      read.ignored.push(name);
      continue;
    }
    try {
      for (const entry of /\.md$/i.test(name) ? ofMarkdown(name, text) : ofJson(text)) {
        const other = from.get(entry.agent_id);
        if (other) read.faults.push(`${name}: ${entry.agent_id} is in ${other} too.`);
        from.set(entry.agent_id, name);
        read.entries.push(entry);
      }
    } catch (error) {
      read.faults.push(`${name}${error instanceof YamlFault ? `:${error.line + 1}` : ""}: ${(error as Error).message}`);
    }
  }
  return read;
}
