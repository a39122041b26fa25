// The snippets that connect an application.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { prepare, violations } from "./harness.mjs";

const stage = prepare();
/** Runs a program while the provider of the test answers. */
const run = promisify(execFile);

const tools = (page) => page.getByRole("combobox", { name: "Tool" });
const box = (page) => page.locator(".snippet", { hasText: "Call a model as the agent" });
const code = async (page, pattern) => {
  const shown = box(page).locator("pre").filter({ hasText: pattern });
  await shown.waitFor();
  return shown.innerText();
};
const offered = (page) => tools(page).locator("option").allInnerTexts();

test("a model call is shown for each tool of the agent's API, with its address, label and provider", async () => {
  const { page } = await stage.studio("unn");
  const base = `${stage.server.url}/api/agents/model-calls`;
  await page.show("connect");
  const curl = await code(page, "/v1/messages");
  assert.ok(curl.startsWith(`curl ${base}/anthropic/@writer:production/v1/messages \\\n`), curl);
  assert.match(curl, /"max_tokens": 400/);
  assert.deepEqual(await offered(page), ["curl", "Anthropic SDK, Python", "Anthropic SDK, TypeScript", "Claude Code"]);
  await tools(page).selectOption("Claude Code");
  await page.getByLabel("For the agent").selectOption("researcher");
  const claude = await code(page, "@researcher");
  assert.ok(claude.startsWith(`export ANTHROPIC_BASE_URL=${base}/anthropic/@researcher\n`), claude);
  assert.match(claude, /^export ANTHROPIC_MODEL=claude-opus-5-5$/m);

  // The SDK stays the SDK where the API is another one.
  await tools(page).selectOption("Anthropic SDK, Python");
  await page.getByLabel("For the agent").selectOption("code-reviewer");
  const python = await code(page, "from openai import OpenAI");
  assert.ok(python.includes(`base_url="${base}/openai/@code-reviewer/v1"`), python);
  assert.match(python, /create\(model="",/);
  assert.deepEqual(await offered(page), ["curl", "OpenAI SDK, Python", "OpenAI SDK, TypeScript", "LangChain and LangGraph, Python", "Vercel AI SDK, TypeScript", "LiteLLM, Python", "Cursor"]);
  for (const tool of await offered(page)) {
    await tools(page).selectOption(tool);
    await page.getByRole("heading", { name: `Call a model as the agent, with ${tool}`, exact: true }).waitFor();
    const text = await box(page).locator("pre").innerText();
    assert.ok(text.includes(`${base}/openai/@code-reviewer/v1`), text);
    assert.doesNotMatch(text, /max_tokens|agents\.example\.com|\{url\}|\{model\}|writer/, tool);
    if (tool !== "Cursor") assert.match(text, /AGENTCFG_API_KEY/, tool);
    if (tool === "Cursor") assert.match(text, /gpt-5\.5/);
  }
  await tools(page).selectOption("Vercel AI SDK, TypeScript");
  await page.reload();
  await code(page, "createOpenAI");
  assert.deepEqual(await violations(page), []);

  // A model that is not in the catalogue is called by the API of OpenAI.
  await page.getByLabel("For the agent").selectOption("onboarding");
  await code(page, `${base}/openai/@onboarding/v1`);
  await tools(page).selectOption("Cursor");
  await code(page, "here a/model-of-another-catalogue");
  page.faults();
  await page.context().close();
});

test("a snippet is chosen and copied by keyboard, in a narrow window, too", async () => {
  const { page } = await stage.studio("vera");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.show("connect?agent=code-reviewer");
  await code(page, "/v1/chat/completions");
  await tools(page).focus();
  await page.keyboard.type("Lang");
  const text = await code(page, "create_agent");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  const chosen = await tools(page).boundingBox();
  assert.ok(chosen.x >= 0 && chosen.x + chosen.width <= 390, JSON.stringify(chosen));
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Copy");
  await page.keyboard.press("Enter");
  await box(page).getByRole("status").getByText("Copied").waitFor({ state: "attached" });
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
  assert.deepEqual(await violations(page), []);
  page.faults();
  await page.context().close();
});

test("where the snippets cannot be read the page says so, and tries again", async () => {
  const { page } = await stage.studio("wilma");
  page.expect(503, "/snippets.json");
  await page.route("**/snippets.json", (route) => route.fulfill({ status: 503, body: "" }));
  await page.show("connect");
  await page.getByRole("alert").getByText("The code of a model call could not be read.").waitFor();
  await page.getByText("Follow changes").waitFor();
  assert.deepEqual(await violations(page), []);
  await page.unroute("**/snippets.json");
  await page.getByRole("button", { name: "Try again" }).click();
  await code(page, "@writer:production");
  assert.equal(await page.getByRole("alert").count(), 0);
  page.faults();
  await page.context().close();
});

test("an agent whose persona needs values gets them in each snippet, and a person gets no model call", async () => {
  const { page, id, keys } = await stage.studio("wera");
  const change = (agent, body) => stage.server.call("wera", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=${agent}`, body);
  const definition = { variables: { customer: { required: true }, tone: { required: true, default: "calm" }, place: {} } };
  await change("researcher", { persona_prompt: "Write to {{customer}}.", definition });
  await change("code-reviewer", { persona_prompt: "Write to {{customer}}.", definition });
  const wanted = `Agent-Variables: {"customer":"..."}`;
  await page.show("connect?agent=researcher");
  const curl = await code(page, "@researcher");
  assert.ok(curl.includes(` -H '${wanted}' --json`), curl);
  const { stdout } = await run("bash", ["-c", curl.replace("curl ", "curl -s -o /dev/null -w '%{http_code}' ")], { env: { ...process.env, AGENTCFG_API_KEY: keys["ci-deploy"].key } });
  assert.equal(stdout, "200");
  for (const agent of ["researcher", "code-reviewer"]) {
    await page.getByLabel("For the agent").selectOption(agent);
    await code(page, `@${agent}`);
    for (const tool of await offered(page)) {
      await tools(page).selectOption(tool);
      await page.getByRole("heading", { name: `Call a model as the agent, with ${tool}`, exact: true }).waitFor();
      const text = await box(page).locator("pre").innerText();
      assert.doesNotMatch(text, /[«»]|\{variables\}|tone|place/, tool);
      if (tool !== "Cursor") assert.ok(text.includes(`{"customer":"..."}`), text);
      if (/Python/.test(tool)) await run("python3", ["-c", "import ast,sys; ast.parse(sys.argv[1])", text]);
    }
  }
  await page.getByLabel("For the agent").selectOption("mira");
  await page.getByText("Report a status").waitFor();
  await box(page).waitFor({ state: "detached" });
  page.faults();
  await page.context().close();
});

test("a provider of another name is called by its API", async () => {
  const { page, id } = await stage.studio("xenia");
  const further = { id: "claude-elsewhere", provider: "bedrock", provider_name: "Bedrock of ours", provider_api: "anthropic", display_name: "Claude elsewhere", status: "available", credential: "workspace" };
  await page.route("**/api/models?*", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: [...(await answer.json()), further] });
  });
  await stage.server.call("xenia", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { model: further.id });
  await page.show("connect?agent=writer");
  const curl = await code(page, "/model-calls/bedrock/");
  assert.match(curl, /bedrock\/@writer:production\/v1\/messages/);
  const asked = [];
  await page.route("**/api/agents/model-calls/**", (route) => {
    asked.push([new URL(route.request().url()).pathname, route.request().postDataJSON()]);
    return route.fulfill({ contentType: "text/event-stream", body: 'data: {"delta":{"text":"Good morning"}}\n\n' });
  });
  await page.show("agents/writer/try");
  await page.getByText("The version's own model · Bedrock of ours, paid with your key").waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("Hello");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".answer-cell").getByText("Good morning").waitFor();
  assert.equal(asked[0][0], "/api/agents/model-calls/bedrock/v1/messages");
  assert.equal(asked[0][1].max_tokens, 1024);
  await page.show("agents/writer");
  await page.getByText("Paid with your Bedrock of ours key.").waitFor();
  page.faults();
  await page.context().close();
});
