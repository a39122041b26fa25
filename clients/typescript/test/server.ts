// The server under test: the real program on a free port, with a data directory of its own.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { promisify } from "node:util";
import { Client, type NewApiKey } from "../src/index.js";

const run = promisify(execFile);

export function needed(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run scripts/test.mjs`);
  return value;
}

/** A folder that is removed after the test, or after those of the file where it is made outside of a test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "agentcfg-typescript-"));
  after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

export class Server {
  url = "";
  #process: ChildProcess | undefined;
  #port = 0;

  constructor(
    readonly data: string,
    private readonly settings: Record<string, string> = {},
  ) {}

  /** Starts a server that ends as such a folder does. */
  static async start(settings: Record<string, string> = {}): Promise<Server> {
    const server = new Server(join(await temporaryFolder(), "data"), settings);
    await server.start();
    after(() => server.kill());
    return server;
  }

  async start(): Promise<void> {
    const program = needed("AGENTCFG_TEST_BINARY");
    const started = spawn(program, ["serve", "--data", this.data, "--listen", `127.0.0.1:${this.#port}`], {
      // Variables that begin with AGENTCFG_ are settings of the server.
      env: { PATH: process.env["PATH"], AGENTCFG_SESSION_RATE_LIMIT: "1000000", ...this.settings },
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#process = started;
    for await (const line of createInterface({ input: started.stdout! })) {
      const url = /^listening on (http:\/\/\S+:(\d+))$/.exec(line);
      if (url === null) continue;
      this.url = url[1]!;
      this.#port = Number(url[2]);
      started.stdout!.resume();
      return;
    }
    throw new Error("the server has ended before it listened");
  }

  /** Ends the server at once, as a crash does. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const ended = this.#process;
    this.#process = undefined;
    if (ended === undefined || ended.exitCode !== null) return;
    const exit = once(ended, "exit");
    ended.kill(signal);
    await exit;
  }

  async command(...words: string[]): Promise<string> {
    const { stdout } = await run(needed("AGENTCFG_TEST_BINARY"), words, { env: { PATH: process.env["PATH"] } });
    return stdout.trim();
  }

  /** A client with a session of the user. */
  async session(user = "ada", workspace?: string): Promise<Client> {
    const key = await this.command("token", "--user", user, "--data", this.data);
    return new Client({ url: this.url, key, workspace });
  }

  /** A new workspace and its owner's client. */
  async studio(): Promise<Studio> {
    const ada = await this.session();
    const { id } = await ada.workspaces.create("Studio");
    const owner = await this.session("ada", id);
    return new Studio(this, id, owner);
  }
}

export class Studio {
  constructor(
    readonly server: Server,
    readonly id: string,
    readonly owner: Client,
  ) {}

  async key(settings: Partial<NewApiKey> = {}) {
    const key = { name: "tests", environment: "development", scope: "admin", rate_limit: 1_000_000, ...settings } as const;
    return await this.owner.apiKeys.create(key);
  }

  async client(settings: Partial<NewApiKey> = {}): Promise<Client> {
    const { key } = await this.key(settings);
    return new Client({ url: this.server.url, key });
  }

  /** Creates agents, and releases their first version under a label. */
  async released(agentIds: string[], label = "production", fields: object = {}): Promise<void> {
    await this.owner.agents.apply({ agents: agentIds.map((agent_id) => ({ agent_id, display_name: agent_id, ...fields })) });
    await this.owner.labels.promote({ from: "latest", to: label, agent_ids: agentIds });
  }
}

/** A server of HTTP that answers as the test says. It ends after the test. */
export async function scripted(
  handle: (request: IncomingMessage & { text: string }, response: ServerResponse) => void,
): Promise<{ url: string; server: HttpServer }> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => handle(Object.assign(request, { text: Buffer.concat(pieces).toString() }), response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

/** A value that a listener delivers: `next()` waits for the next one. */
export class Inbox<T> {
  readonly #items: T[] = [];
  #waiting: ((item: T) => void) | undefined;

  put(item: T): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#items.push(item);
    else waiting(item);
  }

  async next(what = "an item", withinMs = 20_000): Promise<T> {
    const item = this.#items.shift();
    if (item !== undefined) return item;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${what} has not come within ${withinMs} ms`)), withinMs);
    });
    try {
      return await Promise.race([new Promise<T>((resolve) => (this.#waiting = resolve)), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }
}
