// A server of its own for a test, browsers that fail on any fault of the page, and calls of the API.
import AxeBuilder from "@axe-core/playwright";
import { chromium } from "playwright-core";
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { createInterface } from "node:readline";

const BINARY = process.env.AGENTCFG_TEST_BINARY ?? new URL("../../target/debug/agentcfg-server", import.meta.url).pathname;
// The first one is the same browser without its windows, and needs half as much of the processor.
const BROWSER = process.env.AGENTCFG_TEST_BROWSER ?? ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path));

/** A folder whose scripts and styles are used in place of those in the server, such as `agentcfg-server/dashboard/dist`. */
const FILES = process.env.AGENTCFG_TEST_DASHBOARD;

/** How long a test waits for what must happen, in milliseconds: enough for a busy machine. */
const WAIT = 30_000;

/** The environment of the server: none of the settings of the user who runs the tests. */
const clean = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("AGENTCFG_")));

export class Server {
  /** Starts a server. With `local: false` the settings name another identity provider, which issues the tokens. */
  static async start(settings = {}, { local = true } = {}) {
    const server = new Server();
    server.data = await mkdtemp(join(tmpdir(), "agentcfg-dashboard-"));
    server.env = { ...clean(), AGENTCFG_SESSION_RATE_LIMIT: "1000000", AGENTCFG_DEFAULT_PLAN: "pro", ...settings };
    if (local) server.command(["token", "--user", "ada"]);
    server.process = spawn(BINARY, ["serve", "--data", server.data, "--listen", "127.0.0.1:0"], { env: server.env, stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: server.process.stdout });
    server.url = await new Promise((resolve, reject) => {
      lines.on("line", (line) => line.startsWith("listening on ") && resolve(line.slice("listening on ".length)));
      server.process.on("exit", () => reject(new Error("the server ended")));
    });
    const description = await (await fetch(`${server.url}/openapi.json`)).json();
    server.paths = new Set(Object.keys(description.paths));
    return server;
  }

  command(args) {
    return execFileSync(BINARY, [...args, "--data", this.data], { env: this.env, encoding: "utf8" }).trim();
  }

  has(path) {
    return this.paths.has(path);
  }

  token(user) {
    return this.command(["token", "--user", user]);
  }

  /** The path of a link that signs a user in. */
  link(user) {
    const link = this.command(["login-link", "--user", user]);
    return `/${link.slice(link.indexOf("#"))}`;
  }

  /** Calls the API with a key or as a user, and gives the decoded answer. */
  async call(as, method, path, body) {
    const answer = await this.raw(as, method, path, body);
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
    const text = await answer.text();
    return text ? JSON.parse(text) : null;
  }

  async raw(as, method, path, body) {
    this.tokens ??= new Map();
    if (!as.startsWith("svc_") && !this.tokens.has(as)) this.tokens.set(as, this.token(as));
    const headers = { Authorization: `Bearer ${this.tokens.get(as) ?? as}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    return fetch(this.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  }

  async workspace(user, name) {
    return (await this.call(user, "POST", "/api/workspaces", { name })).id;
  }

  async stop() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.removeAllListeners("exit");
    const ended = new Promise((resolve) => this.process.on("exit", resolve));
    this.process.kill("SIGKILL");
    await ended;
    await rm(this.data, { recursive: true, force: true });
  }
}

export async function launch() {
  assert.ok(BROWSER, "a browser is missing: install chromium, or name one in AGENTCFG_TEST_BROWSER");
  return chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox"] });
}

/**
 * Opens a page that collects its faults: errors in the console, refusals by the content security policy, requests to other
 * servers. `page.faults()` fails when there are any; `page.expect(status, path)` says which answers belong to the test.
 */
export async function open(browser, server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  return visit(context, server);
}

export async function visit(context, server, base = server.url) {
  if (FILES) await context.route(/\/([a-z]+\.(js|css)|snippets\.json)$/, (route) => route.fulfill({ path: join(FILES, new URL(route.request().url()).pathname.split("/").at(-1)) }));
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  const found = [];
  const expected = [
    [401, "/api/whoami"],
    [404, "/ui/sign-in"],
  ];
  const absent = (path) => path.startsWith("/api/") && !server.has(path);
  page.on("pageerror", (error) => found.push(`error: ${error.stack}`));
  page.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return;
    const status = Number(/status of (\d+)/.exec(message.text())?.[1]);
    const place = message.location().url ? new URL(message.location().url) : undefined;
    // The pages of the identity provider are not tested: it has no icon, which the browser asks for now and then.
    if (place && place.origin === page.mayVisit) return;
    const path = place?.pathname ?? "";
    if (expected.some(([code, wanted]) => code === status && path.endsWith(wanted))) return;
    if (/ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_(REFUSED|RESET|CLOSED)|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED|ERR_INCOMPLETE_CHUNKED_ENCODING/.test(message.text()) && page.mayLose) return;
    if (status === 404 && absent(path.slice(path.indexOf("/api/")))) return;
    found.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    // The browser also tells of a redirect to the identity provider that the page asks for and does not follow.
    if (page.mayVisit === url.origin) return;
    if (!["data:", "blob:"].includes(url.protocol) && url.origin !== new URL(base).origin) found.push(`foreign request: ${request.url()}`);
  });
  // Playwright's own waitForFunction evaluates text in the page, which the policy refuses.
  page.until = async (wanted, given) => {
    const deadline = Date.now() + WAIT;
    while (!(await page.evaluate(wanted, given))) {
      assert.ok(Date.now() < deadline, `not so after ${WAIT} ms: ${wanted}`);
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    }
  };
  page.expect = (status, path) => expected.push([status, path]);
  page.faults = () => assert.deepEqual(found, []);
  page.signIn = async (user) => {
    await page.goto(base + server.link(user));
    await page.getByRole("button", { name: `Continue as ${user}` }).click();
    await page.getByRole("heading", { level: 1, name: /Overview|No workspace yet/ }).waitFor();
  };
  /** Opens a screen; the address says the workspace, as it does for a user of several. */
  page.show = async (path) => {
    await page.goto(`${base}/ui/${path}`);
    // Before the user is known the page has a heading for screen readers alone.
    await page.locator("h1:not(.hidden)").first().waitFor();
  };
  return page;
}

const RULES = { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }, resultTypes: ["violations"] };

/**
 * The rules of accessibility that a page violates. The mode that opens a page of its own for the result is for frames of other
 * origins, which no page here has, and takes twice as long.
 */
export const violations = async (page) => (await new AxeBuilder({ page }).options(RULES).setLegacyMode().analyze()).violations;

/** Makes a page a hidden one, which does not poll. */
export const hide = (page) => page.evaluate(() => Object.defineProperty(document, "hidden", { value: true }));

/** A provider of models on this machine, which streams the same answer to each call and remembers what it was asked. */
export async function provider() {
  const asked = [];
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      asked.push({ path: request.url, key: request.headers["x-api-key"], body: JSON.parse(body) });
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      const send = (data) => response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
      for (const text of ["Good ", "morning", ", Ada."]) send({ type: "content_block_delta", delta: { type: "text_delta", text } });
      send({ type: "message_delta", usage: { output_tokens: 7 } });
      send({ type: "message_stop" });
      response.end();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, asked, stop: () => server.close() };
}

/** A receiver of webhooks on this machine: it takes what comes at /in, and fails at every other path. */
export async function receiver() {
  const server = http.createServer((request, response) => {
    request.resume();
    request.on("end", () => response.writeHead(request.url === "/in" ? 204 : 500).end(request.url === "/in" ? undefined : "not today"));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { host: `127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

/** The OpenID Connect provider of the tests of identity, in a process of its own. */
export async function identityProvider() {
  const program = new URL("../identity/provider/provider.mjs", import.meta.url).pathname;
  const child = spawn(process.execPath, [program, "0", "browser"], { stdio: ["pipe", "pipe", "inherit"] });
  const ready = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", (line) => resolve(JSON.parse(line)));
    child.on("exit", () => reject(new Error("the identity provider ended: run npm ci in tests/identity/provider")));
  });
  child.removeAllListeners("exit");
  return { issuer: ready.issuer, stop: () => child.kill() };
}

/** A proxy that serves the server below a path. */
export async function below(prefix, target) {
  const proxy = http.createServer((request, response) => {
    if (!request.url.startsWith(prefix)) return response.writeHead(404).end();
    const url = new URL(request.url.slice(prefix.length - 1), target);
    const onward = http.request(url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${proxy.address().port}${prefix.slice(0, -1)}`, stop: () => { proxy.closeAllConnections(); proxy.close(); } };
}

const AGENTS = [
  ["writer", "Writer", "Long-form writer", "claude-sonnet-5-5", "#cc3f28"],
  ["researcher", "Researcher", "Desk researcher", "claude-opus-5-5", "#2b7a68"],
  ["code-reviewer", "Code reviewer", "Reviews pull requests", "gpt-5.5", "#3567a8"],
  ["support-triage", "Support triage", "First answer to tickets", "claude-haiku-5-5", "#e0a11b"],
  ["fact-checker", "Fact checker", "Checks every claim", "gpt-5.4-mini", "#b5386c"],
  ["translator-de", "Translator DE", "English to German", "claude-sonnet-5-5", "#4c7a12"],
  ["release-notes", "Release notes", "Writes what changed", "gpt-6-sol", "#0f7288"],
  ["data-analyst", "Data analyst", "Weekly numbers", "gpt-5.5", "#000"],
  ["onboarding", "Onboarding guide", null, "a/model-of-another-catalogue", "#ffffffcc"],
];

const PERSONA = `You are the long-form writer of Studio, a small team that makes tools for people who publish.

Voice
- Plain words, short sentences, one idea each.
- Say what changed before you say how it works.

Method
1. Ask for the audience and the length if they are not given.
2. Write an outline of at most ten lines and wait for a yes.
3. Draft. Mark every claim that needs a source with [source?].

Never
- invent quotes, numbers or customers
- publish. A human does that.`;

const DAY = 86_400_000;
const WORKING = { current_task_id: "task-2291", current_task_title: "Draft the autumn release post" };

/**
 * Fills a workspace with something of each kind; gives its id and the plaintext of a key of scope admin. Webhooks are among it
 * when there is a receiver.
 */
export async function fill(server, user, { name = "Studio", hooks = null } = {}) {
  const id = await server.workspace(user, name);
  const at = (path, query = "") => `${path}?workspace_id=${id}${query}`;
  for (const [agent_id, display_name, role, model, color] of AGENTS) {
    const more = agent_id === "writer" ? { persona_prompt: PERSONA, capabilities: ["long-form", "outlines"], parameters: { formality: 50, humour: 20, warmth: 0.7 } } : {};
    await server.call(user, "POST", "/api/agents/configs", { workspace_id: id, agent_id, display_name, role, model, color, ...more });
  }
  await server.call(user, "POST", "/api/agents/configs", { workspace_id: id, agent_id: "mira", display_name: "Mira Lindqvist", agent_type: "human" });
  await server.call(user, "POST", "/api/agents/configs", { workspace_id: id, agent_id: "newsletter", display_name: "Newsletter" });
  await server.call(user, "DELETE", at("/api/agents/configs", "&agent_id=newsletter"));
  const change = { persona_prompt: PERSONA.replace("ten lines", "seven lines").replace("each.", "each. British spelling."), parameters: { formality: 35, humour: 20, warmth: 0.7 } };
  await server.call(user, "PATCH", at("/api/agents/configs", "&agent_id=writer&message=Softer%2C%20and%20shorter%20outlines"), change);
  for (const agent of ["writer", "researcher", "mira"]) await server.call(user, "PUT", at("/api/agents/status", `&agent_id=${agent}`), { status: "working", ...WORKING });
  for (const agent of ["support-triage", "fact-checker"]) await server.call(user, "PUT", at("/api/agents/status", `&agent_id=${agent}`), { status: "idle" });
  const keys = {};
  for (const [key, scope, days] of [["pipeline", "admin", null], ["ci-deploy", "write", 3], ["analytics-read", "read", 24], ["old-importer", "read", null]]) {
    const made = await server.call(user, "POST", "/api/api-keys", { workspace_id: id, name: key, environment: "production", scope, expires_at: days && new Date(Date.now() + days * DAY).toISOString() });
    keys[key] = made;
  }
  await server.call(user, "DELETE", `/api/api-keys?key_id=${keys["old-importer"].id}`);
  await server.call(user, "PUT", at("/api/workspaces/members", "&user_id=mira"), { role: "admin" });
  await server.call(user, "PUT", at("/api/provider-keys", "&provider=anthropic"), { api_key: "sk-ant-of-the-tests" });
  await server.call(keys.pipeline.key, "PATCH", at("/api/agents/configs", "&agent_id=support-triage"), { persona_prompt: "Answer first." });
  if (server.has("/api/agents/labels")) {
    await server.call(user, "PUT", at("/api/agents/labels", "&agent_id=writer&label=production"), { version: 1 });
    await server.call(user, "PUT", at("/api/agents/labels", "&agent_id=writer&label=staging"), { version: 2 });
  }
  const webhooks = [];
  for (const path of hooks ? ["in", "failing"] : []) {
    const hook = await server.call(user, "POST", "/api/webhooks", { workspace_id: id, url: `http://${hooks.host}/${path}`, description: "Tells the site that an agent has changed" });
    await server.call(user, "POST", `/api/webhooks/test?webhook_id=${hook.id}`);
    webhooks.push(hook);
  }
  return { id, keys, webhooks };
}

/** A server, a provider of models and a browser for all tests of a file. */
export function prepare() {
  const stage = {};
  before(async () => {
    stage.models = await provider();
    stage.browser = await launch();
    stage.server = await Server.start({ AGENTCFG_ANTHROPIC_BASE_URL: stage.models.url, AGENTCFG_ANTHROPIC_API_KEY: "managed-key-of-the-tests" });
  });
  after(async () => {
    await stage.browser?.close();
    await stage.server?.stop();
    stage.models?.stop();
  });
  /** A signed-in user with a filled workspace of their own. */
  stage.studio = async (user) => {
    const filled = await fill(stage.server, user);
    const page = await open(stage.browser, stage.server);
    await page.signIn(user);
    return { ...filled, page };
  };
  /** Leaves a test out where the server has no such endpoint, and says so. */
  stage.needs = (context, path) => stage.server.has(path) || context.skip(`this server has no ${path}`);
  return stage;
}
