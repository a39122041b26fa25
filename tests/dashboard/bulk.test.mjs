// What people do with many agents at once: ticking, the plan of a change, one change of all, deletion with its failures.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { open, prepare, violations } from "./harness.mjs";

const stage = prepare();

const agentsOf = async (user, id) => Object.fromEntries((await stage.server.call(user, "GET", `/api/agents/configs?workspace_id=${id}`)).map((agent) => [agent.agent_id, agent]));
const revision = async (user, id) => (await stage.server.call(user, "GET", `/api/audit-log?workspace_id=${id}&limit=1`))[0].revision;
const bar = (page) => page.getByRole("group", { name: "Ticked agents" });

test("agents are ticked by keyboard, their model is changed in one commit after a plan, and a capability is added and removed", async () => {
  const { page, id } = await stage.studio("aino");
  await page.show("agents?sort=name");
  await page.getByRole("link", { name: "Code reviewer" }).focus();
  await page.keyboard.press("x");
  await bar(page).getByText("1 agent ticked").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.until(() => document.activeElement.textContent === "Fact checker");
  await page.keyboard.press("Shift+X");
  await bar(page).getByText("3 agents ticked").waitFor();
  assert.deepEqual(await violations(page), []);
  const before = await revision("aino", id);
  await bar(page).getByRole("button", { name: "Model" }).click();
  const dialog = page.getByRole("dialog", { name: "Change the model of 3 agents" });
  await dialog.getByLabel("Model").selectOption("claude-haiku-5-5");
  await dialog.getByText("3 agents would change.").waitFor();
  assert.match(await dialog.getByRole("table", { name: "What changes" }).innerText(), /Code reviewer[\s\S]*Model: gpt-5\.5 → claude-haiku-5-5/);
  await dialog.getByRole("button", { name: /Data analyst/ }).click();
  await dialog.getByText("gpt-5.5", { exact: true }).waitFor();
  assert.deepEqual(await violations(page), []);
  assert.equal(await revision("aino", id), before, "the plan changes nothing");
  await dialog.getByLabel("Message").fill("Cheaper");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await page.getByText("3 agents changed.").waitFor();
  let agents = await agentsOf("aino", id);
  assert.deepEqual(["code-reviewer", "data-analyst", "fact-checker", "writer"].map((name) => agents[name].model), ["claude-haiku-5-5", "claude-haiku-5-5", "claude-haiku-5-5", "claude-sonnet-5-5"]);
  assert.equal(await revision("aino", id), before + 1, "one commit");

  await bar(page).getByRole("button", { name: "Clear" }).click();
  await page.getByLabel("Tick Writer").check();
  await page.getByLabel("Tick Researcher").check();
  await bar(page).getByRole("button", { name: "Capability" }).click();
  const tags = page.getByRole("dialog");
  await tags.getByLabel("Capability", { exact: true }).fill("essays, drama");
  await tags.getByText("2 agents would change.").waitFor();
  await tags.getByRole("button", { name: "Apply" }).click();
  await page.getByText("2 agents changed.").waitFor();
  agents = await agentsOf("aino", id);
  assert.deepEqual([agents.writer.capabilities, agents.researcher.capabilities, agents.writer.parameters], [["long-form", "outlines", "essays", "drama"], ["essays", "drama"], { formality: 35, humour: 20, warmth: 0.7 }]);
  await bar(page).getByRole("button", { name: "Capability" }).click();
  await tags.getByText("Remove", { exact: true }).click();
  await tags.getByLabel("Capability", { exact: true }).fill("outlines");
  await tags.getByText("1 agent would change, 1 agent would stay as it is.").waitFor();
  await tags.getByRole("button", { name: "Apply" }).click();
  await page.getByText("1 agent changed.").waitFor();
  assert.deepEqual((await agentsOf("aino", id)).writer.capabilities, ["long-form", "essays", "drama"]);
  page.faults();
  await page.context().close();
});

test("a plan that is not true any more changes nothing, and is made again", async () => {
  const { page, id } = await stage.studio("bodil");
  await page.show("agents");
  await page.getByLabel("Tick Writer").check();
  await bar(page).getByRole("button", { name: "Model" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Model").selectOption("claude-haiku-5-5");
  await dialog.getByText("1 agent would change.").waitFor();
  // The page hears of nothing meanwhile.
  let first = true;
  await page.route(/\/api\/agents\/apply/, async (route) => {
    if (first) await stage.server.call("bodil", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { role: "Poet" });
    first = false;
    await route.continue();
  });
  page.expect(412, "/api/agents/apply");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.getByText("Look at what changes again.").waitFor();
  assert.deepEqual([(await agentsOf("bodil", id)).writer.role, (await agentsOf("bodil", id)).writer.model], ["Poet", "claude-sonnet-5-5"]);
  await dialog.getByText("1 agent would change.").waitFor();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await page.getByText("1 agent changed.").waitFor();
  assert.deepEqual([(await agentsOf("bodil", id)).writer.role, (await agentsOf("bodil", id)).writer.model], ["Poet", "claude-haiku-5-5"]);
  page.faults();
  await page.context().close();
});

test("ticked agents are exported, labelled in the review, and deleted, with the failures named", async () => {
  const { page, id } = await stage.studio("ditte");
  await page.show("agents?q=er");
  await page.getByLabel(/^Tick all/).check();
  const loading = page.waitForEvent("download");
  await bar(page).getByRole("button", { name: "Export" }).click();
  const exported = JSON.parse(await readFile(await (await loading).path(), "utf8")).agents;
  const shown = exported.map(({ agent_id }) => agent_id);
  assert.ok(shown.includes("writer") && !shown.includes("onboarding"), shown.join());
  const plan = await stage.server.call("ditte", "POST", `/api/agents/apply?workspace_id=${id}&dry_run=true`, { agents: exported });
  assert.deepEqual([...new Set(plan.results.map(({ action }) => action))], ["none"], "what is exported is what is stored");
  await bar(page).getByRole("button", { name: "Clear" }).click();
  await page.getByLabel("Tick Researcher").check();
  await page.getByLabel("Tick Writer").check();
  await bar(page).getByRole("button", { name: "Label" }).click();
  await page.getByRole("heading", { level: 1, name: "Promote latest to production on 2 agents" }).waitFor();
  await page.goBack();
  await page.getByLabel("Tick Researcher").check();
  await page.getByLabel("Tick Writer").check();
  await bar(page).getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete 2 agents?" });
  await page.route(/api\/agents\/configs\?agent_id=researcher/, (route) => (route.request().method() === "DELETE" ? route.fulfill({ status: 503, json: { error: "storage is unavailable" } }) : route.continue()));
  page.expect(503, "/api/agents/configs");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await dialog.getByText("Researcher is not deleted: Storage is unavailable.").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  const left = await agentsOf("ditte", id);
  assert.deepEqual([left.writer, left.researcher?.agent_id], [undefined, "researcher"]);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Writer is restored.").waitFor();
  page.faults();
  await page.context().close();
});

test("a viewer can export and change nothing, and 10,000 agents can be ticked", async () => {
  const { page, id } = await stage.studio("elin");
  await stage.server.call("elin", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=gast`, { role: "viewer" });
  const viewer = await open(stage.browser, stage.server);
  await viewer.signIn("gast");
  await viewer.show("agents");
  await viewer.getByLabel("Tick Writer").check();
  assert.deepEqual(await bar(viewer).getByRole("button").allInnerTexts(), ["Clear", "Export"]);
  await viewer.context().close();
  const stored = Object.values(await agentsOf("elin", id))[0];
  const many = Array.from({ length: 10_000 }, (_, i) => ({ ...stored, id: `${stored.id}${i}`, agent_id: `agent-${i}`, display_name: `Agent ${i}` }));
  await page.route(/api\/agents\/configs\?workspace_id=[^&]*$/, (route) => route.fulfill({ json: many }));
  await page.show("agents");
  await page.getByText("Agent 12", { exact: true }).waitFor();
  const start = Date.now();
  await page.getByLabel("Tick all 10,000").check();
  await bar(page).getByText("10,000 agents ticked At most 1,000 change at once.").waitFor();
  assert.ok(Date.now() - start < 5_000, `ticking all took ${Date.now() - start} ms`);
  assert.equal(await bar(page).getByRole("button", { name: "Model" }).getAttribute("aria-disabled"), "true");
  await page.context().close();
});
