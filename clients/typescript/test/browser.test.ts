// The client in a browser: Chromium imports the compiled modules as they are.
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { after, test } from "node:test";
import { Inbox, scripted, Server, temporaryFolder } from "./server.js";

const browser = ["chromium-headless-shell", "chromium"].find((name) => spawnSync(name, ["--version"]).status === 0);
const isLeftOut = browser === undefined && process.env["CI"] !== "true";

const page = (options: object) => `<!doctype html><script type="module">
  const results = [];
  try {
    const { AgentCfg, NotFoundError } = await import("/src/index.js");
    const options = ${JSON.stringify(options)};
    const cfg = await new AgentCfg({ ...options, cache: localStorage }).ready();
    results.push(cfg.agent("support").prompt({ name: "Ada" }));
    const moved = new Promise((resolve) => cfg.onChange(resolve));
    await cfg.api.agents.update("support", { model: "m2" });
    await cfg.api.labels.set("support", "production", { version: 2 });
    results.push((await moved).changed[0].to.version, cfg.health.source);
    await cfg.api.agents.get("nothing").catch((error) => results.push(error instanceof NotFoundError, error.requestId !== undefined));
    await cfg.api.agents.update("support", { display_name: "" }).catch((error) => results.push(error.fields));
    const { etag } = await cfg.api.agents.get("support");
    const stale = cfg.api.agents.update("support", {}, { ifMatch: '"x"' });
    await stale.catch((error) => results.push(error.currentEtag === etag));
    results.push(cfg.api.rateLimit.limit);
    await cfg.close();
    const down = await new AgentCfg({ ...options, url: "http://127.0.0.1:1", cache: localStorage }).ready();
    results.push(down.agent("support").version, down.health.source);
    await down.close();
  } catch (error) {
    results.push(String(error.stack));
  }
  await fetch("/results", { method: "POST", body: JSON.stringify(results) });
</script>`;

test(
  "a page reads its agents, follows them, and starts from its storage",
  { skip: isLeftOut && "NOT RUN: there is no Chromium" },
  async () => {
    const results = new Inbox<unknown[]>();
    let html = "";
    const pages = await scripted((request, response) => {
      const { pathname } = new URL(request.url!, "http://host");
      if (pathname === "/results") {
        results.put(JSON.parse(request.text) as unknown[]);
        response.end();
      } else if (/^\/src\/[\w/-]+\.js$/.test(pathname)) {
        response.writeHead(200, { "content-type": "text/javascript" });
        createReadStream(new URL(`..${pathname}`, import.meta.url)).pipe(response);
      } else {
        response.writeHead(pathname === "/" ? 200 : 404, { "content-type": "text/html" }).end(html);
      }
    });
    const server = await Server.start({ AGENTCFG_CORS_ORIGINS: pages.url });
    const studio = await server.studio();
    const definition = { variables: { name: {} } };
    await studio.released(["support"], "production", { persona_prompt: "Help {{name}}.", definition });
    const { key } = await studio.key();
    html = page({ url: server.url, key, workspace: studio.id });
    let chromium: ChildProcess | undefined;
    after(async () => {
      const exit = chromium === undefined ? undefined : once(chromium, "exit");
      chromium?.kill("SIGKILL");
      await exit;
    });
    const profile = `--user-data-dir=${await temporaryFolder()}`;
    const words = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", profile, pages.url];
    chromium = spawn(browser!, words, { stdio: "ignore" });
    assert.deepEqual(await results.next("the page's results", 60_000), [
      "Help Ada.",
      2,
      "server",
      true,
      true,
      ["display_name"],
      true,
      1_000_000,
      2,
      "cache",
    ]);
  },
);
