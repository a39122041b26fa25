// The audit log of a workspace whose agents are changed by the thousand, on windows of each width.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, Server, violations } from "./harness.mjs";
import { source } from "./source.mjs";

const MANY = 1_000;
const LIMIT = 100;

let browser;
let server;
let id;

before(async () => {
  browser = await launch();
  server = await Server.start({ AGENTCFG_DEFAULT_PLAN: "enterprise" });
  id = await server.workspace("ada", "Many");
  const agents = Array.from({ length: MANY }, (_, i) => ({ agent_id: `agent-${i}`, display_name: `Agent ${i}`, persona_prompt: `You are ${i}.\nSay so.` }));
  const apply = (agents, message) => server.call("ada", "POST", `/api/agents/apply?workspace_id=${id}&message=${encodeURIComponent(message)}`, { agents });
  await apply(agents, "The first set");
  const next = agents.slice(0, 12).map((agent) => ({ ...agent, role: "Changed", persona_prompt: `${agent.persona_prompt}\nBe brief.` }));
  await apply([...next, ...[1, 2].map((i) => ({ agent_id: `late-${i}`, display_name: `Late ${i}` }))], "Shorter answers");
  for (let i = 0; i < 6; i += 1) await server.call("ada", "PUT", `/api/agents/labels?workspace_id=${id}&agent_id=agent-${i}&label=staging`, { version: 1 });
  await server.call("ada", "POST", `/api/agents/labels/promote?workspace_id=${id}`, { from: "latest", to: "staging", agent_ids: Array.from({ length: 6 }, (_, i) => `agent-${i}`) });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const signedIn = async (options) => {
  const page = await open(browser, server, options);
  await page.signIn("ada");
  return page;
};

test("a promotion is told by its label, and a threshold by what is used", async () => {
  const { changeLine } = await source("base/audit-words", "changeLine");
  const to = (value) => ({ from: null, to: value });
  const promoted = { "agents/writer/labels/production": { from: 1, to: 3 }, "agents/researcher/labels/production": to(2) };
  assert.equal(changeLine({ action: "label.promoted", changes: promoted }), "production: 2 agents");
  assert.equal(changeLine({ action: "agents.applied", changes: { "agents/writer/role": to("x") } }), "writer", "few agents are named");
  const threshold = { threshold: to(80), scope: to("agent"), scope_id: to("writer"), period: to("month"), limit_usd: to("7.25"), spent_usd: to("5.81") };
  assert.equal(changeLine({ action: "budget.threshold_reached", changes: threshold }), "80 % of $7.25 used");
});

test("a thousand agents are one line, which opens at once", async () => {
  const page = await signedIn();
  await page.show("audit-log?action=agents.applied");
  const row = page.getByRole("row", { name: /1,000 agents created/ });
  await row.waitFor();
  assert.match(await page.locator(".audit-table tbody").innerText(), /14 agents: 2 created and 12 updated/);
  // The fastest of three: another program may hold up one of them.
  const times = [];
  for (let turn = 1; turn <= 3; turn += 1) {
    const took = await row.evaluate(async (row) => {
      const began = performance.now();
      row.querySelector("button").click();
      while (!document.querySelector(".of-agents li")) await new Promise((resolve) => setTimeout(resolve));
      return performance.now() - began;
    });
    times.push(took);
    if (turn === 3) break;
    await row.getByRole("button").first().click();
    await page.locator(".of-agents li").first().waitFor({ state: "detached" });
  }
  assert.ok(Math.min(...times) < LIMIT, `${times} ms`);
  const detail = page.locator("tr.detail");
  assert.match(await detail.innerText(), /^“The first set”\s+1,000 agents created\s+/);
  assert.equal(await detail.locator("li").count(), 20);
  await detail.getByRole("button", { name: "980 more agents, show" }).click();
  assert.equal(await detail.locator("li").count(), 70);
  await detail.getByRole("button", { name: "Changes of Agent 10", exact: true }).click();
  await detail.getByText("You are 10.").waitFor();
  await detail.getByRole("link", { name: "Agent 10", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Agent 10" }).waitFor();
  page.faults();
});

test("an agent of several has its own differences, and a promotion its versions", async () => {
  const page = await signedIn();
  await page.show("audit-log");
  await page.getByRole("row", { name: /14 agents: 2 created and 12 updated/ }).getByRole("button").click();
  const detail = page.locator("tr.detail");
  await detail.getByRole("heading", { name: "2 agents created" }).waitFor();
  await detail.getByRole("heading", { name: "12 agents updated" }).waitFor();
  const updated = detail.getByRole("listitem").filter({ hasText: "Agent 7" });
  assert.match(await updated.innerText(), /Persona prompt and Role: Changed/);
  await updated.getByRole("button", { name: "Changes of Agent 7" }).click();
  await updated.locator("ins", { hasText: "Changed" }).waitFor();
  await updated.getByText("Be brief.").waitFor();
  await updated.getByRole("button", { name: "Changes of Agent 7" }).click();
  await updated.getByText("Be brief.").waitFor({ state: "detached" });

  await page.getByRole("row", { name: /label\.promoted/ }).getByRole("button").click();
  await detail.getByRole("heading", { name: "6 agents moved" }).waitFor();
  assert.match(await detail.getByRole("listitem").first().innerText(), /staging: v1 → v2/);
  assert.match(await page.getByRole("row", { name: /label\.promoted/ }).innerText(), /staging: 6 agents/);

  // What an entry is about is a link.
  await page.getByRole("row", { name: /label\.set/ }).first().getByRole("link", { name: "Agent 5" }).click();
  await page.getByRole("heading", { level: 1, name: "Agent 5" }).waitFor();
  page.faults();
});

for (const width of [390, 768]) {
  test(`nothing of the log is cut at ${width} pixels`, async () => {
    const page = await signedIn({ viewport: { width, height: 844 } });
    await page.show("audit-log");
    await page.getByRole("button", { name: /^\d\d:\d\d:\d\d/ }).nth(7).click();
    // Which agent it is says more than who changed it, which is in the details.
    assert.ok(await page.locator(".audit-table td a", { hasText: "Agent 5" }).first().isVisible());
    const detail = page.locator("tr.detail");
    await detail.getByText(/^ada · \w+ /).waitFor();
    await detail.getByRole("button", { name: "Changes of Agent 0", exact: true }).click();
    await detail.getByText("Be brief.", { exact: false }).waitFor();
    const cut = await page.evaluate(() => {
      const seen = (element) => element.checkVisibility() && !element.closest(".hidden");
      const found = [...document.querySelectorAll("main td, main th, main code, main a, main button, main .clip, main p, main h3")].filter((element) => seen(element) && element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== "inline" && getComputedStyle(element).overflowX !== "visible");
      const out = [...document.querySelectorAll("main *")].filter((element) => seen(element) && element.getBoundingClientRect().right > innerWidth + 1);
      return [...found, ...out].map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 60)}`);
    });
    assert.deepEqual(cut, []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    // The bar, which stays in sight, would cover a part of some links.
    await page.evaluate(() => scrollTo(0, 0));
    assert.deepEqual((await violations(page)).map(({ id }) => id), []);
    page.faults();
  });
}
