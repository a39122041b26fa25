import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import type { Clock } from "../src/clock.js";
import * as errors from "../src/errors.js";
import {
  baseUrl,
  currentEtag,
  etag,
  faultFields,
  type ApiRequest,
  rateLimit,
  retryAfterMs,
  Transport,
} from "../src/transport.js";
import { systemClock } from "../src/clock.js";
import { scripted } from "./server.js";

type Answer = [status: number, headers: Record<string, string>, body: string] | "break" | "silence";

/** Time passes by sleeping alone; the jitter is half of each delay. */
class TestClock implements Clock {
  readonly slept: number[] = [];
  #now = 0;
  now() {
    return this.#now;
  }
  random() {
    return 0.5;
  }
  async sleep(ms: number) {
    this.slept.push(ms);
    this.#now += ms;
  }
}

const own = { "content-type": "application/json", "x-request-id": "r1" };
const error = '{"error":"no"}';

/** Sends a request to a server that gives these answers, one after the other; the last one is repeated. */
async function exchange(answers: Answer[], request: Partial<ApiRequest>, options: object = {}) {
  let attempts = 0;
  const { url } = await scripted((_, response) => {
    const answer = answers[Math.min(attempts, answers.length - 1)]!;
    attempts += 1;
    if (answer === "break") response.socket!.destroy();
    else if (answer !== "silence") response.writeHead(answer[0], answer[1]).end(answer[2]);
  });
  const clock = new TestClock();
  const transport = new Transport({ url, key: "svc_live_x", clock, ...options });
  const result = await transport
    .send({ method: "GET", path: "/x", ...request })
    .catch((failed: unknown) => failed as errors.AgentCfgError);
  return { result, attempts, slept: clock.slept, transport };
}

const done: Answer = [200, own, "[]"];
const post = { method: "POST", body: {} };

test("a call is repeated where that is safe", async () => {
  const unavailable = { ...own, "retry-after": "2" };
  const cases: [name: string, first: Answer, reads: boolean, changes: boolean][] = [
    ["429", [429, own, error], true, true],
    ["503 of the service with Retry-After", [503, unavailable, error], true, true],
    ["503 of the service without Retry-After", [503, own, error], true, false],
    ["503 of a proxy with Retry-After", [503, { "retry-after": "2", "content-type": "text/html" }, "<p>"], true, false],
    ["502", [502, own, error], true, false],
    ["504", [504, own, error], true, false],
    ["a broken connection", "break", true, false],
    ["500", [500, own, error], false, false],
    ["404", [404, own, error], false, false],
    ["a redirect", [302, { location: "/login" }, ""], false, false],
  ];
  for (const [name, first, reads, changes] of cases) {
    const read = await exchange([first, done], {});
    assert.equal(read.attempts, reads ? 2 : 1, `a read after ${name}`);
    const change = await exchange([first, done], post);
    assert.equal(change.attempts, changes ? 2 : 1, `a change after ${name}`);
    const repeated = await exchange([first, done], { ...post, idempotent: true });
    assert.equal(repeated.attempts, reads ? 2 : 1, `an idempotent change after ${name}`);
  }
});

test("delays double, have jitter, and are added to Retry-After", async () => {
  const { result, slept, attempts } = await exchange([[429, { ...own, "retry-after": "3" }, error]], post);
  assert.ok(result instanceof errors.RateLimitedError);
  assert.equal(result.retryAfterMs, 3000);
  assert.equal(attempts, 4);
  assert.deepEqual(slept, [3150, 3300, 3600]);
});

test("a delay that does not fit into the time of the call is not begun", async () => {
  const { result, slept, attempts } = await exchange([[429, { ...own, "retry-after": "60" }, error]], {});
  assert.ok(result instanceof errors.RateLimitedError);
  assert.deepEqual([slept, attempts], [[], 1]);
});

test("no connection is repeated, whatever the request", async () => {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const { port } = closed.address() as { port: number };
  await new Promise((resolve) => closed.close(resolve));
  const clock = new TestClock();
  const transport = new Transport({ url: `http://127.0.0.1:${port}`, clock });
  await assert.rejects(transport.send({ path: "/x", ...post }), (failed) => {
    assert.ok(failed instanceof errors.ConnectionError);
    assert.match(failed.message, /no connection could be made \(ECONNREFUSED\)/);
    assert.deepEqual([failed.isUnsent, failed.mayHaveBeenApplied], [true, false]);
    return true;
  });
  assert.equal(clock.slept.length, 3);
});

test("an answer that does not come is a timeout, and the change may have been made", async () => {
  const { result, attempts } = await exchange(["silence"], post, { timeouts: { attemptMs: 50 } });
  assert.ok(result instanceof errors.TimeoutError);
  assert.deepEqual([attempts, result.mayHaveBeenApplied], [1, true]);
});

test("the caller can cancel a call", async () => {
  const controller = new AbortController();
  const { url } = await scripted(() => controller.abort(new Error("enough")));
  const transport = new Transport({ url, clock: new TestClock() });
  await assert.rejects(transport.send({ method: "GET", path: "/x", signal: controller.signal }), /^Error: enough$/);
});

test("a key that is a function is asked before each attempt", async () => {
  const sent: unknown[] = [];
  const { url } = await scripted((request, response) => {
    sent.push(request.headers.authorization);
    response.writeHead(sent.length === 1 ? 429 : 200, own).end(error);
  });
  let asked = 0;
  const transport = new Transport({ url, key: async () => `token${(asked += 1)}`, clock: new TestClock() });
  await transport.send({ method: "GET", path: "/x" });
  assert.deepEqual(sent, ["Bearer token1", "Bearer token2"]);
  const broken = new Transport({ url, key: () => "", clock: new TestClock() });
  await assert.rejects(broken.send({ method: "GET", path: "/x" }), /the key is empty/);
});

test("an error has the class of its status, the server's message and the request", async () => {
  const classes = {
    400: errors.InvalidRequestError,
    401: errors.UnauthorizedError,
    403: errors.ForbiddenError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    410: errors.GoneError,
    412: errors.PreconditionFailedError,
    422: errors.LimitReachedError,
    429: errors.RateLimitedError,
    503: errors.UnavailableError,
    418: errors.StatusError,
  };
  for (const [status, expected] of Object.entries(classes)) {
    const answer: Answer = [Number(status), own, '{"error":"display_name is required"}'];
    const { result } = await exchange([answer], post, { retry: { maxRetries: 0 } });
    assert.ok(result instanceof expected, status);
    assert.ok(result instanceof errors.AgentCfgError);
    assert.equal(result.name, expected.name);
    assert.deepEqual([result.status, result.message, result.requestId], [Number(status), "display_name is required", "r1"]);
    assert.equal(result.mayHaveBeenApplied, status === "503", status);
  }
});

test("what is not of the service is named as such", async () => {
  const page: Answer = [502, { "content-type": "text/html" }, "<h1>Bad gateway</h1>"];
  const proxy = await exchange([page], post);
  assert.match(String(proxy.result), /an error in text\/html that is not from agentcfg/);
  const redirect = await exchange([[302, { location: "https://login" }, ""]], {});
  assert.match(String(redirect.result), /a redirect to https:\/\/login, which is not followed/);
});

test("URLs and keys that cannot be meant are refused before anything is sent", () => {
  const urls = { "https://host/agentcfg/": "https://host/agentcfg", " http://127.0.0.1:7420 ": "http://127.0.0.1:7420" };
  for (const [given, kept] of Object.entries(urls)) assert.equal(baseUrl(given), kept);
  const bad = {
    "host:80": /http:\/\//,
    "": /http:\/\//,
    "http://u:p@host": /user or password/,
    "http://h?x=1": /query or fragment/,
  };
  for (const [given, message] of Object.entries(bad)) assert.throws(() => baseUrl(given), message, given);
  for (const key of ["", "a b", "ä", "a\n"]) {
    assert.throws(() => new Transport({ url: "http://host", key, clock: new TestClock() }), errors.InputError);
  }
});

test("headers of limits are read, or taken for absent", () => {
  const limit = { "x-ratelimit-limit": "100", "x-ratelimit-remaining": "99", "x-ratelimit-reset": "1700000000" };
  assert.deepEqual(rateLimit(new Headers(limit)), { limit: 100, remaining: 99, reset: new Date(1_700_000_000_000) });
  assert.equal(rateLimit(new Headers({ ...limit, "x-ratelimit-remaining": "-1" })), undefined);
  const after = (headers: Record<string, string>) => retryAfterMs(new Headers(headers));
  const date = { "retry-after": "Fri, 20 Nov 2026 09:30:30 GMT" };
  assert.equal(after({ "retry-after": "7" }), 7000);
  assert.equal(after({ ...date, date: "Fri, 20 Nov 2026 09:30:00 GMT" }), 30_000);
  assert.equal(after({ ...date, date: "Fri, 20 Nov 2026 10:00:00 GMT" }), 0);
  for (const headers of [date, { "retry-after": "soon" }, {}]) assert.equal(after(headers as Record<string, string>), undefined);
});

test("a 400 names the faulty fields, and a 412 the current tag", async () => {
  const headers = { ...own, "fault-fields": "display_name, capabilities[2]", etag: '"k3j9x0ab-a9"' };
  const facts = async (status: number) => {
    const { result } = await exchange([[status, headers, error]], post, { retry: { maxRetries: 0 } });
    assert.ok(result instanceof errors.StatusError, String(status));
    return [result.fields, result.currentEtag];
  };
  assert.deepEqual(await facts(400), [["display_name", "capabilities[2]"], undefined]);
  assert.deepEqual(await facts(412), [[], '"k3j9x0ab-a9"']);
  assert.deepEqual(await facts(409), [[], undefined]);
  const without = await exchange([[400, own, error]], post);
  assert.deepEqual((without.result as errors.AgentCfgError).fields, []);
});

test("the names of fields and tags are read, whatever a proxy has made of them", () => {
  const names: [header: string, fields: string[]][] = [
    ["role", ["role"]],
    ["parameters.gr%C3%B6%C3%9Fe%2C%20x, parameters.%22%22", ["parameters.größe, x", 'parameters.""']],
    ["", []],
    [" , ,role,", ["role"]],
    ["%ff, %C3, role, %, %zz", ["role", "%", "%zz"]],
    ["gr\xf6\xdfe, role", []],
  ];
  for (const [header, fields] of names) {
    assert.deepEqual(faultFields(new Headers({ "fault-fields": header })), fields, header);
  }
  assert.deepEqual(faultFields(new Headers()), []);
  const tag = '"k3j9x0ab-a9"';
  for (const text of [tag, '"k3j9x0ab-a9-gzip"']) {
    assert.deepEqual([etag(new Headers({ etag: text })), currentEtag(new Headers({ etag: text }))], [tag, tag]);
  }
  for (const text of ['W/"k3j9x0ab-a9"', "k3j9x0ab-a9", '""', '"', "", '"a" b"', '"\xe4"']) {
    assert.equal(currentEtag(new Headers({ etag: text })), undefined, text);
  }
  assert.equal(currentEtag(new Headers()), undefined);
});

test("what changes nothing may not have been applied, whatever its method", async () => {
  const { result, attempts } = await exchange([[504, own, error]], { ...post, isRead: true });
  assert.ok(result instanceof errors.StatusError);
  assert.deepEqual([attempts, result.mayHaveBeenApplied], [4, false]);
});

test("the status of a failure counts, however long its page is", async () => {
  const { url } = await scripted((_, response) => {
    response.writeHead(404, { "content-type": "text/html" });
    const page = "<p>".repeat(10_000);
    const write = () => {
      while (!response.closed && response.write(page));
    };
    response.on("drain", write);
    write();
  });
  const transport = new Transport({ url, clock: new TestClock() });
  await assert.rejects(transport.send({ method: "GET", path: "/x" }), errors.NotFoundError);
});

test("a time limit may be longer than a timer of the runtime", async () => {
  for (const ms of [2 ** 31, Number.POSITIVE_INFINITY]) {
    const { attempts } = await exchange([done], {}, { timeouts: { attemptMs: ms, totalMs: ms } });
    assert.equal(attempts, 1);
    const stop = new AbortController();
    let hasPassed = false;
    const sleep = systemClock.sleep(ms, stop.signal).then(() => (hasPassed = true));
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(hasPassed, false, `${ms} ms`);
    stop.abort();
    await sleep;
  }
  const { url } = await scripted((_, response) => setTimeout(() => response.writeHead(200, own).end("[]"), 50));
  const patient = new Transport({ url, clock: new TestClock(), timeouts: { attemptMs: 2 ** 40, totalMs: 2 ** 40 } });
  assert.equal((await patient.send({ method: "GET", path: "/x" })).status, 200);
});

test("what cannot be sent is named before", async () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  const requests: [Partial<ApiRequest>, object, RegExp][] = [
    [{ ...post, body: circle }, {}, /the body cannot be written as JSON/],
    [{ ...post, body: { definition: { a: { b: NaN } } } }, {}, /^definition\.a\.b is NaN, which JSON cannot hold$/],
    [{ ...post, body: { agents: [{}, { x: -Infinity }] } }, {}, /^agents\[1\]\.x is -Infinity, which JSON cannot hold$/],
    [{ query: { name: "\ud800" } }, {}, /a parameter holds half of a surrogate pair/],
    [{}, { key: () => undefined }, /the key is empty/],
  ];
  for (const [request, options, message] of requests) {
    const { result, attempts } = await exchange([done], request, options);
    assert.ok(result instanceof errors.InputError, String(result));
    assert.match(result.message, message);
    assert.equal(attempts, 0);
  }
});
