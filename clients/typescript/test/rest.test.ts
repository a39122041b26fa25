import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import * as agentcfg from "../src/index.js";
import { OPERATIONS } from "../src/generated.js";
import { Server } from "./server.js";

const server = await Server.start();

test("agents are created, changed under a condition, deactivated and restored", async () => {
  const studio = await server.studio();
  const { agents } = await studio.client();
  const made = await agents.create({ agent_id: "support", display_name: "Support" }, { message: "the first" });
  assert.deepEqual([made.version, made.value.workspace_id], [1, studio.id]);
  const changed = await agents.update("support", { model: "m1", role: "Help" }, { ifMatch: made.etag });
  assert.deepEqual([changed.version, changed.value.model], [2, "m1"]);
  await assert.rejects(agents.update("support", { model: "m2" }, { ifMatch: made.etag }), agentcfg.PreconditionFailedError);
  await assert.rejects(agents.delete("support", { ifMatch: made.etag }), agentcfg.PreconditionFailedError);
  await assert.rejects(agents.update("support", { display_name: "" }), (error) => {
    assert.ok(error instanceof agentcfg.InvalidRequestError);
    assert.match(error.message, /display_name/);
    assert.match(error.requestId!, /./);
    return true;
  });
  await assert.rejects(agents.create({ agent_id: "support", display_name: "Again" }), agentcfg.ConflictError);
  const list = await agents.list();
  assert.deepEqual(
    list.value.map(({ agent_id }) => agent_id),
    ["support"],
  );
  assert.ok(list.cursor);
  assert.equal(await agents.listIfChanged(list.etag), undefined);
  assert.equal((await agents.get("support")).etag, changed.etag);
  await agents.delete("support", { ifMatch: changed.etag });
  assert.equal((await agents.listIfChanged(list.etag))?.value.length, 0);
  await assert.rejects(agents.get("support"), agentcfg.NotFoundError);
  assert.equal((await agents.list({ state: "inactive" })).value.length, 1);
  assert.equal((await agents.restore("support")).value.is_active, true);
});

test("a refusal names the fields", async () => {
  const { agents } = await (await server.studio()).client();
  const failed = async (call: Promise<unknown>) => {
    const error: unknown = await call.then(
      () => undefined,
      (failure: unknown) => failure,
    );
    assert.ok(error instanceof agentcfg.AgentCfgError);
    return error;
  };
  const parameters = { "größe, x": "y" as never };
  const body = { agent_id: "x", display_name: " ", capabilities: ["a", ""], parameters };
  const invalid = await failed(agents.create(body));
  assert.deepEqual(invalid.fields, ["display_name", "capabilities[1]", "parameters.größe, x"]);
  assert.deepEqual((await failed(agents.list({ limit: 0 }))).fields, ["limit"]);
  const unknown = Object.fromEntries(Array.from({ length: 1000 }, (_, number) => [`unknown_${number}`, 1]));
  const { fields } = await failed(agents.create({ agent_id: "x", display_name: "X", ...unknown }));
  assert.ok(fields[0] === "unknown_0" && fields.length > 10 && fields.length < 1000, String(fields.length));
  assert.deepEqual((await failed(agents.update("nothing", {}))).fields, []);
});

test("a 412 has the current tag for callers that may read", async () => {
  // A longer record is answered in gzip, which has a tag of its own.
  for (const length of [10, 5000]) {
    const studio = await server.studio();
    const { agents } = studio.owner;
    const stale = await agents.create({ agent_id: "a", display_name: "A", persona_prompt: "x".repeat(length) });
    await agents.update("a", { model: "one" });
    const current = await agents.get("a");
    const cases: [agentcfg.Permission[], string | undefined][] = [
      [["agents:configure", "agents:read"], current.etag],
      [["agents:configure"], undefined],
    ];
    for (const [permissions, tag] of cases) {
      const client = await studio.client({ scope: "write", permissions });
      await assert.rejects(client.agents.update("a", { model: "two" }, { ifMatch: stale.etag }), (error) => {
        assert.ok(error instanceof agentcfg.PreconditionFailedError);
        assert.equal(error.currentEtag, tag);
        return true;
      });
    }
    await agents.update("a", { model: "two" }, { ifMatch: current.etag });
  }
});

test("apply changes many at once, and tries without a change", async () => {
  const studio = await server.studio();
  const { agents } = await studio.client();
  const body = { agents: ["a", "b"].map((agent_id) => ({ agent_id, display_name: agent_id })), set: "docs", prune: true };
  const plan = await agents.apply(body, { dryRun: true });
  assert.deepEqual(
    plan.results.map(({ action }) => action),
    ["create", "create"],
  );
  assert.equal((await agents.list()).value.length, 0);
  await agents.apply({ ...body, base: plan.cursor });
  await assert.rejects(
    agents.apply({ ...body, agents: [{ agent_id: "a", display_name: "A" }], base: plan.cursor }),
    agentcfg.PreconditionFailedError,
  );
});

test("versions are listed, read, compared and rolled back", async () => {
  const studio = await server.studio();
  const { agents, versions, labels } = await studio.client();
  await agents.create({ agent_id: "support", display_name: "Support", persona_prompt: "one\n" });
  await agents.update("support", { persona_prompt: "two\n" }, { message: "say two" });
  const all = await versions.list("support");
  assert.deepEqual(
    all.map(({ version, message }) => [version, message]),
    [
      [2, "say two"],
      [1, null],
    ],
  );
  assert.deepEqual((await versions.list("support", { limit: 1, before: 2 })).length, 1);
  await labels.set("support", "production", { version: 1 });
  assert.equal((await versions.get("support", { label: "production" })).config.persona_prompt, "one\n");
  assert.equal((await versions.get("support", { at: new Date() })).version, 2);
  await assert.rejects(versions.get("support", { label: "staging" }), agentcfg.NotFoundError);
  const diff = await versions.diff("support", "production", 2);
  assert.match(diff.prompt_diff!, /-one\n\+two/);
  const back = await versions.rollback("support", { version: 1 }, { message: "back" });
  assert.deepEqual([back.version, back.value.persona_prompt], [3, "one\n"]);
  // A client that has not asked for its workspace yet, and a user of several workspaces.
  for (const client of [() => studio.client(), () => server.session("ada", studio.id)]) {
    assert.deepEqual(
      (await (await client()).versions.current()).map(({ version }) => version),
      [3],
    );
    assert.deepEqual(
      (await (await client()).versions.diffLabels("production", "latest")).map(({ agent_id, from, to }) => [agent_id, from, to]),
      [["support", 1, 3]],
    );
  }
});

test("labels are set, promoted, listed with their history, and restored", async () => {
  const studio = await server.studio();
  const { agents, labels, auditLog } = await studio.client();
  await agents.apply({ agents: ["a", "b"].map((agent_id) => ({ agent_id, display_name: agent_id })), set: "docs" });
  await agents.create({ agent_id: "c", display_name: "c" });
  assert.deepEqual((await labels.promote({ from: "latest", to: "staging" }, { dryRun: true })).length, 3);
  assert.deepEqual(await labels.list(), []);
  const base = (await labels.released("staging")).cursor!;
  await labels.promote({ from: "latest", to: "staging", set: "docs" }, { message: "try" });
  assert.deepEqual(
    (await labels.list({ label: "staging" })).map(({ agent_id, version }) => [agent_id, version]),
    [
      ["a", 1],
      ["b", 1],
    ],
  );
  await assert.rejects(labels.promote({ from: "latest", to: "staging", base }), agentcfg.PreconditionFailedError);
  await agents.update("a", { model: "m2" });
  await labels.set("a", "staging", { label: "latest" });
  await assert.rejects(labels.set("a", "staging", { version: 1, expected_version: 1 }), agentcfg.PreconditionFailedError);
  const history = await labels.history("staging");
  assert.deepEqual(
    history.map(({ message, moves }) => [message, moves.length]),
    [
      [null, 1],
      ["try", 2],
    ],
  );
  assert.equal((await labels.history("staging", { agent_id: "b", limit: 1 })).length, 1);
  const revision = history[1]!.revision;
  assert.deepEqual((await labels.restore("staging", revision, { dryRun: true }))[0]?.version, 1);
  assert.deepEqual(
    (await labels.restore("staging", revision, { message: "worse" })).map(({ agent_id, version, previous_version }) => [
      agent_id,
      version,
      previous_version,
    ]),
    [["a", 1, 2]],
  );
  const released = await labels.released("staging", { agent_id: "a" });
  assert.deepEqual([released.value[0]?.version, released.value[0]?.config.model], [1, null]);
  const all = await labels.released("staging");
  assert.equal(await labels.releasedIfChanged(all.etag, "staging"), undefined);
  assert.equal((await labels.releasedIfChanged(released.etag, "staging"))?.etag, all.etag);
  const { labels: pinned } = await studio.client({ scope: "read", label: "staging" });
  assert.equal((await pinned.released()).etag, all.etag);
  assert.equal(await pinned.releasedIfChanged(all.etag), undefined);
  await labels.remove("a", "staging");
  await assert.rejects(labels.remove("a", "staging"), agentcfg.NotFoundError);
  const [restored] = await auditLog.list({ action: "label.restored", limit: 1 });
  assert.deepEqual([restored?.message, restored?.target.type], ["worse", "workspace"]);
});

test("status reports and prompts", async () => {
  const studio = await server.studio();
  const { agents, status, prompts, labels } = await studio.client();
  const definition = { variables: { name: { required: true } }, model_settings: { temperature: 0.2 } };
  await agents.create({ agent_id: "support", display_name: "Support", persona_prompt: "Help {{name}}", definition });
  await status.report("support", { status: "working", current_task_id: "T-1", current_task_title: "Answer" });
  assert.deepEqual(
    (await status.list()).map((entry) => [entry.status, entry.current_task_title]),
    [["working", "Answer"]],
  );
  const { changes, since } = await status.history({ agent_id: "support" });
  assert.equal(changes.at(-1)?.current_task_title, "Answer");
  assert.ok(Date.parse(since!) <= Date.parse(changes[0]!.at));
  await assert.rejects(status.report("support", { status: "working" }), agentcfg.InvalidRequestError);
  await assert.rejects(status.report("nothing", { status: "idle" }), agentcfg.NotFoundError);
  const rendered = await prompts.render("support", { name: "Ada" });
  assert.deepEqual([rendered.prompt, rendered.model_settings], ["Help Ada", { temperature: 0.2 }]);
  await assert.rejects(prompts.render("support"), /variables.name is required/);
  await labels.set("support", "production", { version: 1 });
  assert.equal((await prompts.render("support", { name: "é🦀" }, { label: "production" })).version, 1);
});

test("keys are created, rotated and revoked; a limit is waited out", async () => {
  const studio = await server.studio();
  const { apiKeys } = studio.owner;
  const key = await apiKeys.create({ name: "pipeline", environment: "production", scope: "read", rate_limit: 1 });
  const reader = new agentcfg.Client({ url: server.url, key: key.key, workspace: studio.id, timeouts: { totalMs: 5_000 } });
  await reader.agents.list();
  assert.deepEqual([reader.rateLimit?.limit, reader.rateLimit?.remaining], [1, 0]);
  await assert.rejects(reader.agents.list(), (error) => {
    assert.ok(error instanceof agentcfg.RateLimitedError);
    assert.ok(error.retryAfterMs! > 5_000 && error.rateLimit?.remaining === 0);
    return true;
  });
  const next = await apiKeys.rotate(key.id, 60);
  assert.notEqual(next.key, key.key);
  await apiKeys.revoke(next.id);
  const revoked = new agentcfg.Client({ url: server.url, key: next.key });
  await assert.rejects(revoked.workspaces.whoAmI(), agentcfg.UnauthorizedError);
  assert.equal((await apiKeys.list()).find(({ id }) => id === next.id)?.revoked_at === null, false);
  await assert.rejects(reader.apiKeys.create({ name: "x", environment: "production", scope: "read" }), agentcfg.AgentCfgError);
});

test("members, models, provider keys and the workspace itself", async () => {
  const studio = await server.studio();
  const { members, models, workspaces } = studio.owner;
  await members.set("bob", "viewer");
  assert.deepEqual((await members.list()).map(({ role }) => role).sort(), ["owner", "viewer"]);
  const bob = await server.session("bob");
  assert.equal(await bob.workspaceId(), studio.id, "the only workspace need not be named");
  await assert.rejects(bob.agents.create({ agent_id: "x", display_name: "X" }), agentcfg.ForbiddenError);
  await members.remove("bob");
  await assert.rejects(bob.agents.list(), agentcfg.ForbiddenError);
  await models.saveProviderKey("openai", "sk-test");
  assert.deepEqual(
    (await models.providerKeys()).map(({ provider }) => provider),
    ["openai"],
  );
  assert.equal((await models.list()).find(({ provider }) => provider === "openai")?.credential, "workspace");
  await models.deleteProviderKey("openai");
  const kinds = new Set<string>();
  for await (const line of workspaces.export()) kinds.add(line.kind);
  assert.ok(["workspace", "member", "audit"].every((kind) => kinds.has(kind)));
  await assert.rejects((await studio.client()).workspaces.export().next(), agentcfg.ForbiddenError);
  await workspaces.update({ name: "Studio 2" });
  assert.ok((await workspaces.list()).some(({ name }) => name === "Studio 2"));
  await assert.rejects(workspaces.delete("Studio"), agentcfg.InvalidRequestError);
  await workspaces.delete("Studio 2");
  await assert.rejects(studio.owner.agents.list(), agentcfg.ForbiddenError);
});

test("a credential with no workspace, or several, needs the option", async () => {
  const eve = await server.session("eve");
  await assert.rejects(eve.workspaceId(), /the option workspace is required: the credential has 0 workspaces \(none\)/);
  const first = await eve.workspaces.create("One");
  assert.equal(await eve.workspaceId(), first.id, "a failure is not kept");
  await eve.workspaces.create("Two");
  await assert.rejects((await server.session("eve")).agents.list(), /has 2 workspaces/);
});

test("changes are read in pages and followed over connections", async () => {
  const studio = await server.studio();
  const { agents, changes, status } = await studio.client();
  const { cursor } = await agents.list();
  await agents.create({ agent_id: "support", display_name: "Support" });
  const page = await changes.read(cursor!, { limit: 10 });
  assert.deepEqual(
    page.events.map(({ type }) => type),
    ["agent.created"],
  );
  assert.deepEqual((await changes.read(page.cursor!, { wait: 1 })).events, []);
  const seen: string[] = [];
  for await (const item of changes.follow(cursor!, { status: true })) {
    seen.push(item.type === "change" ? item.event.type : item.type === "status" ? `status ${item.entry.status}` : item.type);
    if (seen.includes("agent.created") && seen.includes("status offline") && !seen.includes("status idle")) {
      await status.report("support", { status: "idle" });
    }
    if (seen.includes("status idle")) break;
  }
  assert.ok(seen.includes("bookmark"));
  await studio.released(["writer"]);
  for await (const item of changes.follow(page.cursor!, { label: "production" })) {
    if (item.type !== "change" || item.event.released === undefined) continue;
    assert.deepEqual(item.event.released, (await studio.owner.labels.released("production")).value);
    assert.deepEqual(Object.keys(item), ["type", "cursor", "event"]);
    break;
  }
  const stranger = (cursor!.startsWith("x") ? "y" : "x") + cursor!.slice(1);
  await assert.rejects(changes.follow(stranger).next(), agentcfg.GoneError);
  const controller = new AbortController();
  const stopped = changes.follow("now", { signal: controller.signal });
  await stopped.next();
  controller.abort(new Error("enough"));
  await assert.rejects(async () => {
    for await (const _ of stopped);
  }, /enough/);
});

test("the server tells whether it is up and ready", async () => {
  const { system } = new agentcfg.Client({ url: server.url });
  assert.deepEqual(await system.health(), { status: "ok" });
  assert.equal((await system.readiness()).status, "ready");
});

test("an operator works in all workspaces", async () => {
  const server = await Server.start({ AGENTCFG_OPERATORS: "olga" });
  const studio = await server.studio();
  const { operators } = await server.session("olga");
  assert.deepEqual(
    (await operators.workspaces()).map(({ id }) => id),
    [studio.id],
  );
  const key = await studio.owner.apiKeys.create({ name: "x", environment: "production", scope: "read" });
  assert.equal((await operators.apiKey(key.id)).workspace_id, studio.id);
  await operators.revokeApiKey(key.id);
  await assert.rejects(operators.revokeApiKey(key.id), agentcfg.NotFoundError);
  await studio.owner.members.set("bob", "viewer");
  await operators.removeUser("bob");
  assert.equal((await studio.owner.members.list()).length, 1);
  await assert.rejects(operators.removeUser("stranger"), agentcfg.NotFoundError);
  await assert.rejects(studio.owner.operators.workspaces(), agentcfg.ForbiddenError);
});

test("each operation of the document has a method of the client, or a reason to have none", async () => {
  // A browser signs in with these.
  const without = new Set(["openSession", "closeSession"]);
  const sources = ["agents", "versions", "labels", "status", "prompts", "changes", "administration", "caller"];
  const folder = new URL("../../src/rest/", import.meta.url);
  const texts = await Promise.all(sources.map((name) => readFile(new URL(`${name}.ts`, folder), "utf8")));
  const used = texts.join("\n");
  const missing = Object.keys(OPERATIONS).filter(
    (name) => !without.has(name) && !new RegExp(`"${name}"|OPERATIONS\\.${name}\\b`).test(used),
  );
  assert.deepEqual(missing, []);
});

test("the version of the package is the one that requests name", async () => {
  const text = await readFile(new URL("../../package.json", import.meta.url), "utf8");
  assert.equal((JSON.parse(text) as { version: string }).version, agentcfg.VERSION);
});
