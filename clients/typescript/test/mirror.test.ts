import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  AgentCfg,
  type AgentCfgOptions,
  ConnectionError,
  type Health,
  NotReadyError,
  type SnapshotChange,
  UnauthorizedError,
  UnknownAgentError,
} from "../src/index.js";
import { Inbox, scripted, Server, type Studio, temporaryFolder } from "./server.js";

const server = await Server.start();

/** Agents of a client whose requests are counted, and whose errors are kept. It is closed after the test. */
function open(studio: Studio, key: string, options: Partial<AgentCfgOptions> = {}) {
  const requests: string[] = [];
  const errors: Error[] = [];
  const steps = new Inbox<SnapshotChange>();
  const cfg = new AgentCfg({
    url: studio.server.url,
    key,
    workspace: studio.id,
    onError: (error) => errors.push(error),
    fetch: (input, init) => {
      requests.push(new URL(String(input)).pathname);
      return fetch(input, init);
    },
    ...options,
  });
  after(() => cfg.close());
  cfg.onChange((step) => steps.put(step));
  return { cfg, requests, errors, steps };
}

/** Waits until the health is as it should be. A request to a server lets time pass between two looks. */
async function until(cfg: AgentCfg, isMet: (health: Health) => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 20_000; !(await isMet(cfg.health));) {
    assert.ok(Date.now() < end, `the health is still ${JSON.stringify(cfg.health)}`);
    await fetch(`${server.url}/healthz`).then((answer) => answer.text());
  }
}
const live = (health: Health) => health.state === "live";

test("one request reads the agents, and the stream keeps them live", async () => {
  const studio = await server.studio();
  const { key } = await studio.key({ scope: "read" });
  await studio.released(["support", "writer"], "production", {
    model: "gpt-5.5",
    persona_prompt: "Help {{name}}.",
    definition: { variables: { name: { default: "all" } }, tools: ["search"] },
  });
  const { cfg, requests, steps } = open(studio, key);
  assert.throws(() => cfg.agent("support"), NotReadyError);
  assert.equal(await cfg.ready(), cfg);
  const support = cfg.agent("support");
  assert.deepEqual([support.version, support.model, support.label], [1, "gpt-5.5", "production"]);
  assert.equal(support.prompt({ name: "Ada" }), "Help Ada.");
  assert.deepEqual([...cfg.snapshot.agents.keys()], ["support", "writer"]);
  assert.throws(() => Object.assign(support, { model: "x" }), TypeError);
  assert.throws(() => (support.definition!.tools as string[]).push("x"), TypeError);
  await until(cfg, live);
  assert.deepEqual(requests, ["/api/agents/released", "/api/changes"]);

  // An edit is not a release.
  await studio.owner.agents.update("support", { model: "claude-sonnet-5-5" });
  await studio.owner.labels.set("support", "production", { label: "latest" });
  const { changed, snapshot } = await steps.next();
  assert.deepEqual(
    changed.map(({ agent_id, from, to }) => [agent_id, from?.version, to?.version, to?.model]),
    [["support", 1, 2, "claude-sonnet-5-5"]],
  );
  assert.equal(cfg.snapshot, snapshot);
  assert.equal(support.version, 1, "what was read before does not change");
  assert.equal(cfg.agent("support").model, "claude-sonnet-5-5");
  assert.equal(requests.length, 2, "neither the edit nor the release is a reason for a request");
  const { source, state, ageMs, error } = cfg.health;
  assert.deepEqual([source, state, error], ["server", "live", undefined]);
  assert.ok(ageMs !== undefined && ageMs < 16_000);
});

test("deactivation, restore and removal of a label are seen, and an unknown agent has a hint", async () => {
  const studio = await server.studio();
  const { key } = await studio.key();
  await studio.released(["support", "writer"]);
  const { cfg, steps } = open(studio, key);
  await cfg.ready();
  const seen = async () => (await steps.next()).changed.map(({ agent_id, from, to }) => [agent_id, from?.version, to?.version]);
  await studio.owner.agents.delete("writer");
  assert.deepEqual(await seen(), [["writer", 1, undefined]]);
  assert.equal(cfg.find("writer"), undefined);
  await studio.owner.agents.restore("writer");
  assert.deepEqual(await seen(), [["writer", undefined, 1]]);
  await studio.owner.labels.remove("writer", "production");
  assert.deepEqual(await seen(), [["writer", 1, undefined]]);
  await studio.owner.labels.set("writer", "production", { version: 1 });
  assert.deepEqual(await seen(), [["writer", undefined, 1]]);
  assert.throws(() => cfg.agent("suport"), /the label production releases no agent "suport"; did you mean support\?/);
  assert.throws(() => cfg.agent("__proto__"), UnknownAgentError);
});

test("a release of many agents is one step, and never half of it", async () => {
  const studio = await server.studio();
  const { key } = await studio.key();
  const ids = Array.from({ length: 300 }, (_, index) => `agent-${index}`);
  await studio.released(ids, "production", { model: "m1" });
  const { cfg, steps } = open(studio, key);
  await cfg.ready();
  await until(cfg, live);
  for (const model of ["m2", "m3"]) {
    const agents = ids.map((agent_id) => ({ agent_id, display_name: agent_id, model }));
    await studio.owner.agents.apply({ agents });
    await studio.owner.labels.promote({ from: "latest", to: "production" });
    const { changed, snapshot } = await steps.next();
    assert.equal(changed.length, 300);
    assert.deepEqual(new Set([...snapshot.agents.values()].map((agent) => agent.model)), new Set([model]));
  }
  // Back to where the label was, in one step too.
  const [, first] = await studio.owner.labels.history("production");
  await studio.owner.labels.restore("production", first!.revision);
  const { changed } = await steps.next();
  assert.deepEqual([changed.length, changed[0]?.to?.model], [300, "m2"]);
  assert.ok(steps.isEmpty);
});

test("the label latest follows each edit", async () => {
  const studio = await server.studio();
  const { key } = await studio.key();
  await studio.owner.agents.create({ agent_id: "support", display_name: "Support" });
  const { cfg, steps } = open(studio, key, { label: "latest" });
  await cfg.ready();
  await studio.owner.agents.update("support", { model: "m2" });
  assert.equal((await steps.next()).changed[0]?.to?.model, "m2");
  await studio.owner.agents.create({ agent_id: "writer", display_name: "Writer" });
  assert.equal((await steps.next()).changed[0]?.agent_id, "writer");
});

test("a server that is killed leaves the last state, and a start without it has the cache", async () => {
  const own = await Server.start();
  const studio = await own.studio();
  const { key } = await studio.key();
  await studio.released(["support"]);
  const folder = await temporaryFolder();
  const cache = join(folder, "agents.json");
  const { cfg, steps, requests } = open(studio, key, { cache });
  await cfg.ready();
  await until(cfg, live);
  await studio.owner.agents.update("support", { model: "m2" });
  await studio.owner.labels.set("support", "production", { version: 2 });
  await steps.next();
  assert.equal(requests.length, 2, "the release is no reason for a request");
  await until(cfg, async () => (await readFile(cache, "utf8").catch(() => "")).includes('"version":2'));
  await own.kill();
  await until(cfg, ({ state }) => state === "connecting");
  assert.equal(cfg.agent("support").version, 2);
  assert.ok(cfg.health.error instanceof Error);
  const confirmed = cfg.health.confirmedAt!;

  // Another process starts meanwhile.
  const late = open(studio, key, { cache, workspace: undefined });
  await late.cfg.ready();
  assert.deepEqual([late.cfg.agent("support").version, late.cfg.health.source], [2, "cache"]);
  assert.ok(late.cfg.health.ageMs! > 0 && late.cfg.health.confirmedAt! <= confirmed);
  const without = open(studio, key);
  await assert.rejects(without.cfg.ready({ timeoutMs: 100 }), ConnectionError);

  // Both go on when the server is back, and see what happened since.
  await own.start();
  await studio.owner.agents.update("support", { model: "m3" });
  await studio.owner.labels.set("support", "production", { version: 3 });
  assert.equal((await steps.next()).changed[0]?.to?.version, 3);
  assert.equal((await late.steps.next()).changed[0]?.to?.version, 3);
  assert.equal(late.cfg.health.source, "server");
  await without.cfg.ready();
  await Promise.all([cfg.close(), late.cfg.close()]);
  assert.equal(cfg.health.state, "closed");
  assert.equal(cfg.agent("support").version, 3, "a closed client still has its agents");
  const saved = JSON.parse(await readFile(cache, "utf8")) as { agents: { version: number }[] };
  assert.equal(saved.agents[0]?.version, 3);
  assert.deepEqual(await readdir(folder), ["agents.json"], "no temporary file is left");
  assert.equal((await stat(cache)).mode & 0o777, 0o600);
});

test("a cache that is up to date costs no transfer", async () => {
  const studio = await server.studio();
  const { key } = await studio.key();
  await studio.released(["support"]);
  const cache = join(await temporaryFolder(), "agents.json");
  const first = open(studio, key, { cache });
  await first.cfg.ready();
  await first.cfg.close();
  const statuses: number[] = [];
  const again = open(studio, key, {
    cache,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      statuses.push(response.status);
      return response;
    },
  });
  await again.cfg.ready();
  await until(again.cfg, live);
  assert.deepEqual(statuses, [304, 200]);
  assert.deepEqual([again.cfg.agent("support").version, again.cfg.health.source], [1, "server"]);
  // The next release is seen from there on.
  await studio.owner.agents.update("support", { model: "m2" });
  await studio.owner.labels.set("support", "production", { version: 2 });
  assert.equal((await again.steps.next()).changed[0]?.to?.version, 2);
});

test("clients that share a cache never leave half of a state in it", async () => {
  const studio = await server.studio();
  const { key } = await studio.key({ scope: "read" });
  await studio.released(["support"], "production", { description: "long ".repeat(300) });
  const folder = await temporaryFolder();
  const cache = join(folder, "agents.json");
  const clients = Array.from({ length: 6 }, () => open(studio, key, { cache }));
  await Promise.all(clients.map(({ cfg }) => cfg.ready()));
  await until(clients[0]!.cfg, () => readFile(cache).then(Boolean, () => false));
  for (let version = 2; version <= 4; version += 1) {
    await studio.owner.agents.update("support", { model: `m${version}` });
    await studio.owner.labels.set("support", "production", { version });
    await Promise.all(clients.map(({ steps }) => steps.next()));
    const text = await readFile(cache, "utf8");
    assert.equal((JSON.parse(text) as { agents: unknown[] }).agents.length, 1);
  }
  await Promise.all(clients.map(({ cfg }) => cfg.close()));
  assert.deepEqual(await readdir(folder), ["agents.json"]);
  assert.match(await readFile(cache, "utf8"), /"version":4/);
  assert.deepEqual(
    clients.flatMap(({ errors }) => errors),
    [],
  );
});

test("the cache of another workspace is not taken for that of the key", async () => {
  const cache = join(await temporaryFolder(), "agents.json");
  // Two workspaces with the same steps, so that their tags could be the same.
  for (const model of ["m1", "m2"]) {
    const studio = await server.studio();
    const { key } = await studio.key();
    await studio.released(["support"], "production", { model });
    const { cfg } = open(studio, key, { cache, workspace: undefined });
    await cfg.ready();
    assert.equal(cfg.agent("support").model, model);
    await cfg.close();
  }
});

test("a cache that is damaged, or of another label, is reported and not used", async () => {
  const studio = await server.studio();
  const { key } = await studio.key();
  await studio.released(["support"]);
  const cache = join(await temporaryFolder(), "agents.json");
  const cases: [text: string, message: RegExp][] = [
    ['{"format":1,"wor', /damaged/],
    ["[]", /not one that this release has written/],
    [
      JSON.stringify({
        format: 1,
        workspace_id: studio.id,
        label: "production",
        tag: "x",
        cursor: "y",
        agents: [{ agent_id: "a" }],
      }),
      /not one that this release has written/,
    ],
    [
      JSON.stringify({ format: 1, workspace_id: studio.id, label: "production", tag: "x\ny", cursor: "y", agents: [] }),
      /not one that this release has written/,
    ],
    [
      JSON.stringify({ format: 1, workspace_id: studio.id, label: "staging", tag: "x", cursor: "y", agents: [] }),
      /label staging, not of production/,
    ],
    [
      JSON.stringify({ format: 1, workspace_id: "other", label: "production", tag: "x", cursor: "y", agents: [] }),
      /workspace other/,
    ],
  ];
  for (const [text, message] of cases) {
    await writeFile(cache, text);
    const down = open(studio, key, { cache, url: "http://127.0.0.1:1" });
    await until(down.cfg, ({ error }) => error !== undefined);
    await assert.rejects(down.cfg.ready({ timeoutMs: 50 }), ConnectionError);
    assert.match(String(down.errors[0]), message);
    const { cfg } = open(studio, key, { cache });
    await cfg.ready();
    await cfg.close();
    assert.match(await readFile(cache, "utf8"), /"label":"production"/, "the next state replaces it");
  }
  const nowhere = open(studio, key, { cache: join(cache, "below", "a-file") });
  await nowhere.cfg.ready();
  await nowhere.cfg.close();
  assert.match(String(nowhere.errors[0]), /ENOTDIR/);
});

test("a key that is refused fails a start at once, even with a cache, and a revoked one leaves the last state", async () => {
  const studio = await server.studio();
  const { key, id } = await studio.key();
  await studio.released(["support"]);
  const cache = join(await temporaryFolder(), "agents.json");
  const { cfg, errors } = open(studio, key, { cache });
  await cfg.ready();
  await until(cfg, live);
  await studio.owner.apiKeys.revoke(id);
  await until(cfg, ({ state }) => state === "refused");
  assert.ok(cfg.health.error instanceof UnauthorizedError);
  assert.ok(errors[0] instanceof UnauthorizedError);
  assert.equal(cfg.agent("support").version, 1);
  const next = open(studio, key, { cache });
  await assert.rejects(next.cfg.ready(), UnauthorizedError);
  await assert.rejects(next.cfg.ready(), UnauthorizedError);
  assert.throws(() => next.cfg.agent("support"), NotReadyError);
});

test("a store that was restored from a backup is read again", async () => {
  const own = await Server.start();
  const studio = await own.studio();
  const { key } = await studio.key();
  await studio.released(["support"], "production", { model: "m1" });
  const folder = await temporaryFolder();
  await own.command("backup", "--data", own.data, "--out", join(folder, "backup"));
  await studio.owner.agents.update("support", { model: "lost" });
  await studio.owner.labels.set("support", "production", { version: 2 });
  const { cfg, steps } = open(studio, key);
  await cfg.ready();
  await until(cfg, live);
  assert.equal(cfg.agent("support").model, "lost");
  await own.kill("SIGTERM");
  const [entry] = (await readdir(own.data)).filter((name) => name.endsWith(".redb"));
  await rename(join(own.data, entry!), join(folder, "old"));
  await own.command("restore", "--from", join(folder, "backup"), "--data", own.data);
  await own.start();
  const { changed } = await steps.next();
  assert.deepEqual([changed[0]?.to?.version, changed[0]?.to?.model], [1, "m1"]);
});

test("more mirrors than the server allows streams are live by polls", async () => {
  const studio = await server.studio();
  const { key } = await studio.key();
  await studio.released(["support"]);
  const mirrors = Array.from({ length: 12 }, () => open(studio, key));
  await Promise.all(mirrors.map(({ cfg }) => cfg.ready()));
  await Promise.all(mirrors.map(({ cfg }) => until(cfg, live)));
  const polling = mirrors.filter(({ requests }) => requests.filter((path) => path === "/api/changes").length > 1);
  assert.equal(polling.length, 2);
  await studio.owner.agents.update("support", { model: "m2" });
  await studio.owner.labels.set("support", "production", { version: 2 });
  const seen = await Promise.all(mirrors.map(({ steps }) => steps.next()));
  assert.deepEqual(new Set(seen.map(({ changed }) => changed[0]?.to?.version)), new Set([2]));
  await Promise.all(mirrors.map(({ cfg }) => cfg.close()));
});

test("a stream that breaks is resumed where it was, and `end` is not the end", async () => {
  // A stream passes through a connection that breaks after each event, so that each one needs a connection of its own.
  const studio = await server.studio();
  const { key } = await studio.key();
  await studio.released(["support"]);
  const opened: (string | null)[] = [];
  const proxy = await scripted((request, response) => {
    const target = `${server.url}${request.url}`;
    const isStream = request.headers.accept === "text/event-stream";
    if (isStream) opened.push(new URL(target).searchParams.get("after"));
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => name !== "host")) as Record<
      string,
      string
    >;
    void fetch(target, { headers: { ...headers, "accept-encoding": "identity", connection: "keep-alive" } }).then(
      async (answer) => {
        const names = ["content-type", "etag", "change-cursor", "x-request-id"];
        const kept = names.flatMap((name) => (answer.headers.has(name) ? [[name, answer.headers.get(name)!] as const] : []));
        response.writeHead(answer.status, Object.fromEntries(kept));
        if (!isStream) return response.end(await answer.text());
        for await (const piece of answer.body!) {
          const text = Buffer.from(piece).toString();
          response.write(text);
          if (text.includes("event: change")) {
            if (opened.length % 2 === 0) response.end('event: end\ndata: {"error":"the server is stopping"}\n\n');
            else response.socket!.destroySoon();
            return;
          }
        }
      },
    );
  });
  const { cfg, steps } = open(studio, key, { url: proxy.url });
  await cfg.ready();
  await until(cfg, live);
  for (let version = 2; version <= 4; version += 1) {
    await studio.owner.agents.update("support", { model: `m${version}` });
    await studio.owner.labels.set("support", "production", { version });
    assert.equal((await steps.next()).changed[0]?.to?.version, version);
  }
  assert.ok(opened.length > 3, `${opened.length} streams`);
  assert.equal(new Set(opened).size, opened.length, "each stream begins where the one before it ended");
});

test("a listener that fails disturbs neither the others nor the agents", async () => {
  const studio = await server.studio();
  const { key } = await studio.key();
  await studio.released(["support"]);
  const { cfg, errors, steps } = open(studio, key);
  await cfg.ready();
  const stop = cfg.onChange(() => {
    throw new Error("of the listener");
  });
  const last = new Inbox<SnapshotChange>();
  cfg.onChange((step) => last.put(step));
  for (const version of [2, 3]) {
    await studio.owner.agents.update("support", { model: `m${version}` });
    await studio.owner.labels.set("support", "production", { version });
    await steps.next();
    await last.next();
    stop();
  }
  assert.deepEqual(errors.map(String), ["Error: of the listener"]);
});

test("a promise of a listener, or of onError, that is rejected ends no program", async () => {
  const studio = await server.studio();
  const { key } = await studio.key();
  await studio.released(["support"]);
  const told = new Inbox<string>();
  const { cfg } = open(studio, key, {
    onError: (async (error: Error) => {
      told.put(String(error));
      throw new Error("of onError");
    }) as (error: Error) => void,
  });
  await cfg.ready();
  cfg.onChange(async () => {
    throw new Error("of the listener");
  });
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", note);
  try {
    await studio.owner.agents.update("support", { model: "m2" });
    await studio.owner.labels.set("support", "production", { version: 2 });
    assert.equal(await told.next(), "Error: of the listener");
    await new Promise((resolve) => setTimeout(resolve, 10));
  } finally {
    process.off("unhandledRejection", note);
  }
  assert.deepEqual(unhandled, []);
});

test("options that cannot be meant are refused", () => {
  const make = (options: object) => () => new AgentCfg({ url: "http://127.0.0.1:1", key: "k", ...options });
  assert.throws(make({ label: "Production" }), /label must be 1 to 36/);
  assert.throws(make({ label: "12" }), /label must be/);
  assert.throws(make({ workspace: "studio" }), /workspace must be a hyphenated UUID, got "studio"/);
  assert.throws(make({ url: "example.com" }), /must start with http/);
});

test("a program whose start failed ends", async () => {
  const studio = await server.studio();
  const { key: good } = await studio.key();
  const module = JSON.stringify(new URL("../src/agentcfg.js", import.meta.url).href);
  for (const [url, key] of [
    [studio.server.url, "svc_test_wrong"],
    ["http://127.0.0.1:1", good],
  ]) {
    const options = JSON.stringify({ url, key, label: "production" });
    const program = `import { AgentCfg } from ${module};
      await new AgentCfg(${options}).ready({ timeoutMs: 500 }).catch((error) => console.log(error.name));`;
    const { status, stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      encoding: "utf8",
      timeout: 10_000,
    });
    assert.deepEqual([status, stdout.endsWith("Error\n")], [0, true], stdout);
  }
});
