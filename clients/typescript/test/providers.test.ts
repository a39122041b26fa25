import assert from "node:assert/strict";
import { after, test } from "node:test";
import { AgentCfg } from "../src/index.js";
import { Inbox, scripted, Server } from "./server.js";

interface Call {
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: { model?: string; system?: unknown; messages: { role: string; content: unknown }[]; temperature?: number };
}

test("the official SDKs call as the agent that the label releases", async () => {
  const calls = new Inbox<Call>();
  const provider = await scripted((request, response) => {
    const body = JSON.parse(request.text) as Call["body"];
    calls.put({ path: request.url!, headers: request.headers, body });
    const answer = request.url!.includes("messages")
      ? { id: "m", type: "message", role: "assistant", model: body.model, content: [{ type: "text", text: "Hi" }], usage: {} }
      : {
          id: "c",
          object: "chat.completion",
          model: body.model,
          choices: [{ index: 0, message: { role: "assistant", content: "Hello" } }],
        };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  const server = await Server.start({
    AGENTCFG_OPENAI_BASE_URL: provider.url,
    AGENTCFG_ANTHROPIC_BASE_URL: provider.url,
    AGENTCFG_OPENAI_API_KEY: "sk-of-the-server",
    AGENTCFG_ANTHROPIC_API_KEY: "sk-of-the-server",
  });
  const studio = await server.studio();
  const definition = { variables: { name: { default: "all" } }, model_settings: { temperature: 0.2 } };
  await studio.released(["support"], "production", { model: "gpt-5.5", persona_prompt: "Help {{name}}.", definition });
  await studio.released(["writer"], "production", { model: "claude-sonnet-5-5", persona_prompt: "Write." });
  // An edit that is not released does not show.
  await studio.owner.agents.update("support", { persona_prompt: "A draft." });
  // What the SDKs take from the environment is for the providers themselves.
  const ofEnvironment = "OPENAI_API_KEY OPENAI_ORG_ID OPENAI_PROJECT_ID ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN".split(" ");
  for (const name of ofEnvironment) process.env[name] = "of-the-environment";
  for (const name of ["OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"]) {
    process.env[name] = "Authorization: Bearer of-the-environment";
  }
  after(() => {
    for (const name of [...ofEnvironment, "OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"]) delete process.env[name];
  });
  const { key } = await studio.key();
  const cfg = new AgentCfg({ url: server.url, key, workspace: studio.id });
  after(() => cfg.close());

  const openai = await cfg.openai("support", { variables: { name: "Zoë 🦀" }, maxRetries: 0, defaultHeaders: { "x-own": "1" } });
  const chat = await openai.chat.completions.create({ model: "", messages: [{ role: "user", content: "Hello" }] });
  assert.equal(chat.choices[0]?.message.content, "Hello");
  const first = await calls.next("a call");
  assert.deepEqual([first.path, first.body.model, first.body.temperature], ["/v1/chat/completions", "gpt-5.5", 0.2]);
  assert.deepEqual(first.body.messages[0], { role: "system", content: "Help Zoë 🦀." });
  assert.equal(first.headers["authorization"], "Bearer sk-of-the-server");
  assert.doesNotMatch(JSON.stringify(first.headers), /of-the-environment/);

  const anthropic = await cfg.anthropic("writer", { maxRetries: 0 });
  const message = await anthropic.messages.create({ model: "", max_tokens: 9, messages: [{ role: "user", content: "Hello" }] });
  assert.deepEqual(message.content, [{ type: "text", text: "Hi" }]);
  const second = await calls.next("a call");
  assert.deepEqual([second.path, second.body.model, second.body.system], ["/v1/messages", "claude-sonnet-5-5", "Write."]);
  assert.equal(second.headers["x-api-key"], "sk-of-the-server");
  assert.doesNotMatch(JSON.stringify(second.headers), /of-the-environment/);

  // Refusals of the server have the form of the provider, so that its SDK shows them.
  const unknown = await cfg.openai("nothing", { maxRetries: 0 });
  await assert.rejects(unknown.chat.completions.create({ model: "", messages: [] }), /404 .*nothing|404 .*agent/);
  const other = await cfg.openai("support", { maxRetries: 0, provider: "nowhere" });
  await assert.rejects(other.chat.completions.create({ model: "", messages: [] }), /404/);
  assert.match(other.baseURL, /\/api\/agents\/model-calls\/nowhere\/@support:production\/v1$/);
  const without = new AgentCfg({ url: server.url, onError: () => {} });
  after(() => without.close());
  await assert.rejects(without.openai("support"), /model calls need the option key/);
});

test("a stored provider key is tested where the provider is asked for its models", async () => {
  const provider = await scripted((request, response) => {
    const accepted = request.headers["authorization"] === "Bearer sk-right";
    const answer = accepted ? { object: "list", data: [] } : { error: { message: "Incorrect API key", type: "x", code: null } };
    response.writeHead(accepted ? 200 : 401, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  const { models } = (await (await Server.start({ AGENTCFG_OPENAI_BASE_URL: provider.url })).studio()).owner;
  await models.saveProviderKey("openai", "sk-right");
  assert.deepEqual(await models.testProviderKey("openai"), { ok: true, status: 200, message: "the provider takes the key" });
  await models.saveProviderKey("openai", "sk-wrong");
  const refused = await models.testProviderKey("openai");
  assert.deepEqual([refused.ok, refused.status], [false, 401]);
  assert.match(refused.message, /Incorrect API key/);
});
