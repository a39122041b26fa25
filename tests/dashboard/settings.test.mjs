// API keys, provider keys, members, the audit log, webhooks, and the workspace itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, prepare, violations } from "./harness.mjs";

const stage = prepare();

test("a key is created by keyboard alone, shown once, and copied without the clipboard API", async () => {
  const { page, id } = await stage.studio("karin");
  await page.addInitScript(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await page.show("api-keys");
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const focus = (name) => page.until((text) => document.activeElement?.textContent.trim() === text, name);
  await page.getByRole("heading", { level: 1 }).focus();
  await press("Tab");
  await focus("Create key");
  await press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("night-train");
  await press("Tab", "ArrowRight", "Tab", "ArrowRight");
  await page.getByText("Reads, creates and changes agents").waitFor();
  await press("Tab", "Tab");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("250");
  await press("Enter");
  await page.getByRole("heading", { name: "Copy your new key now" }).waitFor();
  const key = await page.locator("[data-secret]").innerText();
  assert.match(key, /^svc_test_[0-9A-Za-z]{69}$/);
  await focus("Copy");

  const done = page.getByRole("button", { name: "Done" });
  assert.equal(await done.getAttribute("aria-disabled"), "true");
  await press("Escape", "Escape");
  await page.mouse.click(5, 5);
  await page.goBack();
  assert.ok(await page.locator("[data-secret]").isVisible(), "the key is still shown");
  await page.getByText("Not copied yet").waitFor();
  await page.locator(".secret button").focus();
  await press("Enter");
  await page.locator("dialog").getByText("Copied", { exact: true }).waitFor();
  await page.evaluate(() => {
    const box = Object.assign(document.createElement("textarea"), { id: "pasted" });
    document.querySelector("dialog").append(box);
    box.focus();
  });
  await page.keyboard.press("Control+V");
  assert.equal(await page.locator("#pasted").inputValue(), key);
  await page.evaluate(() => document.getElementById("pasted").remove());
  await done.focus();
  await press("Enter");
  await page.locator("dialog").waitFor({ state: "detached" });

  const traces = await page.evaluate(() => document.documentElement.outerHTML + document.title + location.href + JSON.stringify(history.state) + JSON.stringify({ ...localStorage, ...sessionStorage }));
  assert.ok(!traces.includes(key) && !traces.includes(key.slice(29)), "the key is nowhere in the page");
  const [made] = (await stage.server.call("karin", "GET", `/api/api-keys?workspace_id=${id}`)).filter(({ name }) => name === "night-train");
  assert.deepEqual([made.environment, made.scope, made.rate_limit], ["development", "write", 250]);
  assert.ok(Math.abs(Date.parse(made.expires_at) - Date.now() - 90 * 86_400_000) < 600_000);
  assert.equal((await stage.server.raw(key, "GET", `/api/agents/configs?workspace_id=${id}`)).status, 200);
  page.faults();
});

test("copying that fails is not called done", async () => {
  const { page } = await stage.studio("lars");
  await page.addInitScript(() => {
    Object.defineProperty(navigator, "clipboard", { value: { writeText: () => Promise.reject(new Error("refused")) } });
    document.execCommand = () => false;
  });
  await page.show("api-keys?new=1");
  await page.getByLabel("Name").fill("unlucky");
  await page.getByRole("button", { name: "Create key" }).last().click();
  await page.locator(".secret button").click();
  await page.getByText("Copying failed. It is selected: press Ctrl+C.").waitFor();
  const key = await page.locator("[data-secret]").innerText();
  assert.equal(await page.evaluate(() => getSelection().toString()), key);
  assert.equal(await page.getByRole("button", { name: "Done" }).getAttribute("aria-disabled"), "true");
  await page.getByLabel("I have stored the key in a safe place").check();
  await page.getByRole("button", { name: "Done" }).click();
  await page.locator("dialog").waitFor({ state: "detached" });
  page.faults();
});

test("a key in use is revoked only after its name is typed, and rotated with an overlap", async () => {
  const { page, id, keys } = await stage.studio("sigrid");
  const status = async (key) => (await stage.server.raw(key, "GET", `/api/agents/configs?workspace_id=${id}`)).status;
  await page.show("api-keys");
  const menu = async (name, item) => {
    await page.getByRole("button", { name: `Actions for ${name}` }).click();
    await page.getByRole("menuitem", { name: item }).click();
  };
  await menu("ci-deploy", "Rotate key");
  await page.getByLabel("Keep the old one working for").selectOption("3600");
  await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click();
  await page.getByRole("heading", { name: "Copy your new key now" }).waitFor();
  const rotated = await page.locator("[data-secret]").innerText();
  assert.deepEqual([await status(keys["ci-deploy"].key), await status(rotated)], [200, 200]);
  await page.locator(".facts").getByText("The old key ends").waitFor();
  await page.getByLabel("I have stored the key in a safe place").check();
  await page.getByRole("button", { name: "Done" }).click();
  // Both have one name: the one that ends says so, and is not rotated once more.
  await page.getByRole("row", { name: /ci-deploy/ }).nth(1).waitFor();
  assert.deepEqual((await page.getByRole("row", { name: /ci-deploy/ }).allInnerTexts()).map((text) => text.includes("Replaced")), [false, true]);

  const [listed] = (await stage.server.call("sigrid", "GET", `/api/api-keys?workspace_id=${id}`)).filter(({ name }) => name === "analytics-read");
  assert.equal(listed.last_used_at, null);
  await menu("analytics-read", "Revoke key");
  await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
  await page.getByText("analytics-read is revoked.").waitFor();
  assert.equal(await status(keys["analytics-read"].key), 401);

  // The last use of a key may lag, so the page is shown what the stage.server will answer a minute later.
  // Each reading is: the feed makes the page read again when its stream opens.
  await page.route("**/api/api-keys?workspace_id=*", async (route) => {
    const answer = await route.fetch();
    const all = (await answer.json()).map((key) => (key.name === "pipeline" ? { ...key, last_used_at: new Date(Date.now() - 7_200_000).toISOString() } : key));
    await route.fulfill({ response: answer, json: all });
  });
  await page.show("api-keys");
  await menu("pipeline", "Revoke key");
  const button = page.getByRole("dialog").getByRole("button", { name: "Revoke key" });
  await page.getByLabel("It was last used 2 h ago. Type pipeline to revoke it.").fill("pipelin");
  assert.equal(await button.getAttribute("aria-disabled"), "true");
  await page.keyboard.type("e");
  await button.click();
  await page.getByText("pipeline is revoked.").waitFor();
  await page.unrouteAll({ behavior: "wait" });
  assert.equal(await status(keys.pipeline.key), 401);
  page.faults();
});

test("a provider key is saved, pays, and is never shown; the plan gates it", async () => {
  const { page, id } = await stage.studio("petra");
  await page.show("ai-providers");
  await page.getByLabel("Your OpenAI key").fill("sk-canary-of-the-dashboard");
  await page.getByRole("button", { name: "Save key" }).click();
  await page.getByText("Your OpenAI key is saved.").waitFor();
  await page.getByRole("row", { name: /GPT-5.4 mini/ }).getByText("Your key").waitFor();
  assert.ok(!(await page.content()).includes("sk-canary"));
  await page.getByRole("region", { name: "OpenAI" }).getByRole("button", { name: "Delete key" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete key" }).click();
  await page.getByText("Your OpenAI key is deleted.").waitFor();

  await page.route("**/api/whoami", async (route) => {
    const answer = await route.fetch();
    const me = await answer.json();
    me.workspaces = me.workspaces.map((workspace) => ({ ...workspace, plan: "free" }));
    await route.fulfill({ response: answer, json: me });
  });
  await page.show("ai-providers");
  await page.getByText("Your own provider keys need Pro, Team or Enterprise.").waitFor();
  // No model of this catalogue is paid with a managed key.
  assert.equal(await page.getByText("managed keys").count(), 0);
  assert.equal(await page.getByLabel("Your OpenAI key").count(), 0);
  assert.ok(id);
  page.faults();
});

test("members are added, their roles change what they see, and the last owner stays", async () => {
  const { page, id } = await stage.studio("runa");
  await page.show("members");
  await page.getByText("(the last one)").waitFor();
  await page.getByRole("button", { name: "Add member" }).click();
  await page.getByLabel("User id").fill("eli");
  await page.getByLabel("Role", { exact: true }).selectOption("viewer");
  await page.getByRole("dialog").getByRole("button", { name: "Add member" }).click();
  await page.getByText("eli is a member.").waitFor();

  const eli = await open(stage.browser, stage.server);
  await eli.signIn("eli");
  const places = await eli.getByRole("navigation").getByRole("link").allInnerTexts();
  assert.deepEqual(places.map((place) => place.split("\n")[0]), ["Overview", "Agents", "Releases", "Usage", "Status", "Connect", "Workspace"]);
  await eli.show("agents/writer");
  await eli.getByText("Your role may look at agents and not change them.").waitFor();
  assert.equal(await eli.getByLabel("Persona prompt").getAttribute("readonly"), "");
  assert.equal(await eli.getByRole("radio", { name: "Human" }).isDisabled(), true);
  await eli.show("api-keys");
  await eli.getByText("Your role may not see this page").waitFor();

  await page.getByLabel("Role of eli").selectOption("admin");
  await page.getByRole("dialog").getByRole("button", { name: "Change role" }).click();
  await page.getByText("eli is an admin.").waitFor();
  await eli.show("api-keys");
  await eli.getByRole("button", { name: "Create key" }).waitFor();
  await page.getByRole("button", { name: "Remove eli" }).click();
  await page.getByRole("button", { name: "Remove member" }).click();
  await page.getByText("eli is removed.").waitFor();
  assert.equal((await stage.server.call("runa", "GET", `/api/workspaces/members?workspace_id=${id}`)).length, 2);
  page.faults();
  eli.faults();
});

test("the audit log tells who changed what", async () => {
  const { page } = await stage.studio("unni");
  await page.show("audit-log");
  const row = page.getByRole("row", { name: /agent\.updated/ }).filter({ hasText: "Writer" });
  await row.getByRole("button").click();
  assert.match(page.url(), /entry=/);
  const detail = page.locator("tr.detail");
  assert.match(await detail.innerText(), /formality\s+50\s+35/);
  assert.match(await detail.locator(".diff").innerText(), /seven/);
  await page.getByRole("row", { name: /pipeline/ }).filter({ hasText: "agent.updated" }).waitFor();
  await page.getByRole("row", { name: /member\.set/ }).getByText("Role: admin").waitFor();
  await page.getByRole("row", { name: /agent\.updated/ }).getByText("formality: 50 → 35 and Persona prompt").waitFor();
  await page.setViewportSize({ width: 700, height: 800 });
  const right = (name) => page.locator(name).last().evaluate((element) => element.getBoundingClientRect().right);
  assert.equal(await right(".audit-table tr:not(.detail) > td:nth-child(4)"), await right(".audit-table"), "an open entry adds no columns");
  await page.setViewportSize({ width: 1280, height: 800 });
  const [file] = await Promise.all([page.waitForEvent("download").catch(() => null), stage.server.has("/api/agents/versions") ? page.getByRole("button", { name: "Export" }).click() : page.evaluate(() => 0)]);
  if (stage.server.has("/api/agents/versions")) assert.match(file.suggestedFilename(), /^audit-log-.*\.ndjson$/);

  // The filters offer what the API has.
  const { Action, TargetType } = (await (await fetch(`${stage.server.url}/openapi.json`)).json()).components.schemas;
  const offered = (label) => page.getByLabel(label, { exact: true }).locator("option").evaluateAll((all) => all.map(({ value }) => value).filter((value) => value && !value.endsWith(".*")).sort());
  assert.deepEqual(await offered("Action"), Action.enum.toSorted());
  assert.deepEqual(await offered("Target"), TargetType.enum.toSorted());
  page.faults();
}, { timeout: 60_000 });

test("an audit log that was read further back loses no entry to the new ones", async () => {
  const { page, id } = await stage.studio("vigdis");
  const change = async (from, to) => {
    for (let i = from; i < to; i += 1) await stage.server.call("vigdis", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { role: `Role ${i}` });
  };
  await change(0, 90);
  await page.show("audit-log");
  const first = await page.locator(".audit-table tbody td:last-child").first().innerText();
  await page.getByRole("button", { name: "Load older" }).click();
  const shown = () => page.locator(".audit-table tbody td:last-child").allInnerTexts();
  await page.until(() => document.querySelectorAll(".audit-table tbody tr").length > 100);
  await change(90, 97);
  await page.getByRole("cell", { name: String(Number(first) + 7), exact: true }).waitFor();
  const all = (await shown()).map(Number);
  assert.deepEqual(all, all.map((_, i) => all[0] - i));
  assert.equal(all.at(-1), 1);
  page.faults();
}, { timeout: 60_000 });

test("a webhook is added, and its refusals are said", async (context) => {
  if (!stage.needs(context, "/api/webhooks")) return;
  const { page, id } = await stage.studio("ragna");
  // Its deliveries may be read while it is deleted.
  page.expect(404, "/api/webhooks/deliveries");
  await page.show("webhooks?new=1");
  page.expect(400, "/api/webhooks");
  await page.getByLabel("Address").fill("https://127.0.0.1/in");
  await page.getByRole("dialog").getByRole("button", { name: "Add webhook" }).click();
  await page.getByRole("dialog").getByText("Not saved.").waitFor();
  await page.getByLabel("Address").fill("https://hooks.example.com/in");
  // The events are a checklist: families with what they hold, and single ones.
  const check = (name) => page.getByRole("dialog").getByRole("checkbox", { name });
  const families = [/^Agents created, updated, deactivated, restored and rolled back/, /^Many agents at once applied/, /^Labels set, removed, promoted and restored/];
  for (const family of families) await check(family).uncheck();
  await page.getByRole("dialog").getByRole("button", { name: "Add webhook" }).click();
  await page.getByRole("dialog").getByText("A webhook needs an event.").waitFor();
  assert.deepEqual(await violations(page), []);
  await check(families[2]).check();
  await page.getByText("Single events").click();
  await check("webhook.secret_rotated").check();
  await page.getByRole("dialog").getByRole("button", { name: "Add webhook" }).click();
  assert.match(await page.locator("[data-secret]").innerText(), /^whsec_/);
  await page.getByLabel("I have stored the secret in a safe place").check();
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("link", { name: "hooks.example.com" }).click();
  assert.deepEqual((await stage.server.call("ragna", "GET", `/api/webhooks?workspace_id=${id}`))[0].types, ["label.*", "webhook.secret_rotated"]);
  await page.getByRole("button", { name: "Actions for hooks.example.com" }).click();
  await page.getByRole("menuitem", { name: "Edit" }).click();
  assert.equal(await check(families[0]).isChecked(), false);
  assert.equal(await check(families[2]).isChecked(), true);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Actions for hooks.example.com" }).click();
  await page.getByRole("menuitem", { name: "Disable" }).click();
  await page.getByText("hooks.example.com/in is disabled.").waitFor();
  await page.getByRole("button", { name: "Actions for hooks.example.com" }).click();
  await page.getByRole("menuitem", { name: "Delete webhook" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete webhook" }).click();
  await page.getByText("No webhooks yet").waitFor();
  page.faults();
});

test("a workspace is renamed, exported, and erased after its name is typed", async (context) => {
  if (!stage.needs(context, "/api/workspaces/export")) return;
  const { page, keys } = await stage.studio("thora");
  await page.show("workspace");
  await page.getByLabel("Name").fill("Atelier");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The name is saved.").waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export workspace" }).click()]);
  assert.match(file.suggestedFilename(), /^Atelier-.*\.ndjson$/);
  await page.getByRole("button", { name: "Erase workspace" }).click();
  const erase = page.getByRole("dialog").getByRole("button", { name: "Erase workspace" });
  await page.getByLabel("Type Atelier to erase it.").fill("atelier");
  assert.equal(await erase.getAttribute("aria-disabled"), "true");
  await page.getByLabel("Type Atelier to erase it.").fill("Atelier");
  // The stream of the page ends with its member's right, and is refused once before the page knows that the workspace is no more.
  page.expect(403, "/api/changes");
  await erase.click();
  await page.getByRole("heading", { name: "No workspace yet" }).waitFor();
  assert.equal((await stage.server.raw(keys.pipeline.key, "GET", "/api/whoami")).status, 401);
  page.faults();
});

test("a name is typed as it is shown, without the white space that is not", async () => {
  const id = await stage.server.workspace("rakel", "North  sea ");
  const page = await open(stage.browser, stage.server);
  await page.signIn("rakel");
  await page.show("workspace");
  await page.getByRole("button", { name: "Erase workspace" }).click();
  await page.getByLabel("Type North sea to erase it.").fill("North se");
  const erase = page.getByRole("dialog").getByRole("button", { name: "Erase workspace" });
  assert.equal(await erase.getAttribute("aria-disabled"), "true");
  await page.getByLabel("Type North sea to erase it.").fill("North sea");
  await erase.click();
  await page.getByRole("heading", { level: 1, name: "No workspace yet" }).waitFor();
  assert.ok(!(await stage.server.call("rakel", "GET", "/api/workspaces")).some((one) => one.id === id));
  page.faults();
});

test("a key is limited to permissions, agents and a label, and the list says so", async () => {
  const { page, id } = await stage.studio("kajsa");
  await page.show("api-keys?new=1");
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill("reader-of-two");
  await form.getByText("Write", { exact: true }).click();
  await form.getByLabel("Limit it to some permissions, agents or a label").check();
  for (const name of await form.locator(".permissions code").allInnerTexts()) await form.getByLabel(name, { exact: true }).uncheck();
  await form.getByRole("button", { name: "Create key" }).click();
  await form.getByText("A key needs one permission at least.").waitFor();
  await form.getByLabel("agents:read").check();
  await form.getByLabel("models:invoke").check();
  await form.getByLabel("Agents", { exact: true }).fill("writer, not-there-yet");
  await form.getByText("not-there-yet does not exist yet.").waitFor();
  await form.getByLabel("Label", { exact: true }).fill("Production");
  await form.getByRole("button", { name: "Create key" }).click();
  await form.getByText("1–36 lowercase letters").waitFor();
  await form.getByLabel("Label", { exact: true }).fill("production");
  assert.deepEqual(await violations(page), []);
  await form.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("heading", { name: "Copy your new key now" }).waitFor();
  await page.getByText("2 permissions").first().waitFor();
  await page.getByLabel("I have stored the key in a safe place").check();
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("row", { name: /reader-of-two.*write\s*2 permissions\s*2 agents\s*label production/ }).waitFor();
  const made = (await stage.server.call("kajsa", "GET", `/api/api-keys?workspace_id=${id}`)).find(({ name }) => name === "reader-of-two");
  assert.deepEqual([made.permissions.toSorted(), made.agents.toSorted(), made.label], [["agents:read", "models:invoke"], ["not-there-yet", "writer"], "production"]);
  page.faults();
});

test("the command of a limited key is one that it may run", async () => {
  const { page } = await stage.studio("kari");
  await page.show("api-keys?new=1");
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill("caller");
  await form.getByText("Write", { exact: true }).click();
  await form.getByLabel("Limit it to some permissions, agents or a label").check();
  for (const name of await form.locator(".permissions code").allInnerTexts()) if (name !== "models:invoke") await form.getByLabel(name, { exact: true }).uncheck();
  await form.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("heading", { name: "Copy your new key now" }).waitFor();
  const command = await page.locator("pre", { hasText: "curl" }).innerText();
  const [, url] = /curl '([^']+)'/.exec(command);
  const [, key] = /AGENTCFG_API_KEY='([^']+)'/.exec(command);
  assert.equal((await fetch(url, { headers: { Authorization: `Bearer ${key}` } })).status, 200, command);
  page.faults();
});

test("a key for model calls may make them, and a copy of the snippet with it counts", async () => {
  const { page } = await stage.studio("signe");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.route(/\/api\/api-keys\?/, (route) => route.fulfill({ json: [] }));
  await page.show("connect");
  await page.getByRole("link", { name: "Create key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Reads, creates and changes agents, reports status and calls models.").waitFor();
  assert.equal(await dialog.getByLabel("Write").isChecked(), true);
  await dialog.getByLabel("Name").fill("first-call");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Copy your new key now" }).waitFor();
  await dialog.getByText("Not copied yet").waitFor();
  await dialog.locator(".snippet").getByRole("button", { name: "Copy" }).click();
  await dialog.getByText("Copied", { exact: true }).first().waitFor();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  const key = /svc_live_\w+/.exec(text)[0];
  const url = /curl '([^']+)'/.exec(text)[1];
  assert.equal((await fetch(url, { headers: { Authorization: `Bearer ${key}` } })).status, 200);
  await page.getByRole("button", { name: "Done" }).click();
  await dialog.waitFor({ state: "detached" });
  page.faults();
});

test("the dialog for a member says how the person gets in", async () => {
  const { page } = await stage.studio("tora");
  await page.show("members?new=1");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("User id").fill("ulrika");
  await dialog.getByText("agentcfg-server login-link --user ulrika").waitFor();
  page.faults();
});
