import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { AgentCfg } from "../src/index.js";
import type { StatusReport } from "../src/generated.js";
import { StatusScopes } from "../src/status-scope.js";
import { scripted, Server } from "./server.js";

/** Scopes whose time passes when the test says so. */
function scopes() {
  const reports: string[] = [];
  const timers = new Set<() => void>();
  const clock = {
    now: () => 0,
    random: () => 0,
    sleep: (_: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        timers.add(resolve);
        signal?.addEventListener("abort", () => resolve());
      }),
  };
  const report = async (agentId: string, { status, current_task_title }: StatusReport) => {
    reports.push([agentId, status, current_task_title].filter(Boolean).join(" "));
  };
  const pass = async () => {
    for (const timer of timers) timer();
    timers.clear();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const made = new StatusScopes(clock, report, (error) => reports.push(String(error)));
  return { scopes: made, reports, pass };
}

test("a report is repeated while the work lasts, and the agent is idle after it", async () => {
  const { scopes: made, reports, pass } = scopes();
  const result = await made.run("a", { working: "Answer" }, async () => {
    await pass();
    await pass();
    return 7;
  });
  assert.equal(result, 7);
  assert.deepEqual(reports, ["a working Answer", "a working Answer", "a working Answer", "a idle"]);
});

test("work that overlaps leaves what still runs", async () => {
  const { scopes: made, reports } = scopes();
  let endOuter = () => {};
  const outer = made.run("a", { working: "Outer" }, () => new Promise<void>((resolve) => (endOuter = resolve)));
  await made.run("a", { working: "Inner" }, async () => await new Promise((resolve) => setImmediate(resolve)));
  await made.run("b", { working: "Other" }, async () => await new Promise((resolve) => setImmediate(resolve)));
  endOuter();
  await outer;
  assert.deepEqual(reports.filter((report) => report.startsWith("a")).slice(-3), [
    "a working Inner",
    "a working Outer",
    "a idle",
  ]);
});

test("work that fails is idle after it, and its error comes through", async () => {
  const { scopes: made, reports } = scopes();
  await assert.rejects(
    made.run("a", { working: "Answer" }, () => Promise.reject(new Error("of the work"))),
    /of the work/,
  );
  assert.equal(reports.at(-1), "a idle");
});

test("a report that hangs holds no work up, and those that wait for it are one", { timeout: 10_000 }, async () => {
  const begun: string[] = [];
  let allow = () => {};
  const allowed = new Promise<void>((resolve) => (allow = resolve));
  // The patience at the end passes at once.
  const clock = {
    now: () => 0,
    random: () => 0,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => (ms < 10_000 ? resolve() : signal?.addEventListener("abort", () => resolve()))),
  };
  const made = new StatusScopes(
    clock,
    async (_, { status }) => {
      begun.push(status);
      await allowed;
    },
    () => {},
  );
  for (let count = 0; count < 5; count += 1) await made.run("a", { working: "Answer" }, () => {});
  assert.equal(begun.length, 1);
  allow();
  await made.run("a", { working: "Answer" }, () => {});
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(begun.length <= 4 && begun.at(-1) === "idle", begun.join());
});

test("a report is sent once", async () => {
  let count = 0;
  const { url } = await scripted(({ url }, response) => {
    if (url!.startsWith("/api/agents/status")) count += 1;
    response.writeHead(429, { "retry-after": "0" }).end("{}");
  });
  const workspace = "018f2d7c-0000-7000-8000-000000000001";
  const cfg = new AgentCfg({ url, key: "k", workspace, onError: () => {} });
  await cfg.reportStatus("a", { working: "Answer" }, () => {});
  await cfg.close();
  assert.ok(count === 1 || count === 2, `${count} reports`);
});

test("the server shows the work, and a report that fails disturbs nothing", async () => {
  const studio = await (await Server.start()).studio();
  await studio.released(["support"]);
  const { key } = await studio.key();
  const errors: Error[] = [];
  const cfg = new AgentCfg({ url: studio.server.url, key, onError: (error) => errors.push(error) });
  const shown = async () =>
    (await cfg.api.status.list()).map((entry) => [entry.status, entry.current_task_id, entry.current_task_title]);
  const during = await cfg.reportStatus("support", { working: "Answer ticket 7", task: "T-7" }, async () => {
    for (;;) {
      const entries = await shown();
      if (entries[0]?.[0] === "working") return entries;
    }
  });
  assert.deepEqual(during, [["working", "T-7", "Answer ticket 7"]]);
  assert.deepEqual(await shown(), [["idle", null, null]]);
  assert.equal(await cfg.reportStatus("nothing", { working: "x" }, () => "done"), "done");
  assert.deepEqual(
    errors.map((error) => error.name),
    ["NotFoundError", "NotFoundError"],
  );
  await cfg.close();
});

test("a close ends the requests that the client has sent by itself", { timeout: 10_000 }, async () => {
  const workspace = "018f2d7c-0000-7000-8000-000000000001";
  for (const [options, path] of [
    [{}, "/api/whoami"],
    [{ workspace }, "/api/agents/released"],
  ] as const) {
    const aborted: Promise<string>[] = [];
    const errors: Error[] = [];
    let begin = () => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const cfg = new AgentCfg({
      url: "http://agents.example.com",
      key: "k",
      ...options,
      onError: (error) => errors.push(error),
      fetch: (input, init) =>
        new Promise((_, reject) => {
          const { signal } = init!;
          const ended = new Promise<void>((resolve) => signal!.addEventListener("abort", () => resolve()));
          void ended.then(() => reject(signal!.reason as Error));
          aborted.push(ended.then(() => new URL(String(input)).pathname));
          if (aborted.length === 2) begin();
        }),
    });
    let finish = () => {};
    const report = cfg.reportStatus("a", { working: "Answer" }, () => new Promise<void>((resolve) => (finish = resolve)));
    await begun;
    await cfg.close();
    assert.deepEqual((await Promise.all(aborted)).sort(), [path, "/api/agents/status"].sort());
    finish();
    await report;
    assert.deepEqual(errors, []);
  }
});

test("a read repeats its question for the workspace, whatever the one of the agents does", { timeout: 10_000 }, async () => {
  const waiting: ServerResponse[] = [];
  let count = 0;
  const { url } = await scripted((request, response) => {
    if (request.url !== "/api/whoami") return response.end("[]");
    count += 1;
    const workspaces = [{ id: "018f2d7c-0000-7000-8000-000000000001" }];
    // The first two are those of the agents and of the read.
    if (count > 2) return response.end(JSON.stringify({ workspaces }));
    waiting.push(response);
    if (count === 2) for (const first of waiting) first.writeHead(502).end();
  });
  const cfg = new AgentCfg({ url, key: "k", onError: () => {} });
  assert.deepEqual((await cfg.api.changes.read("now")).events, []);
  await cfg.close();
});
