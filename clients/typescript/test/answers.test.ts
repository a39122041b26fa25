// Answers that are not those of the service, and those that arrive in pieces.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { Client, ConnectionError, NotFoundError, TimeoutError, UnreadableAnswerError } from "../src/index.js";
import { scripted } from "./server.js";

const workspace = "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05";
const own = { "content-type": "application/json", "x-request-id": "r1" };

/** A client of a server that answers each request so. */
async function client(answer: (response: ServerResponse) => void, timeouts = {}): Promise<Client> {
  const { url } = await scripted((_, response) => answer(response));
  return new Client({ url, key: "k", workspace, timeouts });
}

test("a change whose answer cannot be read may have been made", async () => {
  const answers: [type: string, text: string, message: RegExp][] = [
    ["application/json", '{"agent_id":"a","disp', /not the JSON that agentcfg promises/],
    ["text/html", "<h1>Sign in</h1>", /the answer is text\/html, not the JSON of agentcfg/],
    ["application/json", "null", /the answer is no JSON (object|array)/],
  ];
  for (const [type, text, message] of answers) {
    const { agents, labels, versions } = await client((response) =>
      response.writeHead(200, { ...own, "content-type": type }).end(text),
    );
    const promotion = { from: "latest", to: "production" };
    const calls: [name: string, call: () => Promise<unknown>, isChange: boolean][] = [
      ["create", () => agents.create({ agent_id: "a", display_name: "A" }), true],
      ["update", () => agents.update("a", { model: "m" }), true],
      ["delete", () => agents.delete("a"), true],
      ["rollback", () => versions.rollback("a", { version: 1 }), true],
      ["promote", () => labels.promote(promotion), true],
      ["try to promote", () => labels.promote(promotion, { dryRun: true }), false],
      ["list", () => agents.list(), false],
    ];
    for (const [name, call, isChange] of calls) {
      await assert.rejects(call, (error) => {
        assert.ok(error instanceof UnreadableAnswerError, name);
        assert.match(error.message, message, name);
        assert.deepEqual([error.mayHaveBeenApplied, error.status], [isChange, 200], name);
        return true;
      });
    }
  }
});

test("an object where an array is due is refused, and the other way round", async () => {
  const { agents, labels, versions, changes, status } = await client((response) =>
    response.writeHead(200, { ...own, "change-cursor": "c" }).end('{"a":1}'),
  );
  const lists = [
    () => agents.list(),
    () => agents.get("a"),
    () => labels.list(),
    () => labels.released("production"),
    () => versions.list("a"),
    () => versions.diffLabels("production", "latest"),
    () => changes.read("now"),
    () => status.history(),
  ];
  for (const call of lists) await assert.rejects(call, /^UnreadableAnswerError: the answer is no JSON array$/);
  const others = await client((response) => response.writeHead(200, own).end("[]"));
  const records = [
    () => others.agents.update("a", {}),
    () => others.versions.get("a"),
    () => others.versions.diff("a", 1),
    () => others.workspaces.whoAmI(),
  ];
  for (const call of records) await assert.rejects(call, /^UnreadableAnswerError: the answer is no JSON object$/);
  const unnamed = new Client({ url: others.caller.transport.base, key: "k" });
  await assert.rejects(unnamed.agents.list(), UnreadableAnswerError);
});

test("an export is read line by line, whatever pieces it comes in", async () => {
  const lines = [
    { kind: "workspace", record: { name: "é🦀\n" } },
    { kind: "audit", record: {} },
  ];
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  for (const size of [1, 7, bytes.length]) {
    const { workspaces } = await client((response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size));
      response.end();
    });
    const seen: unknown[] = [];
    for await (const line of workspaces.export()) seen.push(line);
    assert.deepEqual(seen, lines);
  }
});

test("an export that fails says so after the lines before it", async () => {
  const line = '{"kind":"audit","record":{}}\n';
  const endings: [end: (response: ServerResponse) => void, expected: abstract new (...words: never[]) => Error][] = [
    [(response) => response.socket!.destroySoon(), ConnectionError],
    [() => {}, TimeoutError],
    [(response) => response.end("<h1>"), UnreadableAnswerError],
    [(response) => response.end("[]\n"), UnreadableAnswerError],
  ];
  for (const [end, expected] of endings) {
    const { workspaces } = await client(
      (response) => response.writeHead(200, { "content-type": "application/x-ndjson" }).write(line, () => end(response)),
      { attemptMs: 300 },
    );
    const lines = workspaces.export();
    assert.equal((await lines.next()).value?.kind, "audit");
    await assert.rejects(lines.next(), expected);
  }
  const refused = await client((response) => response.writeHead(404, own).end('{"error":"no"}'));
  await assert.rejects(refused.workspaces.export().next(), NotFoundError);
});

test("an export that is left, or cancelled, ends its connection", async () => {
  for (const isCancelled of [false, true]) {
    const controller = new AbortController();
    let closed: Promise<unknown> | undefined;
    const { workspaces } = await client((response) => {
      closed = new Promise((resolve) => response.on("close", resolve));
      response.writeHead(200, { "content-type": "application/x-ndjson" }).write('{"kind":"audit","record":{}}\n');
    });
    const lines = workspaces.export({ signal: controller.signal });
    await lines.next();
    if (isCancelled) {
      controller.abort(new Error("enough"));
      await assert.rejects(lines.next(), /^Error: enough$/);
    } else {
      await lines.return();
    }
    await closed;
  }
});
