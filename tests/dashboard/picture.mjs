// Makes the picture of the README, docs/dashboard.png.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { fill, launch, open, Server } from "./harness.mjs";

const LIMIT = 150_000;
const FILE = new URL("../../docs/dashboard.png", import.meta.url);

const browser = await launch();
const server = await Server.start();
try {
  await fill(server, "ada");
  const page = await open(browser, server, { viewport: { width: 1280, height: 720 }, reducedMotion: "reduce" });
  await page.signIn("ada");
  await page.show("agents");
  await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
  await page.getByText("Draft the autumn release post").first().waitFor();
  const picture = await page.screenshot();
  assert.ok(picture.length <= LIMIT, `the picture has ${picture.length} bytes, more than ${LIMIT}`);
  await writeFile(FILE, picture);
  console.log(`docs/dashboard.png: ${picture.length} bytes`);
} finally {
  await browser.close();
  await server.stop();
}
