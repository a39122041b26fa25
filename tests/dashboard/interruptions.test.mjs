// What comes between a user and an answer: changes of others, answers that are lost or late, sessions that end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hide, prepare, visit } from "./harness.mjs";

const stage = prepare();

const dialog = (page) => page.getByRole("dialog");
const live = (page) => page.getByText("Live", { exact: true }).waitFor();

test("a rollback tells of a save that came while it was asked for", async () => {
  const { page, id } = await stage.studio("alma");
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  await page.show("agents/writer/history");
  await live(page);
  await page.getByRole("button", { name: "Roll back to v1" }).click();
  await stage.server.call("alma", "PATCH", writer, { role: "Set by a colleague" });
  await dialog(page).getByText("Writer was changed in the meantime: v3 is the newest version.").waitFor();
  const [request] = await Promise.all([page.waitForRequest("**/api/agents/rollback?*"), dialog(page).getByRole("button", { name: "Roll back all the same" }).click()]);
  assert.ok(request.headers()["if-match"], "what was seen is what is replaced");
  await page.getByText("Writer is at v4, with the content of v1.").waitFor();
  page.faults();
});

test("a rollback is refused where the page has not heard of the newer version", async () => {
  const { page, id } = await stage.studio("berta");
  await page.route("**/api/changes?*", (route) => route.abort());
  page.mayLose = true;
  await page.show("agents/writer/history");
  await page.getByRole("button", { name: "Roll back to v1" }).click();
  page.expect(412, "/api/agents/rollback");
  await stage.server.call("berta", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { role: "Set by a colleague" });
  await dialog(page).getByRole("button", { name: "Roll back to v1" }).click();
  await dialog(page).getByRole("button", { name: "Roll back all the same" }).waitFor();
  const [stored] = await stage.server.call("berta", "GET", `/api/agents/configs?workspace_id=${id}&agent_id=writer`);
  assert.equal(stored.role, "Set by a colleague");
});

test("after a new sign-in the page goes on at once, and an ended session is said in plain words", async () => {
  const { page } = await stage.studio("cecilie");
  for (const path of ["api-keys", "changes", "audit-log", "models", "provider-keys", "webhooks", "workspaces/members", "usage", "usage/calls", "budgets"]) page.expect(401, `/api/${path}`);
  for (const path of ["configs", "status", "status/history", "versions", "labels", "labels/history"]) page.expect(401, `/api/agents/${path}`);
  await page.show("overview");
  await live(page);
  const refused = page.waitForResponse((answer) => answer.url().includes("/api/changes") && answer.status() === 401, { timeout: 25_000 });
  await page.evaluate(() => fetch("/api/sessions", { method: "DELETE" }));
  // The overview reads another part of the log, so this screen has nothing in the cache.
  await page.getByRole("link", { name: "Audit log" }).first().click();
  await page.getByText("The audit log could not be read.").waitFor();
  assert.match(await page.locator("main .banner").innerText(), /Your session has ended\./);
  await page.getByText("Signed out", { exact: true }).waitFor();
  // The stream has been refused and waits for its next try, and a hidden page does not poll.
  await refused;
  await hide(page);
  // Not in another tab, which would tell this one before the button is pressed.
  const signIn = (token) => fetch("/api/sessions", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  await page.evaluate(signIn, stage.server.token("cecilie"));
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("could not be read").waitFor({ state: "detached" });
  await live(page);
  await page.getByRole("row", { name: /member\.set/ }).waitFor();
  page.faults();
});

test("a sign-out in one tab is told to the others at once", async () => {
  const { page } = await stage.studio("dagny");
  await page.show("overview");
  await live(page);
  const other = await visit(page.context(), stage.server);
  await other.show("overview");
  for (const path of ["api-keys", "changes", "audit-log", "usage", "usage/calls", "budgets"]) page.expect(401, `/api/${path}`);
  await other.getByRole("button", { name: "dagny", exact: true }).click();
  await other.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByText("Your session has ended.").waitFor({ timeout: 10_000 });
  await page.getByText("Signed out", { exact: true }).waitFor();
  assert.equal(await page.getByText("Live", { exact: true }).count(), 0);
});

test("a creation without an answer is not called a failure, and the list tells what has come of it", async () => {
  const { page } = await stage.studio("edda");
  page.mayLose = true;
  await page.show("api-keys");
  await page.getByRole("button", { name: "Create key" }).click();
  await dialog(page).getByLabel("Name").fill("half-heard");
  await page.route("**/api/api-keys", async (route) => {
    await route.fetch();
    await route.abort("connectionreset");
  });
  await dialog(page).getByRole("button", { name: "Create key" }).click();
  await dialog(page).getByText("No answer came: it may have been done all the same.").waitFor();
  assert.equal(await page.getByText("Not created.").count(), 0);
  await page.getByRole("row", { name: /half-heard/, includeHidden: true }).waitFor({ state: "attached" });
  page.faults();
});

test("an answer that takes long does not hold the user, and has a limit", { timeout: 90_000 }, async () => {
  const { page } = await stage.studio("frode");
  page.mayLose = true;
  await page.show("members");
  let held;
  await page.route(/workspaces\/members\?.*user_id=/, (route) => void (held = route));
  const add = async (name) => {
    await page.getByRole("button", { name: "Add member" }).first().click();
    await dialog(page).getByLabel("User id").fill(name);
    await dialog(page).getByRole("button", { name: "Add member" }).click();
  };
  await add("late");
  assert.equal(await dialog(page).getByRole("button", { name: "Cancel" }).getAttribute("aria-disabled"), "true");
  await dialog(page).getByText("No answer yet.").waitFor();
  await page.keyboard.press("Escape");
  await dialog(page).waitFor({ state: "detached" });
  // What comes of it is told all the same.
  await held.continue();
  await page.getByText("late is a member.").waitFor();
  await page.getByLabel("Role of late").waitFor();

  await add("never");
  await dialog(page).getByText("No answer came: it may have been done all the same.").waitFor({ timeout: 35_000 });
  await dialog(page).getByRole("button", { name: "Cancel" }).click();
  await dialog(page).waitFor({ state: "detached" });
  await page.unrouteAll({ behavior: "ignoreErrors" });
  page.faults();
});

test("a key on the list of roles asks where the change is great, and can be undone where it is not", async () => {
  const { page, id } = await stage.studio("gerd");
  const roles = async () => Object.fromEntries((await stage.server.call("gerd", "GET", `/api/workspaces/members?workspace_id=${id}`)).map(({ user_id, role }) => [user_id, role]));
  await stage.server.call("gerd", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=tim`, { role: "viewer" });
  await stage.server.call("gerd", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=olga`, { role: "owner" });
  await page.show("members");
  await page.getByLabel("Role of tim").focus();
  await page.keyboard.press("ArrowDown");
  await page.getByText("tim is a member.").waitFor();
  await page.until(() => document.querySelector("[aria-label='Role of tim']").value === "member");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.until(() => document.querySelector("[aria-label='Role of tim']").value === "viewer");
  assert.equal((await roles()).tim, "viewer");

  for (const user of ["gerd", "mira"]) {
    const before = (await roles())[user];
    await page.getByLabel(`Role of ${user}`).focus();
    await page.keyboard.press("ArrowUp");
    await dialog(page).getByRole("button", { name: "Cancel" }).click();
    assert.equal(await page.getByLabel(`Role of ${user}`).inputValue(), before);
    assert.equal((await roles())[user], before);
  }
  page.faults();
});

test("a role is put back in the workspace that it was changed in, whichever is shown by then", async () => {
  const { page, id } = await stage.studio("hjordis");
  await stage.server.workspace("hjordis", "Another one");
  await stage.server.call("hjordis", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=tim`, { role: "viewer" });
  await page.show(`members?workspace=${id}`);
  await page.getByLabel("Role of tim").selectOption("member");
  await page.getByText("tim is a member.").waitFor();
  await page.getByTitle(/^Workspace /).click();
  await page.getByRole("menuitem", { name: "Another one" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  const put = page.waitForRequest((request) => request.method() === "PUT");
  await page.getByRole("button", { name: "Undo" }).click();
  assert.equal(new URL((await put).url()).searchParams.get("workspace_id"), id);
  page.faults();
});

test("the name of a workspace follows a colleague, and a typed one is kept", async () => {
  const { page, id } = await stage.studio("hedda");
  const name = async () => (await stage.server.call("hedda", "GET", "/api/workspaces"))[0].name;
  await page.show("workspace");
  await live(page);
  await stage.server.call("hedda", "PATCH", `/api/workspaces?workspace_id=${id}`, { name: "Renamed" });
  await page.until(() => document.querySelector("input").value === "Renamed");
  await page.getByLabel("Name").press("Enter");
  await page.getByRole("link", { name: "Members" }).click();
  await page.goBack();
  assert.equal(await name(), "Renamed");
  await page.getByLabel("Name").fill("Half typed");
  await page.getByRole("link", { name: "Members" }).click();
  await page.goBack();
  assert.equal(await page.getByLabel("Name").inputValue(), "Half typed");
  page.faults();
});

test("a draft of a deleted agent can be copied, and saved after a restoration", async () => {
  const { page, id } = await stage.studio("idun");
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  await page.show("agents/writer");
  await live(page);
  await page.getByLabel("Role").fill("Typed before the deletion");
  await stage.server.call("idun", "DELETE", writer);
  await page.getByText("This agent is deleted.").waitFor();
  await page.getByText("It cannot be saved: the agent is deleted.").waitFor();
  await page.getByRole("button", { name: "Copy my version" }).waitFor();
  assert.equal(await page.getByText("changed while you were editing").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Review changes" }).count(), 0);
  await page.getByRole("button", { name: "Restore agent" }).click();
  await dialog(page).getByRole("button", { name: "Restore agent" }).click();
  page.expect(412, "/api/agents/configs");
  await page.getByRole("button", { name: "Review changes" }).click();
  await dialog(page).getByRole("button", { name: /^Save/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  assert.equal((await stage.server.call("idun", "GET", writer))[0].role, "Typed before the deletion");
  page.faults();
});

test("a draft outlives the deletion of its agent, alone and among others", async () => {
  const { page } = await stage.studio("jarl");
  const places = () => page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("agentcfg draft ")).length);
  const deleteOne = async () => {
    await page.getByRole("button", { name: "Actions for Writer" }).click();
    await page.getByRole("menuitem", { name: "Delete agent" }).click();
    await dialog(page).getByRole("button", { name: "Delete agent" }).click();
  };
  const deleteMany = async () => {
    await page.show("agents");
    await page.getByLabel("Tick Writer", { exact: true }).check();
    await page.getByRole("group", { name: "Ticked agents" }).getByRole("button", { name: "Delete" }).click();
    await dialog(page).getByRole("button", { name: "Delete" }).click();
  };
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Typed and not saved");
  for (const run of [deleteOne, deleteMany]) {
    await run();
    await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
    await page.getByText("Writer is restored.").waitFor();
    assert.equal(await places(), 1);
    await page.getByRole("link", { name: "1 unsaved draft" }).click();
    await page.until(() => document.querySelector("main")?.innerText.includes("1 unsaved change"));
    assert.equal(await page.getByLabel("Role").inputValue(), "Typed and not saved");
  }
  page.faults();
});

test("an edited webhook keeps what a colleague has changed meanwhile", async () => {
  const { page, id } = await stage.studio("knut");
  const { id: hook } = await stage.server.call("knut", "POST", "/api/webhooks", { workspace_id: id, url: "https://hooks.example.com/in" });
  await page.show(`webhooks/${hook}`);
  await live(page);
  const edit = async () => {
    await page.getByRole("button", { name: "Actions for hooks.example.com" }).click();
    await page.getByRole("menuitem", { name: "Edit" }).click();
  };
  const save = async () => {
    await dialog(page).getByRole("button", { name: "Save webhook" }).click();
    await dialog(page).waitFor({ state: "detached" });
  };
  await edit();
  await dialog(page).getByLabel("Description").fill("Of knut");
  await stage.server.call("knut", "PATCH", `/api/webhooks?webhook_id=${hook}`, { types: ["budget.*"], ordered: true });
  await page.getByText("One after the other").waitFor();
  await save();
  await edit();
  await save();
  const [now] = await stage.server.call("knut", "GET", `/api/webhooks?workspace_id=${id}`);
  assert.deepEqual([now.description, now.types, now.ordered, now.url], ["Of knut", ["budget.*"], true, "https://hooks.example.com/in"]);
  page.faults();
});

test("a screen whose file cannot be loaded says so, and the others go on", async () => {
  const { page } = await stage.studio("jorid");
  page.expect(503, "/later.js");
  await page.route("**/later.js", (route) => route.fulfill({ status: 503, body: "" }));
  await page.show("audit-log");
  await page.getByText("This page could not be loaded.").waitFor();
  await page.getByRole("link", { name: "Agents" }).first().click();
  await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
  await page.unrouteAll();
  await page.show("audit-log");
  await page.getByRole("row", { name: /member\.set/ }).waitFor();
  page.faults();
});
