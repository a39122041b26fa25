// What the list of agents says of each: who needs a person, what its calls cost, and who changed it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare, violations } from "./harness.mjs";

const stage = prepare();
const HOUR = 3_600_000;

const names = (page) => page.locator("[data-name]").allInnerTexts();
const chips = (page) => page.getByRole("group", { name: "Needs attention" });

test("chips filter the agents that need a person, and each one says how many there are", async () => {
  const { page, id } = await stage.studio("sunniva");
  await stage.server.call("sunniva", "PUT", `/api/budgets?workspace_id=${id}&scope=agent&scope_id=translator-de&period=month`, { limit_usd: 10 });
  await page.route(/\/api\/budgets\?/, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: (await answer.json()).map((budget) => ({ ...budget, spent_usd: "9.5" })) });
  });
  const at = new Date(Date.now() - 5 * HOUR).toISOString();
  const change = { agent_id: "researcher", at, status: "working", current_task_id: "t", current_task_title: "For long" };
  await page.route(/\/api\/agents\/status\/history/, (route) => route.fulfill({ json: [change] }));
  await page.show("agents");
  const chip = (name) => chips(page).getByRole("button", { name, exact: true });
  for (const [name, found] of [
    ["Production behind 1", ["Writer"]],
    ["Budget above 80 % 1", ["Translator DE"]],
    ["Same task for long 1", ["Researcher"]],
    ["No provider key 4", ["Code reviewer", "Fact checker", "Release notes", "Data analyst"]],
    ["Never reported 5", ["Code reviewer", "Translator DE", "Release notes", "Data analyst", "Onboarding guide"]],
  ]) {
    await chip(name).click();
    await page.until((count) => document.querySelectorAll("[data-name]").length === count, found.length);
    assert.deepEqual((await names(page)).sort(), [...found].sort(), name);
    assert.equal(await chip(name).getAttribute("aria-pressed"), "true");
  }
  assert.match(page.url(), /need=silent/);
  await page.getByText("10 of 25 active agents on Pro, 5 shown").waitFor();
  // Filters hold together; one that is pressed again ends, by the keyboard too.
  await page.getByRole("searchbox").fill("translator");
  await page.until(() => document.querySelectorAll("[data-name]").length === 1);
  await chip("Never reported 5").press("Enter");
  assert.doesNotMatch(page.url(), /need=/);
  await page.goBack();
  await page.getByRole("searchbox").fill("nothing like this");
  await page.getByRole("button", { name: "Clear filter" }).click();
  await page.until(() => document.querySelectorAll("[data-name]").length === 10);

  // A need that ends leaves its chip while it is pressed, so that the way back stays in sight.
  await chip("Production behind 1").click();
  await stage.server.call("sunniva", "PUT", `/api/agents/labels?workspace_id=${id}&agent_id=writer&label=production`, { version: 2 });
  await chip("Production behind 0").waitFor();
  await page.mouse.move(5, 5);
  await page.getByText("No agent matches this filter.").waitFor();
  await chip("Production behind 0").click();
  await chip("Production behind 0").waitFor({ state: "detached" });
  await page.getByRole("button", { name: /^Deleted/ }).click();
  await page.getByRole("row", { name: /Newsletter/ }).waitFor();
  assert.equal(await chips(page).count(), 0);
  // The filter of a chip is none of deleted agents.
  await page.show("agents?show=deleted&need=silent");
  await page.getByRole("row", { name: /Newsletter/ }).waitFor();
  page.faults();
});

test("the navigation counts the agents on which the release is behind", async () => {
  const { page, id } = await stage.studio("torborg");
  await page.show("members");
  const releases = page.getByRole("navigation").getByRole("link", { name: /^Releases/ });
  await page.getByRole("navigation").getByRole("link", { name: "Releases 1 behind" }).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await stage.server.call("torborg", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=researcher`, { role: "Another" });
  assert.equal((await releases.innerText()).replace(/\s+/g, " "), "Releases 1 behind", "an agent without the label is not behind");
  await stage.server.call("torborg", "PUT", `/api/agents/labels?workspace_id=${id}&agent_id=researcher&label=production`, { version: 1 });
  await page.getByRole("navigation").getByRole("link", { name: "Releases 2 behind" }).waitFor();
  await stage.server.call("torborg", "POST", `/api/agents/labels/promote?workspace_id=${id}`, { from: "latest", to: "production", agent_ids: ["writer", "researcher"] });
  await page.getByRole("navigation").getByRole("link", { name: "Releases", exact: true }).waitFor();
  page.faults();
});

test("who may not read the usage sees no column of costs", async () => {
  const { page } = await stage.studio("valdis");
  await page.route(/\/api\/whoami/, async (route) => {
    const answer = await route.fetch();
    const who = await answer.json();
    const workspaces = who.workspaces.map((one) => ({ ...one, permissions: one.permissions.filter((name) => name !== "analytics:read") }));
    await route.fulfill({ response: answer, json: { ...who, workspaces } });
  });
  await page.show("agents");
  await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
  assert.deepEqual(await page.locator("th:visible").allInnerTexts(), ["Agent", "Model", "Status", "Version", "Changed"]);
  assert.equal(await page.locator("tbody tr").first().locator("td:visible").count(), 5);
  page.faults();
});

test("the list has the cost of a week, the role, and who changed an agent, where there is room for them", async () => {
  const { page } = await stage.studio("ulvhild");
  await page.route(/\/api\/usage\?/, async (route) => {
    const url = new URL(route.request().url());
    if (url.searchParams.get("by") !== "agent") return route.continue();
    const row = { calls: 2, errors: 0, input_tokens: 1, cached_input_tokens: 0, output_tokens: 1, unpriced_calls: 0, duration_ms: 1, first_byte_ms: 1, p95_ms: 1 };
    return route.fulfill({ json: [{ ...row, agent: "fact-checker", cost_usd: "12.5" }, { ...row, agent: "writer", cost_usd: "3.25" }] });
  });
  await page.setViewportSize({ width: 1920, height: 900 });
  await page.show("agents");
  await page.getByRole("row", { name: /Fact checker.*Checks every claim.*\$12\.50.* · ulvhild/ }).waitFor();
  await page.getByRole("row", { name: /Support triage.* · pipeline/ }).waitFor();
  await page.getByRole("button", { name: "Cost, 7 days" }).click();
  assert.deepEqual((await names(page)).slice(0, 2), ["Fact checker", "Writer"]);
  assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "descending", "the dearest comes first");
  await page.getByRole("button", { name: "Role" }).click();
  assert.deepEqual((await names(page)).slice(0, 1), ["Fact checker"]);
  for (const [width, columns] of [
    [1920, ["Agent", "Role", "Model", "Status", "Version", "Cost, 7 days", "Changed"]],
    [1440, ["Agent", "Model", "Status", "Version", "Cost, 7 days", "Changed"]],
    [768, ["Agent", "Model", "Status", "Changed"]],
    [390, ["Agent", "Status"]],
  ]) {
    await page.setViewportSize({ width, height: 900 });
    assert.deepEqual(await page.locator("th:visible").allInnerTexts(), columns, String(width));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `nothing is beside the window of ${width}`);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violations(page), [], `${width} ${colorScheme}`);
    }
  }
  page.faults();
});

test("agents are found by a tag, which the address keeps", async () => {
  const { page } = await stage.studio("tekla");
  await page.show("agents");
  await page.getByRole("link", { name: "Researcher", exact: true }).waitFor();
  await page.getByRole("combobox", { name: "Tag" }).selectOption("outlines");
  await page.getByRole("link", { name: "Researcher", exact: true }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
  assert.equal(new URL(page.url()).searchParams.get("tag"), "outlines");
  await page.show("agents?tag=nobody-has-it");
  await page.getByRole("button", { name: "Clear filter" }).click();
  await page.getByRole("link", { name: "Researcher", exact: true }).waitFor();
  page.faults();
});
