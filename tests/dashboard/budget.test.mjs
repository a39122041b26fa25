// What the dashboard costs a browser: bytes over the wire, requests, and the time to the first screen.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FIRST, LIMITS, SCRIPTS } from "../../agentcfg-server/dashboard/limits.mjs";
import { fill, launch, open, Server } from "./harness.mjs";

let browser;
let server;

before(async () => {
  browser = await launch();
  server = await Server.start();
  await fill(server, "ada");
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("files stay within their limits, and are not sent again while they are the same", async () => {
  const page = await open(browser, server);
  const sizes = {};
  const statuses = [];
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const urls = new Map();
  session.on("Network.responseReceived", ({ requestId, response }) => urls.set(requestId, response));
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const name = new URL(urls.get(requestId)?.url ?? server.url).pathname.split("/").at(-1);
    sizes[name] = Math.max(sizes[name] ?? 0, encodedDataLength);
  });
  page.on("response", (response) => /\.(js|css|svg)$/.test(new URL(response.url()).pathname) && statuses.push([new URL(response.url()).pathname, response.status()]));
  await page.signIn("ada");
  await page.until(() => performance.getEntriesByType("resource").some(({ name, responseEnd }) => name.endsWith("/later.js") && responseEnd > 0));
  for (const [what, names] of [["first", FIRST], ["scripts", SCRIPTS], ["app.css", ["app.css"]]]) {
    const sum = names.reduce((bytes, name) => bytes + sizes[name], 0);
    console.log(`${what}: ${sum} bytes with headers`);
    assert.ok(names.every((name) => sizes[name] > 0) && sum < LIMITS[what] + names.length * 1_000, `${what}: ${sum}`);
  }
  for (const name of [...SCRIPTS, "app.css"]) {
    const first = await fetch(`${server.url}/ui/${name}`);
    const again = await fetch(`${server.url}/ui/${name}`, { headers: { "If-None-Match": first.headers.get("ETag") } });
    assert.deepEqual([first.status, again.status], [200, 304]);
  }
  page.faults();
});

test("the first screen is there soon, also on a slow line with a slow processor", async () => {
  const page = await open(browser, server);
  await page.signIn("ada");
  const session = await page.context().newCDPSession(page);
  const measure = async (what, limit) => {
    const times = [];
    for (let i = 0; i < 3; i += 1) {
      await page.goto(`${server.url}/ui/agents`);
      await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
      times.push(await page.evaluate(() => performance.now()));
    }
    const [least] = times.sort((a, b) => a - b);
    console.log(`agents are shown after ${Math.round(least)} ms (${what})`);
    assert.ok(least < limit, `${least}`);
  };
  await measure("this machine", 3_000);
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  await session.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 90_000 });
  await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  await measure("4 times slower processor, 1.6 Mbit/s, 150 ms, nothing cached", 15_000);
  page.faults();
});
