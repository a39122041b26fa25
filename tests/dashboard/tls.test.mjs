// The dashboard on a server that speaks TLS itself: HTTP/2, cookies with the prefix __Host-, and the live feed.
import assert from "node:assert/strict";
import { chmod, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Server, launch, open } from "./harness.mjs";

// The authority of the test's certificate is known neither to Node nor to the browser.
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";

const certificates = new URL("../../agentcfg-client/src/tests/tls/", import.meta.url).pathname;

test("the dashboard works over HTTP/2 and follows changes", async () => {
  const dir = await mkdtemp(join(tmpdir(), "agentcfg-dashboard-tls-"));
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  await copyFile(`${certificates}/localhost.pem`, cert);
  await copyFile(`${certificates}/localhost.key`, key);
  await chmod(key, 0o600);
  const server = await Server.start({ AGENTCFG_TLS_CERT: cert, AGENTCFG_TLS_KEY: key });
  const browser = await launch();
  try {
    assert.ok(server.url.startsWith("https://"), server.url);
    const workspace = await server.workspace("ines", "Ines");
    const page = await open(browser, server, { ignoreHTTPSErrors: true });
    await page.signIn("ines");
    const protocols = await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => entry.nextHopProtocol));
    assert.ok(protocols.length > 0 && protocols.every((protocol) => protocol === "h2"), `${protocols}`);
    const [cookie] = await page.context().cookies();
    assert.equal(cookie.name, "__Host-agentcfg-session");
    assert.ok(cookie.secure && cookie.httpOnly);
    await page.show("agents");
    const agent = { workspace_id: workspace, agent_id: "writer", display_name: "Writer of Notes" };
    await server.call("ines", "POST", "/api/agents/configs", agent);
    await page.getByText("Writer of Notes").first().waitFor();
    page.faults();
  } finally {
    await browser.close();
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  }
});
