// What model calls cost: the figures, the chart and its key, budgets, the usage of one agent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, prepare, violations } from "./harness.mjs";
import { source } from "./source.mjs";

const stage = prepare();
const of = await source("base/usage", "spanOf", "seriesOf", "sum", "ticks", "onAxis", "money", "price", "brief", "change", "unpriced", "outlook", "outlookLine", "weekdays");

const { bandsOf, byVersion, usualPair } = await source("base/usage-versions", "bandsOf", "byVersion", "usualPair");

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOTHING = { calls: 1, errors: 0, input_tokens: 0, cached_input_tokens: 0, output_tokens: 0, unpriced_calls: 0, duration_ms: 0, first_byte_ms: 0, p95_ms: 1 };

/** A model call as an agent, by the session of a user. */
async function callModel(user, id, agent, more = "") {
  const answer = await stage.server.raw(user, "POST", `/api/agents/model-calls/anthropic/v1/messages?workspace_id=${id}&agent_id=${agent}${more}`, { max_tokens: 50, stream: true, messages: [{ role: "user", content: "Hello" }] });
  assert.equal(answer.status, 200);
  await answer.text();
}

/** Waits until the calls are in the sums. */
async function counted(user, id, calls) {
  for (let i = 0; i < 100; i += 1) {
    const [row] = await stage.server.call(user, "GET", `/api/usage?workspace_id=${id}`);
    if (row?.calls >= calls) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`${calls} calls are not in the usage`);
}

test("ranges, series, figures and the outlook of budgets follow from the rows", () => {
  const now = Date.parse("2026-11-22T14:20:00Z");
  const month = of.spanOf("30d", now);
  assert.deepEqual([month.unit, month.steps.length, new Date(month.from).toISOString(), new Date(month.to).toISOString()], ["day", 30, "2026-10-24T00:00:00.000Z", "2026-11-22T15:00:00.000Z"]);
  const day = of.spanOf("24h", now);
  assert.deepEqual([day.unit, day.steps.length, day.to - day.from], ["hour", 24, DAY]);
  const row = (agent, cost, more = {}) => ({ ...NOTHING, day: "2026-11-22", agent, cost_usd: String(cost), ...more });
  const rows = [..."abcdefg"].map((agent, i) => row(agent, i + 1));
  const series = of.seriesOf([...rows, row(null, 4, { other: true })], "agent", "cost", month);
  assert.deepEqual(series.map(({ id, total }) => [id, total]), [["g", 7], ["f", 6], ["e", 5], ["d", 4], ["c", 3], ["", 7]], "the rest is last, with what the server added up");
  assert.equal(series[0].values.at(-1), 7);
  assert.deepEqual(of.seriesOf(rows, "agent", "cost", month).at(-1).others, 2);
  const { calls, cost_usd, p95_ms } = of.sum(rows);
  assert.deepEqual([calls, Number(cost_usd), p95_ms], [7, 28, null], "a percentile of sums is not known");
  assert.deepEqual(of.ticks(19, 5), [0, 5, 10, 15, 20]);
  const axis = (most, metric) => of.ticks(most, 5, metric !== "cost").map((value) => of.onAxis(value, metric)).join(", ");
  assert.deepEqual([axis(3, "calls"), axis(1_240_000, "tokens"), axis(60_000, "tokens"), axis(1_240, "p95"), axis(0.0125, "cost"), axis(12, "cost")], ["0, 1, 2, 3", "0, 250 k, 500 k, 750 k, 1 M, 1.25 M", "0, 20 k, 40 k, 60 k", "0 s, 250 ms, 500 ms, 750 ms, 1 s, 1.25 s", "$0, 0.25 ¢, 0.5 ¢, 0.75 ¢, 1 ¢, 1.25 ¢", "$0, $2.50, $5, $7.50, $10, $12.50"]);
  for (let most = 0; most < 3_000; most += 1)
    for (const lines of [2, 4, 5]) {
      const counts = of.ticks(most, lines, true);
      assert.ok(counts.every(Number.isInteger) && counts.at(-1) >= most && counts.length <= 8, `${most}: ${counts}`);
    }
  assert.deepEqual([of.money(0), of.money(412.856), of.money(0.0031), of.price(0.0118), of.brief(1935), of.brief(38_200), of.brief(8_210_000)], ["$0.00", "$412.86", "0.31 ¢", "1.18 ¢", "1,935", "38.2 k", "8.2 M"]);
  assert.deepEqual([of.change(108, 100), of.change(63, 100), of.change(5, 0)], ["+8 %", "−37 %", null]);
  assert.equal(of.unpriced({ calls: 50, unpriced_calls: 6 }), "12 % of the calls have no price: their cost is not known.");
  const budget = (more) => ({ period: "month", limit_usd: "400", action: "refuse", spent_usd: "308.29", reserved_usd: "0", unsettled_usd: "0", resets_at: "2026-12-01T00:00:00Z", ...more });
  const look = of.outlook(budget(), now);
  assert.ok(Math.abs(look.end - 427) < 2 && look.tone === "warn" && new Date(look.over).getUTCDate() === 29, JSON.stringify(look));
  assert.match(of.outlookLine(budget({ action: "warn" }), look), /^Ends near \$42\d, over from /);
  assert.equal(of.outlook(budget({ spent_usd: "100", unsettled_usd: "300" }), now).tone, "bad", "what is not settled counts as used");
  assert.equal(of.outlook(budget({ period: "total", resets_at: null }), now).end, null, "a budget without an end has no outlook");
  // Weekends cost nothing: on a Sunday more of the month is left than its days say.
  const weights = of.weekdays([1, 2, 3, 4, 5].map((date) => ({ ...row("a", 10), day: `2026-11-${String(date + 8).padStart(2, "0")}` })), now);
  assert.equal(weights[0], 0);
  assert.ok(of.outlook(budget(), now, weights).end > look.end);
});

test("the versions of an agent are bands over time, and the last two are compared", () => {
  const move = (created_at, from, to) => ({ created_at, moves: [{ agent_id: "a", from, to }, { agent_id: "b", from: 1, to: 9 }] });
  const span = { from: Date.parse("2026-11-10T00:00:00Z"), to: Date.parse("2026-11-20T00:00:00Z") };
  const days = (bands) => bands.map(({ version, from, to }) => [version, new Date(from).getUTCDate(), new Date(to).getUTCDate()]);
  const moves = [move("2026-11-25T00:00:00Z", 5, 6), move("2026-11-15T00:00:00Z", 3, 5), move("2026-11-12T00:00:00Z", 2, 3), move("2026-11-01T00:00:00Z", null, 2)];
  assert.deepEqual(days(bandsOf(moves, [], span, "a")), [[2, 10, 12], [3, 12, 15], [5, 15, 20]]);
  assert.deepEqual(days(bandsOf([move("2026-11-15T00:00:00Z", null, 4)], [], span, "a")), [[null, 10, 15], [4, 15, 20]], "before the first move there was none");
  const created = [{ version: 2, created_at: "2026-11-18T00:00:00Z" }, { version: 1, created_at: "2026-11-02T00:00:00Z" }];
  assert.deepEqual(days(bandsOf([], created, span, "a")), [[1, 10, 18], [2, 18, 20]], "without a label the newest version counts");
  const row = (version, calls) => ({ ...NOTHING, version, calls, cost_usd: "1" });
  const rows = byVersion([row(3, 5), row(1, 90), row(2, 40), row(null, 7)]);
  assert.deepEqual(rows.map(({ version }) => version), [3, 2, 1]);
  assert.deepEqual(usualPair(rows), [1, 2], "three calls of the newest say little");
  assert.deepEqual(usualPair(byVersion([row(3, 5), row(2, 4)])), [2, 3]);
  assert.equal(usualPair(byVersion([row(3, 5)])), null);
});

test("the usage of an agent compares its versions and lists its calls", async () => {
  const { page, id } = await stage.studio("zoe");
  await page.show("agents/writer/usage");
  await page.getByRole("heading", { name: "No call as Writer in the last 30 days" }).waitFor();
  for (let i = 0; i < 2; i += 1) await callModel("zoe", id, "writer", "&label=production");
  await callModel("zoe", id, "writer");
  await callModel("zoe", id, "researcher");
  await counted("zoe", id, 4);
  await page.reload();
  await page.getByRole("img", { name: /^Cost of a call a day/ }).waitFor();
  const versions = page.getByRole("table", { name: "Versions" });
  await versions.getByRole("row", { name: /^v1 production since .* 2 0\.00 %/ }).waitFor();
  await versions.getByRole("row", { name: /^v2 – 1 0\.00 %/ }).waitFor();
  await page.getByText("v1 and v2 had fewer than 20 calls").waitFor();
  const bells = await page.locator(".dumbbell").count();
  assert.ok(bells > 3, `${bells}`);
  assert.deepEqual([await page.locator(".dumbbell.few").count(), await page.locator(".good-text, .warn-text").filter({ hasText: "%" }).count()], [bells, 0], "so few calls are no verdict");
  for (const delta of await page.locator(".delta").all()) assert.ok((await delta.boundingBox()).height < 24, await delta.innerText());
  await page.getByLabel("Before").selectOption("2");
  assert.match(page.url(), /[?&]a=2/);
  const calls = page.getByRole("table", { name: "Last calls" });
  assert.equal(await calls.getByRole("row").count(), 4, "the head and three calls");
  await calls.getByRole("row", { name: /v1 production zoe 200/ }).first().waitFor();
  await page.getByRole("group", { name: /^Cost of a call a day/ }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByText("No call", { exact: true }).waitFor();
  assert.deepEqual(await violations(page), []);
  page.faults();
});

test("before the first call the page says how to make one, then its figures are there", async () => {
  const { page, id } = await stage.studio("ulla");
  await page.show("usage");
  await page.getByRole("heading", { name: "No model call yet" }).waitFor();
  await page.getByRole("combobox", { name: "Tool" }).selectOption("Anthropic SDK, Python");
  await page.getByText("client.messages.create").waitFor();
  for (let i = 0; i < 3; i += 1) await callModel("ulla", id, "writer");
  await callModel("ulla", id, "support-triage");
  await counted("ulla", id, 4);
  await page.reload();
  const table = page.getByRole("table", { name: "Usage by agent" });
  await table.getByRole("row", { name: /Writer/ }).getByRole("cell", { name: "3", exact: true }).waitFor();
  await page.getByRole("button", { name: /^Calls\s*4/ }).click();
  const chart = page.getByRole("img", { name: /^Calls a day by agent/ });
  await chart.waitFor();
  assert.equal(await page.getByRole("table", { name: /^Calls, Today/ }).getByRole("row", { name: /^Writer 3 3$/ }).count(), 1);
  await page.getByRole("button", { name: "Model", exact: true }).click();
  await page.getByRole("table", { name: "Usage by model" }).waitFor();
  assert.match(page.url(), /by=model/);
  await page.getByRole("button", { name: "Key", exact: true }).click();
  await page.getByRole("table", { name: "Usage by key" }).getByText("Signed-in people").waitFor();
  await page.getByRole("button", { name: "Version", exact: true }).click();
  await page.getByRole("link", { name: "v2 of Writer" }).waitFor();
  await page.getByText("Show the numbers as a table").click();
  await page.getByRole("columnheader", { name: "v2 of Writer" }).waitFor();
  assert.deepEqual(await violations(page), []);
  page.faults();
});

test("budgets are there where the usage cannot be read", async () => {
  const { page, id } = await stage.studio("una");
  await stage.server.call("una", "PUT", `/api/budgets?workspace_id=${id}&scope=workspace&period=month`, { limit_usd: 10 });
  await page.route(/\/api\/usage\?/, (route) => route.fulfill({ status: 503, json: { error: "later" } }));
  page.expect(503, "/api/usage");
  await page.show("usage");
  await page.getByText("The usage could not be read.").waitFor();
  await page.locator(".budgets").getByText("of $10").waitFor();
  page.faults();
});

test("the point of the chart is moved by keyboard and read out", async () => {
  const { page } = await stage.studio("vera");
  const today = Math.floor(Date.now() / DAY) * DAY;
  const rows = (query) => {
    const by = (query.get("by") ?? "").split(",");
    const agents = by.includes("agent") ? ["writer", "researcher"] : [undefined];
    const days = by.includes("day") ? Array.from({ length: 30 }, (_, i) => new Date(today - (29 - i) * DAY).toISOString().slice(0, 10)) : [undefined];
    return days.flatMap((day, i) => agents.map((agent, j) => ({ ...NOTHING, ...(day && { day }), ...(agent && { agent }), calls: 100, cost_usd: String((i + 1) * (j + 1)) })));
  };
  await page.route(/\/api\/usage\?/, (route) => route.fulfill({ json: rows(new URL(route.request().url()).searchParams) }));
  await page.show("usage");
  const chart = page.getByRole("group", { name: /^Cost a day by agent/ });
  await chart.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  const key = page.getByRole("table", { name: /^Cost, / });
  await key.getByRole("row", { name: /^Researcher \$56\.00/ }).waitFor();
  await key.getByRole("row", { name: /^Writer \$28\.00/ }).waitFor();
  await page.keyboard.press("ArrowUp");
  await page.getByRole("status").filter({ hasText: /Researcher \$56\.00/ }).waitFor({ state: "attached" });
  await page.keyboard.press("t");
  await page.getByRole("columnheader", { name: "Day (UTC)" }).waitFor();
  page.faults();
});

test("a budget is set, changed and removed", async (context) => {
  if (!stage.needs(context, "/api/budgets")) return;
  const { page, id } = await stage.studio("wim");
  const budgets = () => stage.server.call("wim", "GET", `/api/budgets?workspace_id=${id}`);
  await callModel("wim", id, "writer");
  await counted("wim", id, 1);
  await page.show("usage");
  await page.getByRole("button", { name: "New budget" }).click();
  await page.getByLabel("Applies to").selectOption("agent");
  await page.getByRole("button", { name: "Set budget" }).click();
  await page.getByText("Choose one.").waitFor();
  await page.getByLabel("Agent", { exact: true }).selectOption("writer");
  await page.getByLabel("Limit in USD").fill("12.5");
  await page.getByRole("button", { name: "Set budget" }).click();
  await page.getByRole("img", { name: /^Writer: .* limit \$12\.50/ }).waitFor();
  assert.deepEqual((await budgets()).map(({ scope, scope_id, period, limit_usd, action }) => [scope, scope_id, period, Number(limit_usd), action]), [["agent", "writer", "month", 12.5, "refuse"]]);
  await page.getByRole("button", { name: "Actions for the budget of Writer this month" }).click();
  await page.getByRole("menuitem", { name: "Change budget" }).click();
  await page.getByLabel("Limit in USD").fill("20");
  await page.getByText("Only warn").click();
  await page.getByRole("button", { name: "Set budget" }).click();
  await page.getByRole("img", { name: /limit \$20\.00/ }).waitFor();
  assert.deepEqual((await budgets()).map(({ limit_usd, action }) => [Number(limit_usd), action]), [[20, "warn"]]);
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "Actions for the budget of Writer this month" }).click();
  await page.getByRole("menuitem", { name: "Remove budget" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove budget" }).click();
  await page.getByText("No budget yet").waitFor();
  assert.deepEqual(await budgets(), []);
  page.faults();
});

test("who may not manage budgets is not offered to", async () => {
  const { id } = await stage.studio("xena");
  await stage.server.call("xena", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=yara`, { role: "viewer" });
  const page = await open(stage.browser, stage.server);
  await page.signIn("yara");
  await page.show("usage");
  await page.getByRole("heading", { name: "No model call yet" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "New budget" }).count(), 0);
  page.faults();
});

test("large figures have their place in the strip on every window, on narrow ones in three rows", async () => {
  const { page, id } = await stage.studio("wilhelmine");
  await callModel("wilhelmine", id, "writer");
  await counted("wilhelmine", id, 1);
  await page.route(/\/api\/usage\?/, async (route) => {
    const answer = await route.fetch();
    const rows = (await answer.json()).map((row) => ({ ...row, calls: 9_876_543, input_tokens: 345_600_000, output_tokens: 123_400_000, cost_usd: "1234567.89", errors: 98_765 }));
    await route.fulfill({ response: answer, json: rows });
  });
  await page.show("usage");
  const strip = page.locator(".stats > *");
  await strip.filter({ hasText: "$1,234,567" }).waitFor();
  for (const width of [1920, 1280, 1024, 768, 390]) {
    await page.setViewportSize({ width, height: 900 });
    // The charts follow the width of the window in the next frames.
    await page.waitForFunction((width) => document.documentElement.scrollWidth === width, width);
    const cut = await strip.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent));
    assert.deepEqual(cut, [], String(width));
  }
  const rows = await strip.evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().top)));
  assert.deepEqual(rows.map((top) => [...new Set(rows)].indexOf(top)), [0, 0, 1, 2, 2]);
  page.faults();
});
