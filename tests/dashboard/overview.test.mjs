// The overview: what needs attention, what today costs, what goes on, and what changed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, prepare, violations } from "./harness.mjs";
import { source } from "./source.mjs";

const stage = prepare();
const { attention, statesAt } = await source("base/attention", "attention", "statesAt");
const { fullHours, lanesOf } = await source("base/lanes", "fullHours", "lanesOf");

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

test("what needs attention follows from what is read, broken things first", () => {
  const now = Date.parse("2026-11-22T14:00:00Z");
  const ago = (length) => new Date(now - length).toISOString();
  const agent = (agent_id, model) => ({ agent_id, display_name: agent_id.toUpperCase(), agent_type: "ai", model, updated_at: ago(DAY) });
  const nothing = { now, webhooks: [], budgets: [], agents: [], models: [], changes: [], keys: [] };
  assert.deepEqual(attention(nothing), []);
  const budget = (used, action) => ({ name: "Writer", budget: { id: `${used}`, action, period: "month" }, look: { used, spent: used * 100, limit: 100, end: null, over: null } });
  const working = (at, task) => ({ agent_id: "a", at: ago(at), status: "working", current_task_id: task, current_task_title: task });
  const points = attention({
    ...nothing,
    webhooks: [{ id: "1", url: "https://example.com/in", enabled: false, disabled_reason: "gone", updated_at: ago(3 * DAY) }, { id: "2", url: "https://example.com/off", enabled: false, disabled_reason: null, updated_at: ago(DAY) }],
    budgets: [budget(0.79, "refuse"), budget(0.92, "refuse"), budget(1.1, "refuse"), budget(1.2, "warn")],
    agents: [agent("a", "x"), agent("b", "x"), agent("c", "y")],
    models: [{ id: "x", provider: "openai", credential: "none" }, { id: "y", provider: "anthropic", credential: "managed" }],
    changes: [working(9 * HOUR, "t"), { ...working(6 * HOUR, "u") }, working(2 * HOUR, "u"), { ...working(8 * HOUR, "v"), agent_id: "c" }, { agent_id: "c", at: ago(HOUR), status: "idle", current_task_id: null, current_task_title: null }],
    keys: [{ id: "k", name: "ci", expires_at: new Date(now + 3 * DAY).toISOString(), last_used_at: null }, { id: "l", name: "later", expires_at: new Date(now + 20 * DAY).toISOString(), last_used_at: null }],
  });
  assert.deepEqual(points.map(({ tone, before = "", name, after }) => `${tone}: ${before}${name}${after}`), [
    "bad: Writer has used 110 % of its budget",
    "bad: Webhook example.com/in is disabled",
    "warn: Writer has used 120 % of its budget",
    "warn: Writer has used 92 % of its budget",
    "warn: A is on the same task for 6 h",
    "warn: 2 agents have no key for OpenAI",
    "warn: Key ci expires in 3 days",
  ]);
});

test("a plan without a place for one more agent needs attention, until one is deleted", async () => {
  const { page } = await stage.studio("tora");
  let left = 0;
  await page.route(/\/api\/whoami/, async (route) => {
    const answer = await route.fetch();
    const who = await answer.json();
    await route.fulfill({ response: answer, json: { ...who, workspaces: who.workspaces.map((one) => ({ ...one, agent_limit: one.active_agents + left })) } });
  });
  await page.show("overview");
  const row = page.locator(".attention li", { hasText: "All 10 agents of the Pro plan are in use" });
  await row.getByText("Delete one, or ask an operator for a larger plan.").waitFor();
  assert.deepEqual(await violations(page), []);
  await row.getByRole("link", { name: "Open agents" }).click();
  await page.getByRole("heading", { level: 1, name: "Agents" }).waitFor();
  left = 1;
  await page.show("overview");
  await page.locator(".attention li").first().waitFor();
  assert.equal(await row.count(), 0);
  page.faults();
});

test("the states of a day are counted from the changes", () => {
  const change = (agent_id, at, status) => ({ agent_id, at: new Date(at).toISOString(), status, current_task_id: null, current_task_title: null });
  const { working, idle } = statesAt([change("a", 10, "working"), change("b", 20, "offline"), change("a", 30, "idle")], [5, 10, 25, 35]);
  assert.deepEqual([working, idle], [[0, 1, 1, 0], [1, 1, 0, 1]], "what ended in the time was there before");
});

test("what was before the first kept change of a busy agent is not known", () => {
  const change = (agent_id, at, status, task = null) => ({ agent_id, at: new Date(at).toISOString(), status, current_task_id: task, current_task_title: task });
  const busy = (count) => Array.from({ length: count }, (_, i) => change("a", 500 + i, i % 2 ? "idle" : "working", String(i)));
  const seen = (count) => statesAt([change("b", 10, "working"), ...busy(count)], [5, 100, 600]);
  assert.deepEqual(seen(287), { working: [0, 1, 2], idle: [0, 0, 0], unknown: [0, 0, 0] });
  assert.deepEqual(seen(288).unknown, [1, 1, 0]);
  assert.deepEqual([lanesOf(busy(288), 100, 1_000).get("a").unknown, lanesOf(busy(288), 600, 1_000).get("a").unknown, lanesOf(busy(287), 100, 1_000).get("a").unknown], [500, undefined, undefined]);
});

test("the lanes of a timeline are the changes of each agent, and reports of the same task are one block", () => {
  const change = (agent_id, at, status, task = null) => ({ agent_id, at: new Date(at).toISOString(), status, current_task_id: task, current_task_title: task });
  const changes = [change("a", 0, "working", "t"), change("a", 10, "working", "t"), change("a", 20, "idle"), change("b", 25, "working", "u"), change("a", 40, "working", "v")];
  const lanes = lanesOf(changes, 10, 50);
  assert.deepEqual(lanes.get("a").blocks.map(({ status, from, to, id }) => [status, from, to, id]), [["working", 10, 20, "t"], ["idle", 20, 40, null], ["working", 40, 50, "v"]]);
  assert.deepEqual([lanes.get("a").worked, lanes.get("a").tasks, lanes.get("b").worked], [20, 2, 25]);
});

test("times of charts are full hours", () => {
  const at = (hours, minutes = 0) => new Date(2026, 10, 22, hours, minutes).getTime();
  const hours = (found) => found.map((time) => `${new Date(time).getHours()}:${new Date(time).getMinutes()}`);
  assert.deepEqual(hours(fullHours(at(-3, 46), at(20, 46))), ["0:0", "4:0", "8:0", "12:0", "16:0", "20:0"]);
  assert.deepEqual(hours(fullHours(at(14, 20), at(20, 20), 4)), ["16:0", "18:0", "20:0"]);
  assert.deepEqual(hours(fullHours(at(14, 20), at(14, 50))), []);
  assert.deepEqual(hours(fullHours(at(14, 20), at(14, 20))), [], "a server has just begun");
  assert.deepEqual(hours(fullHours(at(14, 20), at(12, 10))), []);
});

test("the timeline shows what agents did, and names each block by keyboard", async () => {
  const { page, id } = await stage.studio("quinn");
  await stage.server.call("quinn", "PUT", `/api/agents/status?workspace_id=${id}&agent_id=writer`, { status: "idle" });
  await page.show("status?view=timeline");
  await page.getByRole("heading", { level: 2, name: "Working" }).waitFor();
  const lane = page.getByRole("group", { name: /^Writer: .*1 task/ });
  await lane.focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("status").filter({ hasText: /^Writer: idle, / }).waitFor();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("status").filter({ hasText: /^Writer: Draft the autumn release post, .* task-2291$/ }).waitFor();
  await page.getByRole("button", { name: "6 h" }).click();
  assert.match(page.url(), /hours=6/);
  assert.deepEqual(await violations(page), []);
  page.faults();
});

test("where there are too many agents for a timeline, the page says so", async () => {
  const { page } = await stage.studio("runa");
  await page.route(/\/api\/agents\/configs\?/, async (route) => {
    const answer = await route.fetch();
    const [stored] = await answer.json();
    await route.fulfill({ response: answer, json: Array.from({ length: 1_001 }, (_, i) => ({ ...stored, id: `${stored.id}${i}`, agent_id: `agent-${i}` })) });
  });
  await page.show("status");
  await page.getByText("There is a timeline for up to 1,000 agents.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Timeline" }).count(), 0);
  // An address of the timeline shows the board.
  await page.show("status?view=timeline");
  await page.getByText("There is a timeline for up to 1,000 agents.").waitFor();
  await page.getByRole("region", { name: "Offline" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Board" }).getAttribute("aria-pressed"), "true");
  page.faults();
});

test("an agent that reports the same since the server began has a lane from then on", async () => {
  const { page } = await stage.studio("rasmus");
  const hours = 3;
  const since = new Date(Date.now() - hours * 3_600_000).toISOString();
  await page.route(/\/api\/agents\/status\/history/, async (route) => {
    const answer = await route.fetch();
    const changes = (await answer.json()).filter(({ agent_id }) => !["writer", "support-triage"].includes(agent_id));
    await route.fulfill({ response: answer, json: changes, headers: { ...answer.headers(), "history-since": since } });
  });
  await page.show("status?view=timeline");
  const lane = page.getByRole("group", { name: `Writer: ${hours} h · 1 task.` });
  await lane.focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("status").filter({ hasText: /^Writer: Draft the autumn release post, .*, 3 h, task-2291$/ }).waitFor();
  await page.getByRole("group", { name: "Support triage: No work." }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("status").filter({ hasText: /^Support triage: idle, .*, 3 h$/ }).waitFor();
  // What is offline has no report, and what has changed since has its own beginning.
  await page.getByRole("group", { name: "Onboarding guide: No work." }).focus();
  await page.keyboard.press("ArrowLeft");
  assert.equal(await page.getByRole("status").filter({ hasText: /^Onboarding guide/ }).count(), 0);
  await page.getByRole("group", { name: /^Researcher: \d+ (s|min) · 1 task/ }).waitFor();
  assert.deepEqual(await violations(page), []);
  page.faults();
});

test("the overview names what needs attention, and it goes when it is cured", async () => {
  const { page, id } = await stage.studio("ottilie");
  await page.show("overview");
  const item = (text) => page.locator(".attention li").filter({ hasText: text });
  await item("Key ci-deploy expires in 3 days").waitFor();
  await item("4 agents have no key for OpenAI").waitFor();
  await page.locator(".figure").filter({ hasText: /working\s*2 idle\s*5 offline/ }).waitFor();
  await stage.server.call("ottilie", "PUT", `/api/provider-keys?workspace_id=${id}&provider=openai`, { api_key: "sk-of-the-tests" });
  await item("OpenAI").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Rotate ci-deploy" }).click();
  await page.getByRole("dialog").getByRole("heading", { name: "Rotate ci-deploy?" }).waitFor();
  await page.keyboard.press("Escape");
  const releases = page.locator("section").filter({ has: page.getByRole("heading", { name: "Last releases" }) });
  await releases.getByRole("link", { name: "ottilie moved production on 1 agent" }).click();
  await page.getByRole("heading", { level: 1, name: "Releases" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "Changes a day" }).waitFor();
  await page.getByRole("img", { name: /^Changes a day/ }).waitFor();
  assert.deepEqual(await violations(page), []);
  page.faults();
});

test("a new workspace is led through its first steps, and what today costs is there after a call", async () => {
  await stage.server.workspace("petra", "New");
  const page = await open(stage.browser, stage.server);
  await page.signIn("petra");
  await page.getByText("0 of 7 done").waitFor();
  await page.getByText("Nothing needs you.").waitFor();
  await page.getByText("no call yet").waitFor();
  await page.getByRole("link", { name: "Create: Create an agent" }).click();
  await page.getByRole("heading", { level: 1, name: "New agent" }).waitFor();
  page.faults();
});

test("the bands of the day are named, and the unknown hours of a busy agent are hatched", async () => {
  const { page, id } = await stage.studio("sigge");
  const ago = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();
  await page.route(/\/api\/agents\/status\/history/, async (route) => {
    const answer = await route.fetch();
    const busy = Array.from({ length: 288 }, (_, i) => ({ agent_id: "writer", at: ago(300 - i), status: i % 2 ? "working" : "idle", current_task_id: String(i), current_task_title: null }));
    await route.fulfill({ response: answer, json: [{ ...busy[0], agent_id: "mira", at: ago(1_000) }, ...busy], headers: { ...answer.headers(), "history-since": ago(1_500) } });
  });
  await page.show("overview");
  const day = page.locator("section").filter({ has: page.getByRole("heading", { name: "Last 24 hours" }) });
  // The line above names them, with a swatch each; nothing is written over what is drawn.
  await day.locator(".figure .offline").filter({ hasText: /^\d+ offline$/ }).waitFor();
  assert.equal(await day.locator("svg text").getByText(/working|idle|offline/).count(), 0);
  const swatch = (name) => day.locator(`.figure .${name}`).evaluate((one) => getComputedStyle(one, "::before").width);
  assert.deepEqual([await swatch("working"), await swatch("idle")], ["16px", "16px"]);
  assert.ok(await day.locator("path[fill='url(#hatch)']").count(), "its time before is hatched");
  await day.getByRole("group").focus();
  await page.keyboard.press("Home");
  await day.locator(".figure").getByText("1 unknown").waitFor();
  await page.show("status?view=timeline");
  await page.locator(".lane .unknown").waitFor();
  assert.equal(await page.locator(".lane .unknown").count(), 1);
  await page.getByRole("group", { name: /^Writer: ≥ / }).waitFor();
  await page.getByText("not kept").waitFor();
  assert.deepEqual(await violations(page), []);
  page.faults();
});

test("the last changes name what was changed", async () => {
  const { page, id } = await stage.studio("torun");
  await page.setViewportSize({ width: 1440, height: 900 });
  await stage.server.call("torun", "PUT", `/api/agents/labels?workspace_id=${id}&agent_id=fact-checker&label=production`, { version: 1 });
  await page.show("overview");
  const card = page.locator("section").filter({ has: page.getByRole("heading", { name: "Last changes" }) });
  const name = card.getByRole("link", { name: "Fact checker" });
  await name.first().waitFor();
  for (const one of await name.all()) {
    const [own, box] = await one.evaluate((link) => [link, link.closest("li")].map((element) => element.getBoundingClientRect().toJSON()));
    const around = await one.evaluate((link) => link.parentElement.getBoundingClientRect().toJSON());
    assert.ok(own.right <= around.right + 1 && own.bottom <= around.bottom + 1 && own.bottom <= box.bottom, JSON.stringify([own, around]));
  }
  page.faults();
});
