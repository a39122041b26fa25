// Every screen, light and dark, wide and narrow, empty and full: rules of accessibility, no sideways scrolling, one heading.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fill, launch, open, receiver, Server, violations } from "./harness.mjs";

const SCREENS = ["overview", "agents", "agents?show=deleted", "new-agent", "import", "releases", "releases/history", "usage", "usage?range=24h&by=version&show=p95", "status", "status?view=list", "status?view=timeline", "audit-log", "connect", "api-keys", "members", "workspace", "ai-providers", "webhooks", "nothing-here"];
const OF_AGENT = ["agents/writer", "agents/writer/history", "agents/writer/history?from=1&to=2&view=inline", "agents/writer/definition", "agents/writer/labels", "agents/writer/try", "agents/writer/usage", "agents/newsletter", "releases/review?from=staging&to=production", "releases/review?of=writer&to=staging&version=1&view=side"];
const DIALOGS = ["api-keys?new=1", "members?new=1"];
const SIZES = { wide: { width: 1280, height: 800 }, middle: { width: 900, height: 800 }, narrow: { width: 360, height: 740 } };

let browser;
let server;
let hooks;
let webhooks;

before(async () => {
  browser = await launch();
  hooks = await receiver();
  server = await Server.start({ AGENTCFG_WEBHOOK_ALLOWED_HOSTS: hooks.host });
  ({ webhooks } = await fill(server, "full", { hooks }));
  await server.workspace("empty", "Empty");
});
after(async () => {
  await browser?.close();
  await server?.stop();
  hooks?.stop();
});

/** The violations of a screen. */
async function faults(page, where) {
  await page.until(() => !document.querySelector("[aria-busy=true]"));
  const said = [];
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (sideways > 0) said.push(`${where} scrolls sideways by ${sideways} px`);
  const headings = await page.locator("h1").count();
  if (headings !== 1) said.push(`${where} has ${headings} headings of the first level`);
  for (const { id, help, nodes } of await violations(page)) {
    said.push(`${where}: ${id}: ${help}\n${nodes.slice(0, 3).map(({ html, failureSummary }) => `    ${html.slice(0, 200)}\n    ${failureSummary}`).join("\n")}`);
  }
  return said;
}

const check = async (page, where) => assert.deepEqual(await faults(page, where), []);

// Each has a page of its own and changes nothing.
describe("screens", { concurrency: 2 }, () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      test(`screens, ${colorScheme}, ${size}`, { timeout: 280_000 }, async () => {
        const said = [];
        for (const user of ["full", "empty"]) {
          const page = await open(browser, server, { colorScheme, viewport, reducedMotion: "reduce" });
          await page.goto(`${server.url}/`);
          await page.getByRole("heading", { name: "Sign in to agentcfg" }).waitFor();
          said.push(...(await faults(page, "sign-in")));
          await page.signIn(user);
          const of_webhook = webhooks.map(({ id }) => `webhooks/${id}`);
          const screens = [...SCREENS, ...(user === "full" ? [...OF_AGENT, ...of_webhook, ...DIALOGS] : [])];
          for (const screen of screens) {
            await page.show(screen);
            said.push(...(await faults(page, `${screen}, ${user}`)));
          }
          page.faults();
          await page.context().close();
        }
        assert.deepEqual(said, []);
      });
    }
  }

  for (const colorScheme of ["light", "dark"]) {
    test(`screens while storage fails, ${colorScheme}`, { timeout: 280_000 }, async () => {
      const page = await open(browser, server, { colorScheme, reducedMotion: "reduce" });
      await page.signIn("full");
      // Everything but the question who is signed in fails, as when the disk of the server has gone.
      await page.route(/\/api\/(?!whoami)/, (route) => route.fulfill({ status: 503, headers: { "Retry-After": "60" }, json: { error: "storage is unavailable, try again later" } }));
      page.expect(503, "");
      const said = [];
      for (const screen of [...SCREENS, "agents/writer", "agents/writer/history", "agents/writer/labels"].filter((name) => !["nothing-here", "connect"].includes(name))) {
        await page.show(screen);
        said.push(...(await faults(page, `${screen}, failing`)));
        // A screen that needs data says what failed, and offers to try again.
        if (["new-agent", "import", "workspace"].includes(screen)) continue;
        const tries = await page.getByRole("button", { name: /Try again|Retry/ }).count();
        if (tries === 0) said.push(`${screen} does not offer to try again`);
      }
      assert.deepEqual(said, []);
      page.faults();
      await page.context().close();
    });
  }
});

test("the review, the merge, the menu of the narrow window and the shown key are accessible", async () => {
  const page = await open(browser, server, { reducedMotion: "reduce" });
  await page.signIn("full");
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Essayist");
  await check(page, "changed");
  await page.getByRole("button", { name: "Review changes" }).click();
  await check(page, "review");
  const [{ workspace_id: id }] = await server.call("full", "GET", `/api/agents/configs?workspace_id=${(await server.call("full", "GET", "/api/workspaces"))[0].id}&agent_id=writer`);
  await server.call("full", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { role: "Poet" });
  page.expect(412, "/api/agents/configs");
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).click();
  await page.getByText("0 of 1 conflict decided").waitFor();
  await page.locator("label", { hasText: "Mine" }).click();
  await check(page, "merge");
  await page.getByRole("button", { name: "Back to editing" }).click();
  await page.getByRole("button", { name: "Discard" }).click();
  await page.show("api-keys?new=1");
  await page.getByLabel("Name").fill("shown");
  await page.getByRole("button", { name: "Create key" }).last().click();
  await page.getByRole("heading", { name: "Copy your new key now" }).waitFor();
  await check(page, "key");
  await page.getByLabel("I have stored the key in a safe place").check();
  await page.getByRole("button", { name: "Done" }).click();
  await page.setViewportSize(SIZES.narrow);
  await page.getByRole("button", { name: "Open menu" }).click();
  await page.getByRole("dialog").waitFor();
  await check(page, "menu");
  await page.getByRole("dialog").getByRole("link", { name: "Members" }).click();
  await page.getByRole("heading", { level: 1, name: "Members" }).waitFor();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  page.faults();
});
