/** Reads the YAML of agents' files as `agentcfg export` writes it, and what people write like it: no anchors, no tags. */
import { Raw } from "./json-text";

const KEY = /^("(?:[^"\\]|\\.)*"|[^\s"'#&*!|>%@`[\]{},-][^#]*?):(?: +(.*))?$/;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;
const ITEM = /^- *(.*)$/;

/** What is wrong, and in which line, from 0. */
export class YamlFault extends Error {
  constructor(
    readonly line: number,
    message: string,
  ) {
    super(message);
  }
}

export function yaml(source: string): unknown {
  const lines = source.split("\n");
  let at = 0;
  /** The line without its indentation, which is set; `null` at the end. Lines that say nothing are passed over. */
  let indent = 0;
  const line = (): string | null => {
    while (/^\s*(#|$)/.test(lines[at] ?? "-")) at += 1;
    indent = lines[at]?.search(/\S/) ?? -1;
    return lines[at]?.trim() ?? null;
  };
  const fail = (message: string): never => {
    throw new YamlFault(at, message);
  };

  const scalar = (text: string): unknown => {
    if (/^["[{]/.test(text))
      try {
        const json = text.replace(/\\x(..)|\\U(.{8})/g, (_, two, eight) => String.fromCodePoint(parseInt(two ?? eight, 16)));
        return JSON.parse(json);
      } catch {
        return fail("This is not closed, or no JSON: write it over several lines.");
      }
    if (text[0] === "'") return text.slice(1, -1).replace(/''/g, "'");
    if (/^[&*!%@`]/.test(text)) fail("It needs quotes.");
    return NUMBER.test(text) ? new Raw(text) : (({ null: null, "~": null, true: true, false: false } as never)[text] ?? text);
  };

  /** The lines of a text below a key or a hyphen. */
  const block = (outer: number, width: string, end: string): string => {
    const own: string[] = [];
    while (at < lines.length && (!lines[at]!.trim() || lines[at]!.search(/\S/) > outer)) own.push(lines[at++]!);
    const from = width ? outer + Number(width) : own.find((text) => text.trim())?.search(/\S/);
    const text = own.map((text) => text.slice(from)).join("\n");
    return end === "+" ? `${text}\n` : text.replace(/\n*$/, end ? "" : "\n");
  };

  /** What follows a key or a hyphen that has this indentation. */
  const value = (text: string, outer: number, listBeside: boolean): unknown => {
    const written = text.replace(/^#.*|(?<=^[^"']*|^".*"|^'.*')\s+#.*$/, "");
    const style = /^\|(\d?)([+-]?)$/.exec(written);
    const found = written && !style ? scalar(written) : null;
    at += 1;
    if (style) return block(outer, style[1]!, style[2]!);
    if (written) return written === "null" ? null : found;
    const below = line();
    return below !== null && (indent > outer || (listBeside && indent === outer && ITEM.test(below))) ? node() : null;
  };

  function node(): unknown {
    const items: unknown[] = [];
    const members: Record<string, unknown> = {};
    const first = line() ?? "";
    const own = indent;
    const isList = ITEM.test(first);
    for (let text: string | null = first; text !== null && indent === own && ITEM.test(text) === isList; text = line()) {
      if (isList) {
        const inner = ITEM.exec(text)![1]!;
        if (KEY.test(inner) || ITEM.test(inner)) {
          // What stands beside the hyphen is the first line of what is below it.
          lines[at] = lines[at]!.replace("-", " ");
          items.push(node());
        } else items.push(value(inner, own, false));
        continue;
      }
      const [, written, rest] = KEY.exec(text) ?? fail("A line here is a key, a colon and a value.");
      const key = written![0] === '"' ? (scalar(written!) as string) : written!;
      if (key in members) fail(`${key} is there twice.`);
      members[key] = value(rest ?? "", own, true);
    }
    return isList ? items : members;
  }

  const found = line() === null ? {} : node();
  return line() === null ? found : fail("This line has another indentation than those before it.");
}
