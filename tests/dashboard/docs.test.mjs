// The documentation, light and dark, wide and narrow, without scripts: rules of accessibility, no sideways scrolling, and
// nothing that is loaded from another place.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, Server, violations } from "./harness.mjs";

const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 740 } };

let browser;
let server;

before(async () => {
  browser = await launch();
  server = await Server.start();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

for (const colorScheme of ["light", "dark"]) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    test(`the documentation, ${colorScheme}, ${size}`, { timeout: 280_000 }, async () => {
      const context = await browser.newContext({ colorScheme, viewport });
      const page = await context.newPage();
      const said = [];
      const asked = [];
      page.on("console", (message) => said.push(message.text()));
      page.on("request", (request) => asked.push(request.url()));
      await page.goto(`${server.url}/docs`);
      assert.deepEqual(said, []);
      assert.deepEqual(asked.filter((url) => !url.startsWith("data:")), [`${server.url}/docs`, `${server.url}/docs.css`]);
      const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(sideways <= 0, `it scrolls sideways by ${sideways} px`);
      const shown = (await violations(page)).map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(" ")}`);
      assert.deepEqual(shown, []);
      await context.close();
    });
  }
}

test("the documentation is read without scripts", { timeout: 280_000 }, async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${server.url}/docs`);
  await page.getByRole("navigation").getByRole("link", { name: "Create an agent" }).click();
  assert.equal(new URL(page.url()).hash, "#create-an-agent");
  assert.ok(await page.getByRole("heading", { name: "Create an agent" }).isVisible());
  await context.close();
});
