// Where things stay: the focus, the scroll place, the rows of a table, the steps of the history.
import assert from "node:assert/strict";
import { test } from "node:test";
import { launch, open, prepare, receiver, fill, Server } from "./harness.mjs";

const stage = prepare();

const dialog = (page) => page.getByRole("dialog");
const onHeading = (page, level = 1) => page.until((tag) => document.activeElement?.tagName === tag, `H${level}`);

test("the focus stays on the page when what had it is gone", async () => {
  const { page, id } = await stage.studio("jorun");
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  await page.show("agents/writer");
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByLabel("Role").fill("Essayist");
  await page.getByRole("button", { name: "Discard" }).click();
  await onHeading(page);
  await page.getByRole("button", { name: "Undo" }).click();
  await onHeading(page);
  await stage.server.call("jorun", "PATCH", writer, { role: "Poet" });
  await page.getByRole("button", { name: "Compare" }).click();
  await onHeading(page, 2);
  await page.locator("label", { hasText: "Mine" }).click();
  await page.getByRole("button", { name: /^Save/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  await onHeading(page);

  await page.show("ai-providers");
  await page.getByRole("button", { name: "Replace key" }).click();
  await page.until(() => document.activeElement?.getAttribute("type") === "password");
  await page.getByRole("button", { name: "Cancel" }).click();
  await onHeading(page);

  await page.show("members");
  await page.getByRole("button", { name: "Remove mira" }).click();
  await dialog(page).getByRole("button", { name: "Remove member" }).click();
  await page.getByText("mira is removed.").waitFor();
  await page.getByRole("button", { name: "Remove mira" }).waitFor({ state: "detached" });
  await onHeading(page);
  page.faults();
});

test("after a dialog the field that had the focus takes what is typed", async () => {
  const { page } = await stage.studio("jytte");
  const types = async (field, text, opens, closes) => {
    const before = await field.inputValue();
    await field.focus();
    await page.keyboard.press("End");
    await page.keyboard.type(text);
    await page.keyboard.press(opens);
    await dialog(page).waitFor();
    await page.keyboard.press(closes);
    await dialog(page).waitFor({ state: "detached" });
    await page.keyboard.type("+");
    assert.equal(await field.inputValue(), `${before}${text}+`, `${opens}, ${closes}`);
  };
  await page.show("agents/writer");
  await types(page.getByLabel("Role"), "a", "Control+k", "Escape");
  await types(page.getByLabel("Description"), "b", "Control+s", "Escape");
  await types(page.getByLabel("Description"), "c", "Control+s", "Control+s");
  await page.getByText(/Writer is saved/).waitFor();
  await page.show("agents");
  await types(page.getByLabel("Filter agents"), "Wri", "Control+k", "Escape");
  page.faults();
});

test("going back keeps the place in the table, and the first stop is the skip link", async () => {
  const { page, id } = await stage.studio("kaja");
  for (let i = 0; i < 14; i += 1) await stage.server.call("kaja", "POST", "/api/agents/configs", { workspace_id: id, agent_id: `many-${i}`, display_name: `Many ${i}` });
  await page.show("agents?sort=name");
  await page.getByRole("link", { name: "Many 9", exact: true }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await page.setViewportSize({ width: 1280, height: 320 });
  await page.evaluate(() => scrollTo(0, 600));
  await page.getByRole("link", { name: "Many 7", exact: true }).hover();
  const place = await page.evaluate(() => scrollY);
  assert.ok(place > 400, String(place));
  await page.getByRole("link", { name: "Many 7", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Many 7" }).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "Many 7", exact: true }).waitFor();
  await page.until((place) => Math.abs(scrollY - place) < 5, place);
  page.faults();
});

test("what waits for the pointer moves no row, and is shown on demand", async () => {
  const { page, id } = await stage.studio("liva");
  await page.show("agents?sort=name");
  await page.getByText("Live", { exact: true }).waitFor();
  const row = page.getByRole("row", { name: /Writer/ });
  await row.hover();
  const before = await row.boundingBox();
  await stage.server.call("liva", "POST", "/api/agents/configs", { workspace_id: id, agent_id: "aardvark", display_name: "Aardvark" });
  const show = page.getByRole("button", { name: "1 change, show" });
  await show.waitFor();
  assert.deepEqual(await row.boundingBox(), before);
  await show.click();
  await page.getByRole("row", { name: /Aardvark/ }).waitFor();
  page.faults();
});

test("a dialog that was closed leaves no step in the history", async () => {
  const { page } = await stage.studio("magni");
  await page.show("overview");
  await page.getByRole("link", { name: "API keys" }).first().click();
  await page.getByRole("button", { name: "Create key" }).click();
  await dialog(page).getByRole("button", { name: "Cancel" }).click();
  await dialog(page).waitFor({ state: "detached" });
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  page.faults();
});

test("the id of a deleted agent leads to it, ids of members have no spaces around, and Enter creates", async () => {
  const { page, id } = await stage.studio("nils");
  await page.show("agents");
  await page.getByRole("link", { name: "New agent" }).click();
  // The name has the focus at once.
  await page.until(() => document.activeElement.labels?.[0]?.textContent === "Display name");
  await page.keyboard.type("Newsletter");
  page.expect(409, "/api/agents/configs");
  await page.keyboard.press("Enter");
  await page.getByText("The id newsletter is taken by a deleted agent, which can be restored.").waitFor();
  await page.getByRole("link", { name: "the agent" }).click();
  await page.getByText("This agent is deleted.").waitFor();

  await page.show("members?new=1");
  await dialog(page).getByLabel("User id").fill(" tor ");
  await page.keyboard.press("Enter");
  await page.getByText("tor is a member.").waitFor();
  const members = await stage.server.call("nils", "GET", `/api/workspaces/members?workspace_id=${id}`);
  assert.ok(members.some(({ user_id }) => user_id === "tor"));
  page.faults();
});

test("a name from right to left turns no sentence around", async () => {
  const { page, id } = await stage.studio("oda");
  await stage.server.call("oda", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=researcher`, { display_name: "باحث" });
  await page.show("agents/researcher");
  const heading = await page.locator("h1").evaluate((h1) => {
    const range = document.createRange();
    range.selectNodeContents(h1);
    return range.getBoundingClientRect().left - h1.getBoundingClientRect().left;
  });
  assert.ok(heading < 2, `the name begins ${heading} px from its place`);
  await page.getByLabel("Role").fill("Desk");
  await page.getByRole("button", { name: "Review changes" }).click();
  await dialog(page).getByRole("button", { name: /^Save/ }).click();
  const said = page.locator(".toast span", { hasText: "is saved" });
  assert.equal(await said.evaluate((text) => getComputedStyle(text).direction), "ltr");
  page.faults();
});

test("a long id does not make a narrow page scroll sideways", async () => {
  const { page, id } = await stage.studio("ragnfrid");
  const agent_id = "x".repeat(50);
  await stage.server.call("ragnfrid", "POST", "/api/agents/configs", { workspace_id: id, agent_id, display_name: "Long id" });
  await page.setViewportSize({ width: 390, height: 800 });
  await page.show(`agents/${agent_id}`);
  await page.getByLabel("Persona prompt").waitFor();
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  page.faults();
});

test("versions that there are not are not offered, and a model that nothing has stays chosen", async () => {
  const { page, id } = await stage.studio("pia");
  let release;
  const shown = new Promise((resolve) => (release = resolve));
  await page.route("**/api/agents/versions?*", async (route) => {
    await shown;
    await route.continue();
  });
  const asked = page.waitForRequest(/api\/agents\/versions\?/);
  await page.show("agents/writer/history?from=99");
  await asked;
  // The list comes last: nothing may ask for the version before it says that there is none.
  release();
  await page.getByText("Softer, and shorter outlines").waitFor();
  await page.getByText("There is no v99.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Roll back to v99" }).count(), 0);
  assert.equal(await page.getByLabel("From", { exact: true }).inputValue(), "1");
  await page.show("agents?model=claude-opus-5-5");
  await page.getByRole("row", { name: /Researcher/ }).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await stage.server.call("pia", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=researcher`, { model: "gpt-5.5" });
  await page.getByText("No agent matches this filter.").waitFor();
  assert.equal(await page.getByLabel("Model").inputValue(), "claude-opus-5-5");
  page.faults();
});

test("the list of webhooks follows their deliveries, and a failed one can be read", { timeout: 60_000 }, async (context) => {
  const hooks = await receiver();
  const server = await Server.start({ AGENTCFG_WEBHOOK_ALLOWED_HOSTS: hooks.host });
  const browser = await launch();
  context.after(async () => {
    await browser.close();
    await server.stop();
    hooks.stop();
  });
  const { id } = await fill(server, "ragni");
  const hook = await server.call("ragni", "POST", "/api/webhooks", { workspace_id: id, url: `http://${hooks.host}/failing` });
  const page = await open(browser, server);
  await page.signIn("ragni");
  await page.show("webhooks");
  await page.getByText("Enabled", { exact: true }).waitFor();
  await server.call("ragni", "POST", `/api/webhooks/test?webhook_id=${hook.id}`);
  await page.getByText("Failing", { exact: true }).waitFor({ timeout: 20_000 });
  await page.getByRole("link", { name: hooks.host }).click();
  await page.getByRole("button", { expanded: false, name: /test/ }).first().click();
  await page.locator("tr.detail").getByText("not today").waitFor();
  page.faults();
});
