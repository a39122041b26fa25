// An app with sessions of its own, which opens the dashboard for its users: examples/axum/single_sign_on.rs, whose program is
// SINGLE_SIGN_ON. The tests of identity run this file, because the program is none of the server's.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { launch, open } from "./harness.mjs";

let browser, app;
const host = { has: () => true };

before(async () => {
  app = spawn(process.env.SINGLE_SIGN_ON, { env: { LISTEN: "127.0.0.1:0" }, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await new Promise((resolve, reject) => {
    createInterface({ input: app.stdout }).once("line", (line) => resolve([line]));
    app.on("exit", () => reject(new Error("the app ended")));
  });
  host.url = line.slice("listening on ".length);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  app?.removeAllListeners("exit").kill();
});

test("the app's session opens the dashboard, and ends it", async () => {
  const page = await open(browser, host);
  page.expect(401, "/api/whoami");
  page.expect(401, "/api/workspaces");
  page.expect(404, "/favicon.ico");
  // Without a session of the app the dashboard offers its sign-in, which leads to the app.
  await page.goto(`${host.url}/agentcfg/`);
  await page.getByRole("link", { name: "Continue with your identity provider" }).click();
  await page.getByLabel("User").fill("ada");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Hello ada" }).waitFor();

  await page.getByRole("link", { name: "Agents" }).click();
  await page.getByRole("button", { name: "New workspace" }).click();
  await page.getByLabel("Name").fill("Studio");
  await page.getByRole("button", { name: "Create workspace" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.equal(new URL(page.url()).pathname.startsWith("/agentcfg/"), true);
  const whoami = async () => (await page.evaluate(async () => (await fetch("/agentcfg/api/whoami")).json())).id;
  assert.equal(await whoami(), "ada");

  // The service asks for the app's session on each request.
  const other = await page.context().newPage();
  await other.goto(host.url);
  await other.getByRole("button", { name: "Sign out" }).click();
  await other.getByRole("heading", { name: "Sign in" }).waitFor();
  const status = await page.evaluate(async () => (await fetch("/agentcfg/api/whoami")).status);
  assert.equal(status, 401);
  page.faults();
});

test("a page of another site opens and ends no session", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(host.url);
  await page.getByLabel("User").fill("eve");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Hello eve" }).waitFor();
  // Another origin, and another site: the same machine by another name.
  const foreign = host.url.replace("127.0.0.1", "localhost");
  await page.goto(foreign);
  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.url() === `${host.url}/sign-out`),
    page.evaluate((url) => {
      document.body.innerHTML = `<form method="post" action="${url}/sign-out"></form>`;
      document.forms[0].submit();
    }, host.url),
  ]);
  assert.equal(answer.status(), 403);
  await page.waitForURL(`${host.url}/sign-out`);
  await page.goto(foreign);
  const [opened] = await Promise.all([
    page.waitForResponse((response) => response.url() === `${host.url}/agentcfg/ui/sign-in`),
    page.evaluate((url) => (location.href = `${url}/agentcfg/ui/sign-in`), host.url),
  ]);
  assert.equal(opened.status(), 403);
  await page.waitForURL(`${host.url}/agentcfg/ui/sign-in`);
  await page.goto(host.url);
  await page.getByRole("heading", { name: "Hello eve" }).waitFor();
  assert.deepEqual((await context.cookies()).map((cookie) => cookie.name), ["app-session"]);
});
