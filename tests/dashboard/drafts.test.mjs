// Drafts of agents are kept in the browser: they survive a reload, for one user, and never longer than seven days.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, prepare } from "./harness.mjs";

const stage = prepare();

const stored = (page) => page.evaluate(() => Object.entries(localStorage).filter(([name]) => name.startsWith("agentcfg draft ")));

test("a draft survives a reload, and can be thrown away", async () => {
  const { page } = await stage.studio("aina");
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Typed before the reload");
  await page.getByLabel("Persona prompt").fill("One line\nand another one");
  // It is stored, so nothing is asked.
  assert.equal(await page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true }))), false);
  await page.reload();
  await page.getByText("Draft restored.").waitFor();
  assert.match(await page.locator(".banner").innerText(), /You typed it today at \d\d:\d\d, from v2 on/);
  assert.equal(await page.getByLabel("Role").inputValue(), "Typed before the reload");
  assert.equal(await page.getByLabel("Persona prompt").inputValue(), "One line\nand another one");
  await page.getByText("2 unsaved changes").waitFor();

  // What is typed on top of it is kept, too, and the draft is no restored one any more.
  await page.getByLabel("Role").fill("Typed after it");
  await page.getByText("Draft restored.").waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("button", { name: "Throw it away" }).click();
  await page.getByText("Draft restored.").waitFor({ state: "detached" });
  assert.equal(await page.getByLabel("Role").inputValue(), "Long-form writer");
  assert.deepEqual(await stored(page), []);
  await page.getByRole("button", { name: "Undo" }).click();
  assert.equal(await page.getByLabel("Role").inputValue(), "Typed after it");
  await page.reload();
  await page.getByText("Draft restored.").waitFor();
  page.faults();
});

test("a restored draft is saved against the version that it began with", async () => {
  const { page, id } = await stage.studio("birte");
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  await stage.server.call("birte", "PATCH", writer, { definition: { tools: [], seed: 1 } });
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Mine");
  await page.reload();
  await page.getByText("Draft restored.").waitFor();
  await stage.server.call("birte", "PATCH", writer, { role: "Theirs" });
  await page.getByText("Writer changed while you were editing.").waitFor();
  await page.getByRole("button", { name: "Compare" }).click();
  await page.locator("label", { hasText: "Mine" }).click();
  // The decisions of a merge survive as well.
  await page.reload();
  await page.getByText("1 of 1 conflict decided").waitFor();
  await page.getByRole("button", { name: "Save as v5" }).click();
  await page.getByText("Writer is saved as v5.").waitFor();
  assert.deepEqual(await stored(page), []);
  const [{ role, definition }] = await stage.server.call("birte", "GET", writer);
  assert.deepEqual([role, definition], ["Mine", { tools: [], seed: 1 }]);
  page.faults();
});

test("no secret is stored, a sign-out removes the drafts, and those of others are not shown", async () => {
  const { page, id } = await stage.studio("clara");
  await stage.server.call("clara", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=dorte`, { role: "admin" });
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Of clara");
  await page.getByRole("link", { name: "AI providers" }).click();
  await page.getByRole("button", { name: "Replace key" }).click();
  await page.locator("input[type=password]").first().fill("sk-ant-typed-and-secret");
  assert.equal(await page.evaluate(() => JSON.stringify({ ...localStorage }).includes("sk-ant")), false);
  assert.equal((await stored(page)).length, 1);
  // Another user of this browser, in whose session the draft is not one.
  const other = await page.context().newPage();
  await other.goto(stage.server.url);
  await other.evaluate((token) => fetch("/api/sessions", { method: "POST", headers: { Authorization: `Bearer ${token}` } }), stage.server.token("dorte"));
  await page.show("agents/writer");
  await page.getByRole("button", { name: "dorte", exact: true }).waitFor();
  assert.equal(await page.getByText("Draft restored.").count(), 0);
  assert.equal(await page.getByLabel("Role").inputValue(), "Long-form writer");
  await other.evaluate((token) => fetch("/api/sessions", { method: "POST", headers: { Authorization: `Bearer ${token}` } }), stage.server.token("clara"));
  await page.show("agents/writer");
  await page.getByText("Draft restored.").waitFor();
  await page.getByRole("button", { name: "clara", exact: true }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("dialog").getByText("Your unsaved text is discarded.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Session token").waitFor();
  assert.deepEqual(await stored(page), []);
});

test("a draft is kept for seven days, and one that cannot be read does no harm", async () => {
  const { page } = await stage.studio("elin");
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Typed long ago");
  const age = (days) =>
    page.evaluate((days) => {
      const [name] = Object.keys(localStorage).filter((name) => name.startsWith("agentcfg draft "));
      localStorage.setItem(name, localStorage.getItem(name).replace(/^\d+/, String(Date.now() - days * 86_400_000)));
    }, days);
  await age(6.9);
  await page.reload();
  await page.getByText("Draft restored.").waitFor();
  await age(7.1);
  await page.reload();
  await page.getByLabel("Role").waitFor();
  assert.equal(await page.getByLabel("Role").inputValue(), "Long-form writer");
  assert.deepEqual(await stored(page), []);
  await page.getByLabel("Role").fill("Cut in two");
  await page.evaluate(() => {
    const [name] = Object.keys(localStorage).filter((name) => name.startsWith("agentcfg draft "));
    localStorage.setItem(name, localStorage.getItem(name).slice(0, -20));
  });
  await page.reload();
  await page.getByLabel("Role").waitFor();
  assert.equal(await page.getByLabel("Role").inputValue(), "Long-form writer");
  page.faults();
});

test("a member who is taken out while editing keeps the text, and goes on when added again", { timeout: 90_000 }, async () => {
  const { page: owner, id } = await stage.studio("gro");
  const member = (method, body) => stage.server.call("gro", method, `/api/workspaces/members?workspace_id=${id}&user_id=hedvig`, body);
  await member("PUT", { role: "member" });
  const page = await open(stage.browser, stage.server);
  await page.signIn("hedvig");
  await page.show("agents/writer");
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByLabel("Role").fill("Typed by a member");
  for (const path of ["changes", "models", "agents/configs", "agents/status", "agents/versions", "agents/labels"]) page.expect(403, `/api/${path}`);
  for (const path of ["changes", "models", "agents/configs", "agents/status", "agents/versions", "agents/labels"]) page.expect(404, `/api/${path}`);
  await member("DELETE");
  await page.getByText("Your unsaved text is kept.").waitFor();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy Writer" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())).role, "Typed by a member");
  await member("PUT", { role: "member" });
  await page.getByLabel("Role").waitFor();
  assert.equal(await page.getByLabel("Role").inputValue(), "Typed by a member");
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  owner.faults();
  page.faults();
});
