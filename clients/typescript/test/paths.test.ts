// What a mirror does where something else than the server answers, a function of the program hangs, or a cache is shared.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  AgentCfg,
  type AgentCfgOptions,
  Client,
  CredentialError,
  NotReadyError,
  StatusError,
  UnreadableAnswerError,
} from "../src/index.js";
import type { ChangeEvent, ReleasedAgent } from "../src/generated.js";
import { sealed } from "../src/cache.js";
import { makeSnapshot, mayChange } from "../src/snapshot.js";
import { scripted, temporaryFolder } from "./server.js";

const WORKSPACE = "018f2d7c-0000-7000-8000-000000000001";
const config = { display_name: "A", agent_type: "ai", capabilities: [], parameters: {} } as unknown as ReleasedAgent["config"];
const row = (version: number): ReleasedAgent => ({
  agent_id: "a",
  label: "production",
  version,
  updated_at: `t${version}`,
  config,
});
const saved = (version: number, cursor: string, agents: unknown[] = [row(version)]) =>
  sealed(JSON.stringify({ format: 1, workspace_id: WORKSPACE, label: "production", tag: String(version), cursor, agents }));

type Answer = (response: ServerResponse) => void;
const json =
  (status: number, content: unknown, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(content));
const html =
  (status: number): Answer =>
  (response) =>
    response.writeHead(status, { "content-type": "text/html" }).end("<html>");
const released = (version: number, cursor: string): Answer =>
  json(200, [row(version)], { "change-cursor": cursor, etag: `"${version}"` });

/** A client of a server that answers so, the last answer again and again. Its streams stay open. */
async function open(answers: Answer[], options: Partial<AgentCfgOptions> = {}) {
  const { url } = await scripted((request, response) => {
    if (request.url!.startsWith("/api/changes")) {
      response.writeHead(200, { "content-type": "text/event-stream" }).write("event: bookmark\nid: e-c1\ndata: {}\n\n");
    } else {
      (answers.length > 1 ? answers.shift()! : answers[0]!)(response);
    }
  });
  const cfg = new AgentCfg({ url, key: "k", workspace: WORKSPACE, onError: () => {}, ...options });
  after(() => cfg.close());
  return cfg;
}

async function cacheFile(text?: string): Promise<string> {
  const cache = join(await temporaryFolder(), "agents.json");
  if (text !== undefined) await writeFile(cache, text);
  return cache;
}

test("an answer of something else leaves the cache", async () => {
  const foreign: Answer[] = [
    html(200),
    html(404),
    (response) => response.writeHead(302, { location: "https://login.example.com/" }).end(),
    json(403, { message: "of a gateway" }, { "x-request-id": "r" }),
    json(401, { error: "of a gateway" }),
    json(200, []),
  ];
  for (const answer of foreign) {
    const cfg = await open([answer], { cache: await cacheFile(saved(7, "e-c7")) });
    await cfg.ready();
    assert.deepEqual([cfg.agent("a").version, cfg.health.source, cfg.health.state], [7, "cache", "connecting"]);
    // Without a cache the URL may be wrong.
    await assert.rejects((await open([answer])).ready(), answer === foreign[5] ? UnreadableAnswerError : Error);
  }
});

test("a refusal of the service drops the cache", async () => {
  for (const status of [400, 401, 403]) {
    const cache = await cacheFile(saved(7, "e-c7"));
    const cfg = await open([json(status, { error: "no" }, { "x-request-id": "r" })], { cache });
    await assert.rejects(cfg.ready(), StatusError);
    assert.throws(() => cfg.agent("a"), NotReadyError);
  }
});

test("a key function that fails leaves the cache, and is asked again", async () => {
  let asked = 0;
  const key = () => {
    asked += 1;
    if (asked === 1) throw new Error("no vault");
    return "k";
  };
  const cfg = await open([released(8, "e-c8")], { key, cache: await cacheFile(saved(7, "e-c7")) });
  const changed = new Promise((resolve) => cfg.onChange(resolve));
  await cfg.ready();
  assert.equal(cfg.agent("a").version, 7);
  assert.ok(cfg.health.error instanceof CredentialError);
  await changed;
  assert.equal(cfg.agent("a").version, 8);
  const client = new Client({
    url: "http://127.0.0.1:1",
    key: () => Promise.reject(new Error("no vault")),
    retry: { maxRetries: 0 },
  });
  await assert.rejects(client.workspaces.create("x"), {
    name: "CredentialError",
    mayHaveBeenApplied: false,
    message: /no vault/,
  });
});

test("a key function that hangs holds no close up", { timeout: 10_000 }, async () => {
  for (const workspace of [WORKSPACE, undefined]) {
    let isAsked = () => {};
    const asked = new Promise<void>((resolve) => (isAsked = resolve));
    const key = () => {
      isAsked();
      return new Promise<string>(() => {});
    };
    const cfg = await open([html(200)], { key, workspace });
    await asked;
    await cfg.close();
  }
});

test("a process that is behind leaves the cache of another one", async () => {
  for (const [present, own, kept] of [
    ["e-c9", "e-c8", "e-c9"],
    ["e-c8", "e-c8", "e-c8"],
    ["e-c7", "e-c8", "e-c8"],
    // Of another epoch, and of a file that is damaged.
    ["d-c9", "e-c8", "e-c8"],
    [undefined, "e-c8", "e-c8"],
  ] as const) {
    const cache = await cacheFile();
    const cfg = await open([released(8, own)], { cache });
    await cfg.ready();
    // The first write is over before another process writes.
    while (!(await readFile(cache, "utf8").catch(() => "")).includes(own)) await new Promise((resolve) => setImmediate(resolve));
    await writeFile(cache, present === undefined ? "{" : saved(9, present));
    await cfg.close();
    assert.equal((JSON.parse(await readFile(cache, "utf8")) as { cursor: string }).cursor, kept);
  }
});

test("a cache with fields of other types is not served", async () => {
  const fields = (changed: object) => ({ ...row(7), config: { ...config, ...changed } });
  const rows = [
    { ...row(7), version: "7" },
    { ...row(7), updated_at: null },
    { ...row(7), config: [] },
    fields({ display_name: null }),
    fields({ persona_prompt: 5 }),
    fields({ capabilities: "abc" }),
    fields({ capabilities: [1] }),
    fields({ parameters: [1] }),
    fields({ definition: 7 }),
    fields({ definition: { variables: { x: 1 } } }),
    fields({ definition: { tools: {} } }),
  ];
  for (const wrong of rows) {
    const errors: Error[] = [];
    const cfg = new AgentCfg({
      url: "http://127.0.0.1:1",
      key: "k",
      workspace: WORKSPACE,
      cache: await cacheFile(saved(7, "e-c7", [wrong])),
      onError: (error) => errors.push(error),
    });
    await assert.rejects(cfg.ready({ timeoutMs: 50 }));
    await cfg.close();
    assert.match(String(errors[0]), /not one that this release has written/, JSON.stringify(wrong));
  }
});

test("an event of a later release may change anything", () => {
  const snapshot = makeSnapshot("production", "e-c1", [row(1)]);
  const event = { type: "agent.of_a_later_release", target: { type: "agent", id: "a" }, changes: {} } as unknown as ChangeEvent;
  assert.equal(mayChange(event, snapshot), true);
  assert.equal(mayChange({ ...event, type: "agent.updated" }, snapshot), false);
});
