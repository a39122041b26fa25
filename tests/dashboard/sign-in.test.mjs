// Signing in and out, workspaces, lost connections, ended sessions, and proxies.
import assert from "node:assert/strict";
import { test } from "node:test";
import { below, fill, hide, identityProvider, open, prepare, Server, visit } from "./harness.mjs";

const stage = prepare();

const stored = (page) => page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]);

test("a login link names its user, works once, and leaves nothing in the browser but the cookie", async () => {
  await stage.server.workspace("ines", "Ines");
  const link = stage.server.link("ines");
  const page = await open(stage.browser, stage.server);
  await page.goto(stage.server.url + link);
  await page.getByRole("heading", { name: "Sign in as ines" }).waitFor();
  assert.equal(await page.evaluate(() => location.hash), "");
  await page.getByRole("button", { name: "Continue as ines" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.deepEqual(await stored(page), [0, 0, ""]);

  await page.getByRole("button", { name: "ines", exact: true }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to agentcfg" }).waitFor();
  assert.equal(await page.evaluate(async () => (await fetch("api/whoami")).status), 401);

  page.expect(401, "/api/sessions");
  await page.goto(`${stage.server.url}/ui/overview`);
  await page.goto(stage.server.url + link);
  await page.getByRole("button", { name: "Continue as ines" }).click();
  await page.getByText("This link was used or is too old.").waitFor();
  page.faults();
});

test("a session token signs in, and a wrong one says so", async () => {
  await stage.server.workspace("tove", "Tove");
  const page = await open(stage.browser, stage.server);
  page.expect(401, "/api/sessions");
  await page.goto(`${stage.server.url}/ui/agents`);
  await page.getByLabel("Session token").fill("no.token.atall");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("This token is not valid.").waitFor();
  await page.getByLabel("Session token").fill(stage.server.token("tove"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Agents" }).waitFor();
  await page.getByText("No agents yet").waitFor();
  assert.deepEqual(await stored(page), [0, 0, ""]);
  page.faults();
});

test("a user without a workspace creates one, and the address names it from the second on", async () => {
  const page = await open(stage.browser, stage.server);
  await page.signIn("noor");
  for (const name of ["First", "Second"]) {
    if (name === "Second") await page.getByRole("button", { name: "First" }).click();
    await page.getByRole(name === "First" ? "button" : "menuitem", { name: "New workspace" }).click();
    await page.getByLabel("Name").fill(name);
    await page.getByRole("button", { name: "Create workspace" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  }
  await page.getByText("Second is created.").waitFor();
  assert.match(page.url(), /workspace=/);
  await page.getByRole("button", { name: "Second" }).click();
  await page.getByRole("menuitem", { name: "First" }).click();
  await page.getByRole("button", { name: "First" }).waitFor();
  await page.goBack();
  await page.getByRole("button", { name: "Second" }).waitFor();
  page.faults();
});

test("a lost connection keeps the text and says how old the page is", async () => {
  const { page } = await stage.studio("frida");
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Typed before the line broke");
  page.mayLose = true;
  await page.context().setOffline(true);
  await page.getByText("Connection lost.").waitFor();
  assert.equal(await page.getByLabel("Role").inputValue(), "Typed before the line broke");
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).click();
  await page.getByRole("dialog").getByText("Your text is still here.").waitFor();
  await page.context().setOffline(false);
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  await page.getByText("Connection lost.").waitFor({ state: "detached" });
  page.faults();
});

test("a server that is gone is noticed while changes are followed", async (context) => {
  const server = await Server.start();
  context.after(() => server.stop());
  await fill(server, "rut");
  const page = await open(stage.browser, server);
  await page.signIn("rut");
  await page.show("status");
  await page.getByText("Live", { exact: true }).waitFor();
  page.mayLose = true;
  await server.stop();
  await page.getByText("Connection lost.").waitFor();
  await page.getByText("Live", { exact: true }).waitFor({ state: "detached" });
  // What was heard of an agent stays, with its time.
  await page.getByRole("region", { name: "Working" }).getByText(/ago|just now/).first().waitFor();
  page.faults();
  await page.context().close();
});

test("a sign-out asks before it discards text, and the next user sees none of it", async () => {
  const { page, id } = await stage.studio("saga");
  await stage.server.call("saga", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=runa`, { role: "admin" });
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Typed by saga");
  await page.getByRole("link", { name: "Agents" }).first().click();
  await page.getByRole("link", { name: /^Writer ?, unsaved draft$/ }).waitFor();
  const leave = async () => {
    await page.getByRole("button", { name: "saga", exact: true }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
  };
  await leave();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("link", { name: "1 unsaved draft" }).click();
  assert.equal(await page.getByLabel("Role").inputValue(), "Typed by saga");
  await leave();
  await page.getByRole("dialog").getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Session token").fill(stage.server.token("runa"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Role").waitFor();
  assert.equal(await page.getByLabel("Role").inputValue(), "Long-form writer");
  assert.equal(await page.getByRole("link", { name: "1 unsaved draft" }).count(), 0);
  page.faults();
});

test("an address of a workspace of others says so, and leads to the own one", async () => {
  const { page } = await stage.studio("tora");
  const foreign = await stage.server.workspace("ulla", "Of others");
  await page.show(`agents/writer?workspace=${foreign}`);
  await page.getByRole("heading", { name: "You are no member of this workspace" }).waitFor();
  assert.match(page.url(), new RegExp(foreign));
  await page.getByRole("link", { name: "Open Studio" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  page.faults();
});

test("an ended session keeps the text until the user is back", async () => {
  const { page } = await stage.studio("greta");
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Typed in an old session");
  for (const path of ["configs", "status", "versions", "labels"]) page.expect(401, `/api/agents/${path}`);
  for (const path of ["models", "api-keys", "audit-log", "changes"]) page.expect(401, `/api/${path}`);
  const other = await visit(page.context(), stage.server);
  await other.show("overview");
  // The page would come back by itself with its next stream, so there is none before the button is pressed.
  await page.route("**/api/changes?*", (route) => route.fulfill({ status: 401, json: { error: "invalid credentials" } }));
  await other.getByRole("button", { name: "greta", exact: true }).click();
  await other.getByRole("menuitem", { name: "Sign out" }).click();
  // The draft of the first tab is kept in the browser, so this one asks about it.
  await other.getByRole("dialog").getByRole("button", { name: "Sign out" }).click();
  await other.getByRole("heading", { name: "Sign in to agentcfg" }).waitFor();
  await page.getByText("Your session has ended.").waitFor({ timeout: 25_000 });
  assert.equal(await page.getByLabel("Role").inputValue(), "Typed in an old session");
  // A hidden page does not poll, which would bring it back too: it is told of the sign-in.
  await hide(page);
  await other.signIn("greta");
  await page.getByText("Your session has ended.").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  page.faults();
});

test("it works below a path prefix", async (context) => {
  await fill(stage.server, "disa");
  const proxy = await below("/team/agents/", stage.server.url);
  context.after(() => proxy.stop());
  const page = await visit(await stage.browser.newContext(), stage.server, proxy.url);
  await page.signIn("disa");
  await page.getByRole("link", { name: "Agents" }).first().click();
  await page.getByRole("link", { name: "Writer", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Writer" }).waitFor();
  assert.match(page.url(), /\/team\/agents\/ui\/agents\/writer$/);
  await page.reload();
  await page.getByLabel("Persona prompt").waitFor();
  page.faults();
  await page.context().close();
});

test("a user signs in with the identity provider, and signs out", async (t) => {
  const provider = await identityProvider();
  t.after(() => provider.stop());
  const server = await Server.start(
    { AGENTCFG_SESSION_PROVIDER: "jwks", AGENTCFG_OIDC_ISSUER: provider.issuer, AGENTCFG_OIDC_AUDIENCE: "dashboard", AGENTCFG_OIDC_CLIENT_ID: "dashboard" },
    { local: false },
  );
  t.after(() => server.stop());
  const page = await open(stage.browser, server);
  page.mayVisit = provider.issuer;
  await page.goto(`${server.url}/ui/agents`);
  const link = page.getByRole("link", { name: "Continue with your identity provider" });
  await link.waitFor();
  assert.equal(await page.getByText("login-link").count(), 0);
  await link.click();
  await page.getByLabel("Name").fill("sigrid");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("No workspace yet").waitFor();
  assert.equal(new URL(page.url()).origin, server.url);
  assert.equal(await page.evaluate(async () => (await (await fetch("/api/whoami")).json()).id), "sigrid");
  assert.deepEqual(await stored(page), [0, 0, ""]);
  await page.getByRole("button", { name: "New workspace" }).click();
  await page.getByLabel("Name").fill("North");
  await page.getByRole("button", { name: "Create workspace" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByRole("button", { name: "sigrid", exact: true }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to agentcfg" }).waitFor();
  assert.equal(await page.evaluate(async () => (await fetch("/api/whoami")).status), 401);
  page.faults();
  await page.context().close();
});
