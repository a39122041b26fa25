// What a screen reads: once, and of a large workspace no more than it shows.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, Server } from "./harness.mjs";

const MANY = 10_000;
const AT_ONCE = 1_000;

let browser;
let server;
let id;

before(async () => {
  browser = await launch();
  server = await Server.start({ AGENTCFG_DEFAULT_PLAN: "enterprise" });
  id = await server.workspace("ada", "Large");
  for (let from = 0; from < MANY; from += AT_ONCE) {
    const agents = Array.from({ length: AT_ONCE }, (_, i) => ({ agent_id: `agent-${from + i}`, display_name: `Agent ${from + i}`, persona_prompt: `You are ${from + i}.` }));
    await server.call("ada", "POST", `/api/agents/apply?workspace_id=${id}`, { agents });
  }
  await server.call("ada", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=agent-7`, { role: "Seventh" });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** A page with a list of what it has read, as it is read. */
const counted = async (prepare = () => undefined) => {
  const page = await open(browser, server);
  await page.signIn("ada");
  await page.goto("about:blank");
  await prepare(page);
  const read = [];
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.startsWith("/api/") && request.method() === "GET") read.push(pathname + search);
  });
  return { page, read };
};

const settled = async (page) => {
  await page.getByText("Live", { exact: true }).waitFor();
  await page.waitForLoadState("load");
  // Longer than the pause after which changes are gathered and read.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
};

const twice = (read) => read.filter((path, i) => read.indexOf(path) !== i);

for (const path of ["overview", "agents", "releases", "audit-log"]) {
  test(`${path} reads nothing twice, also where the stream of changes opens`, { timeout: 120_000 }, async () => {
    const { page, read } = await counted();
    await page.show(path);
    await settled(page);
    assert.ok(read.some((one) => one.startsWith("/api/changes?")), "the stream is open");
    assert.deepEqual(twice(read), []);
    page.faults();
  });
}

test("the overview of ten thousand agents reads summaries of the log, and says what changed", { timeout: 120_000 }, async () => {
  const { page, read } = await counted();
  const sizes = [];
  page.on("response", async (answer) => answer.url().includes("/api/audit-log?") && sizes.push((await answer.body()).length));
  await page.show("overview");
  await page.getByText("Agent 7", { exact: true }).waitFor();
  await page.getByText(/applied a set of agents\s+· agent-\d+, agent-\d+, agent-\d+ and more/).first().waitFor();
  await page.getByText(/changed\s+Agent 7\s+· Role/).waitFor();
  await settled(page);
  const log = read.filter((one) => one.startsWith("/api/audit-log?"));
  assert.ok(log.length > 1 && log.every((one) => one.includes("view=summary")), log.join("\n"));
  assert.ok(Math.max(...sizes) < 100_000, String(sizes));
  page.faults();
});

test("a change is read once it is told, and nothing else is", { timeout: 120_000 }, async () => {
  const { page, read } = await counted();
  await page.show("agents?q=agent-77");
  await settled(page);
  read.length = 0;
  await server.call("ada", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=agent-77`, { model: "gpt-5.5" });
  await page.getByRole("row", { name: /^.*Agent 77 agent-77 .*gpt-5\.5/ }).waitFor();
  await settled(page);
  assert.deepEqual(twice(read), []);
  assert.deepEqual(read.filter((one) => /webhooks|api-keys|models|members/.test(one)), []);
  page.faults();
});

test("a stream that opens late makes what was read before it be read again", { timeout: 120_000 }, async () => {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  const { page, read } = await counted((page) => page.route("**/api/changes?*", (route) => opened.then(() => route.continue())));
  await page.show("agents?q=agent-88");
  // Nothing waits for a stream that does not come.
  await page.getByRole("link", { name: "Agent 88", exact: true }).waitFor();
  await server.call("ada", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=agent-88`, { model: "gpt-5.5" });
  read.length = 0;
  open();
  await page.getByRole("row", { name: /Agent 88 agent-88 .*gpt-5\.5/ }).waitFor();
  assert.ok(read.some((one) => one.startsWith("/api/agents/configs?")));
  page.faults();
});
