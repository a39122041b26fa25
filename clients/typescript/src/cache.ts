// The last state, kept for a start without the server: in a file, or in a storage of the browser.
import { AgentCfgError, InputError } from "./errors.js";
import { eventTexts } from "./follow.js";
import type { ChangeEvent, ReleasedAgent } from "./generated.js";
import { memberText, partsOf } from "./json.js";
import type { Frozen } from "./release.js";
import { isBefore } from "./snapshot.js";
import { isNode } from "./transport.js";

/** Where a browser keeps the last state: `localStorage` fits, and so does anything with these two methods. */
export interface CacheStorage {
  getItem(name: string): string | null | undefined | Promise<string | null | undefined>;
  setItem(name: string, text: string): unknown;
}

/** A state as it is kept. The Rust client's files have the same form. @internal */
export interface Saved {
  format: 1;
  workspace_id: string;
  label: string;
  tag: string;
  cursor: string;
  /** When the server confirmed the state last. */
  confirmed_at?: string | undefined;
  agents: readonly Frozen<ReleasedAgent>[];
  /**
   * The texts of `agents` as the server wrote them: clients that share the cache read more from them than JSON.parse does. There
   * are none without a cache.
   */
  texts: readonly string[];
}

/** @internal */
export interface Cache {
  load(): Promise<string | undefined>;
  save(text: string): Promise<void>;
}

/** The cache that the option names. @internal */
export function openCache(option: string | URL | CacheStorage, name: string): Cache {
  if (typeof option === "string" || option instanceof URL) {
    if (!isNode()) throw new InputError("cache must be a storage outside of Node.js, such as localStorage");
    return new FileCache(option);
  }
  return {
    load: async () => (await option.getItem(name)) ?? undefined,
    save: async (text) => {
      await option.setItem(name, text);
    },
  };
}

/** Reads a state that was kept, unless it is that of another label, workspace or release. @internal */
export function parseSaved(text: string, label: string, workspaceId: string | undefined): Saved {
  return { ...parseState(text, label, workspaceId), texts: textsOf(memberText(text, "agents")!) };
}

/** The text that keeps a state. @internal */
export function savedText({ workspace_id, label, tag, cursor, texts }: Saved, confirmed_at: string | undefined): string {
  const head = JSON.stringify({ format: 1, workspace_id, label, tag, cursor, confirmed_at });
  return sealed(`${head.slice(0, -1)},"agents":[${texts.join(",")}]}`);
}

/**
 * The state at an event of a stream that has what it releases. There is none where the event does not follow the state, and
 * where it has an agent that the state does not have, whose place in the list is not known.
 *
 * @internal
 */
export function stateAfter(saved: Saved, event: ChangeEvent): Saved | undefined {
  const { cursor, released } = event;
  const text = eventTexts.get(event);
  if (text === undefined || !released?.every(isRow) || !isBefore(saved.cursor, cursor)) return undefined;
  const [agents, texts] = [[...saved.agents], [...saved.texts]];
  const moved = texts.length === 0 ? [] : textsOf(memberText(text, "released")!);
  for (const [index, row] of released.entries()) {
    const place = agents.findIndex(({ agent_id }) => agent_id === row.agent_id);
    if (place === -1) return undefined;
    agents[place] = row;
    if (texts.length > 0) texts[place] = moved[index]!;
  }
  // The tag of the list is not known.
  return { ...saved, tag: "", cursor, agents, texts };
}

/** The texts of the items of an array, as they were written. @internal */
export function textsOf(text: string): string[] {
  return partsOf(text).map(([, item]) => item);
}

/** The text of an object with a checksum of it as its first member. @internal */
export function sealed(text: string): string {
  const rest = text.slice(1);
  return `${HEAD}${crc32(new TextEncoder().encode(rest)).toString(16).padStart(8, "0")}",${rest}`;
}

function isSealed(text: string): boolean {
  return text === sealed(`{${text.slice(HEAD.length + 10)}`);
}

/** What the text begins with: a checksum of all that follows it, so that a cache that was damaged or edited is not served. */
const HEAD = '{"crc32":"';

const CRC_TABLE = Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = (value & 1 ? 0xedb88320 : 0) ^ (value >>> 1);
  return value;
});

function crc32(bytes: Uint8Array): number {
  let crc = ~0;
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

type State = Omit<Saved, "texts">;

function parseState(text: string, label: string, workspaceId: string | undefined): State {
  let saved: Partial<State> | null;
  try {
    saved = JSON.parse(text) as Partial<State> | null;
  } catch (error) {
    throw new AgentCfgError("the cache is damaged: it is not JSON", { cause: error });
  }
  const { format, workspace_id, tag, cursor, agents } = saved ?? {};
  const isWhole =
    typeof workspace_id === "string" &&
    typeof tag === "string" &&
    /^[!#-~]*$/.test(tag) &&
    typeof cursor === "string" &&
    Array.isArray(agents) &&
    agents.every(isRow);
  if (format !== 1 || !isWhole) throw new AgentCfgError("the cache is not one that this release has written");
  if (saved?.label !== label) throw new AgentCfgError(`the cache is that of the label ${saved?.label}, not of ${label}`);
  if (workspaceId !== undefined && workspace_id !== workspaceId) {
    throw new AgentCfgError(`the cache is that of the workspace ${workspace_id}, not of ${workspaceId}`);
  }
  if (!isSealed(text)) throw new AgentCfgError("the cache is damaged: it is not as it was written");
  return saved as State;
}

/** Checks the types of an agent's fields: each would fail where a program uses it, and not here. @internal */
export function isRow(row: Partial<ReleasedAgent> | null): boolean {
  const config = row?.config as Record<string, unknown> | null | undefined;
  const isText = (value: unknown) => typeof value === "string";
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  const isAbsent = (value: unknown) => value === undefined || value === null;
  if (!isText(row?.agent_id) || !isText(row?.label) || !isText(row?.updated_at)) return false;
  if (!Number.isInteger(row?.version) || !isObject(config)) return false;
  const { capabilities, parameters, definition } = config;
  const { variables, tools, model_settings: settings } = isObject(definition) ? definition : {};
  return (
    [config["display_name"], config["agent_type"]].every(isText) &&
    ["role", "description", "model", "color", "persona_prompt"].every((name) => isAbsent(config[name]) || isText(config[name])) &&
    Array.isArray(capabilities) &&
    capabilities.every(isText) &&
    isObject(parameters) &&
    Object.values(parameters).every((value) => typeof value === "number") &&
    (isAbsent(definition) || isObject(definition)) &&
    (isAbsent(variables) || (isObject(variables) && Object.values(variables).every(isObject))) &&
    (isAbsent(tools) || Array.isArray(tools)) &&
    (isAbsent(settings) || isObject(settings))
  );
}

/**
 * Whether the cache has a later state of the same label: processes share it, and one of them may be behind. The text that this
 * one has written last need not be parsed.
 *
 * @internal
 */
export async function isBehind(cache: Cache, saved: Saved, written: string | undefined): Promise<boolean> {
  try {
    const text = await cache.load();
    if (text === undefined || text === written) return false;
    return isBefore(saved.cursor, parseState(text, saved.label, saved.workspace_id).cursor);
  } catch {
    return false; // it is not usable: the state replaces it
  }
}

/** A file that is replaced as a whole: a crash leaves the state before or the one after. */
class FileCache implements Cache {
  constructor(private readonly path: string | URL) {}

  async load(): Promise<string | undefined> {
    const { fs } = await modules();
    try {
      return await fs.readFile(this.path, "utf8");
    } catch (error) {
      if ((error as { code?: unknown }).code === "ENOENT") return undefined;
      throw error;
    }
  }

  async save(text: string): Promise<void> {
    const { fs, url } = await modules();
    const path = this.path instanceof URL ? url.fileURLToPath(this.path) : this.path;
    // Several clients, of this process or of others, may share the file: the last state that is written stays.
    const temporary = `${path}.${globalThis.crypto.randomUUID()}.tmp`;
    try {
      // The personas are for the owner alone.
      const file = await fs.open(temporary, "w", 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await fs.rename(temporary, path);
    } catch (error) {
      await fs.rm(temporary, { force: true }).catch(() => undefined);
      throw error;
    }
  }
}

/** The modules of Node.js, by names that no bundler for browsers resolves. */
async function modules() {
  const names = ["node:fs/promises", "node:url"] as const;
  const [fs, url] = await Promise.all(names.map((name) => import(/* @vite-ignore */ /* webpackIgnore: true */ name)));
  return { fs: fs as typeof import("node:fs/promises"), url: url as typeof import("node:url") };
}
