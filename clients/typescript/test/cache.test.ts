// The cache that processes of all clients share.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parseSaved, sealed } from "../src/cache.js";
import { AgentCfg } from "../src/index.js";
import { memberText } from "../src/json.js";
import { Server, temporaryFolder } from "./server.js";

const server = await Server.start();

test("the cache has the text of the server, with integers and an order of keys that this language cannot hold", async () => {
  const studio = await server.studio();
  const { key } = await studio.key();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const definition = '{"z":1,"a":{"b":1.0},"10":2,"2":[18446744073709551615],"big":1152921504606846976}';
  const body = `{"workspace_id":"${studio.id}","agent_id":"a","display_name":"A","parameters":{"big":9007199254740993},
    "definition":${definition}}`;
  const created = await fetch(`${server.url}/api/agents/configs`, { method: "POST", headers, body });
  assert.equal(created.status, 201, await created.text());
  await studio.owner.labels.set("a", "production", { version: 1 });
  const released = async () => {
    const target = `${server.url}/api/agents/released?workspace_id=${studio.id}&label=production`;
    return await (await fetch(target, { headers })).text();
  };
  const before = await released();
  assert.ok(before.includes("9007199254740993") && before.includes("1152921504606846976"), before);
  assert.notEqual(JSON.stringify(JSON.parse(before)), before);

  const cache = join(await temporaryFolder(), "agents.json");
  const read = async () => memberText(await readFile(cache, "utf8"), "agents");
  const start = async () => await new AgentCfg({ url: server.url, key, cache }).ready();
  await (await start()).close();
  assert.equal(await read(), before, "a first start");
  // A start whose cache is current, and one with the cache of another client, which may have any order of members.
  await (await start()).close();
  assert.equal(await read(), before, "a second start");
  const { agents: _, crc32: __, ...rest } = JSON.parse(await readFile(cache, "utf8")) as { agents: unknown; crc32: unknown };
  await writeFile(cache, sealed(`{ "agents": ${before} , ${JSON.stringify(rest).slice(1)}`));
  await (await start()).close();
  assert.equal(await read(), before, "a start with the cache of another client");

  const cfg = await start();
  const changed = new Promise((resolve) => cfg.onChange(resolve));
  await studio.owner.agents.update("a", { role: "Help" });
  await studio.owner.labels.set("a", "production", { version: 2 });
  await changed;
  await cfg.close();
  const after = await released();
  assert.notEqual(after, before);
  assert.equal(await read(), after, "a release while it runs");
});

test("a cache that was altered is not served", () => {
  const state = { format: 1, workspace_id: "w", label: "production", tag: "t", cursor: "e-c5", agents: [] };
  const text = JSON.stringify(state);
  const whole = sealed(text);
  assert.equal(parseSaved(whole, "production", "w").tag, "t");
  for (const altered of [text, whole.replace("e-c5", "e-c6"), whole.replace('"t"', '"u"'), `${whole}\n`]) {
    assert.throws(() => parseSaved(altered, "production", "w"), /damaged/);
  }
  assert.equal(sealed('{"a":1}'), '{"crc32":"94da56a3","a":1}', "the other clients compute it so");
});
