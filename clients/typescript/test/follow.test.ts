// The change feed over connections that a scripted server ends in each way.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import type { Clock } from "../src/clock.js";
import { ForbiddenError, GoneError, UnauthorizedError, UnreadableAnswerError } from "../src/errors.js";
import { follow } from "../src/follow.js";
import { Transport } from "../src/transport.js";
import { scripted } from "./server.js";

const SILENCE = 25_000;

/** Delays pass at once, but for the one that waits for a silent stream: that one passes when the test says so. */
class TestClock implements Clock {
  readonly slept: number[] = [];
  /** Whether the next silence passes. */
  isSilent = false;
  #now = 0;
  now() {
    return this.#now;
  }
  random() {
    return 0.5;
  }
  sleep(ms: number, signal?: AbortSignal) {
    if (ms === SILENCE) {
      const isOver = this.isSilent;
      this.isSilent = false;
      return isOver ? Promise.resolve() : new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
    }
    this.slept.push(ms);
    this.#now += ms;
    return Promise.resolve();
  }
}

type Connection = (response: ServerResponse) => void;

const head = { "content-type": "text/event-stream" };
const change = (cursor: string) => `event: change\nid: ${cursor}\ndata: {"cursor":"${cursor}","changes":{}}\n\n`;
const bookmark = (cursor: string) => `event: bookmark\nid: ${cursor}\ndata: {}\n\n`;
const stream =
  (...texts: string[]): Connection =>
  (response) => {
    response.writeHead(200, head);
    for (const text of texts) response.write(text);
  };
const ended =
  (...texts: string[]): Connection =>
  (response) =>
    response.writeHead(200, head).end(texts.join(""));
const refused =
  (status: number, headers: Record<string, string> = {}): Connection =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json", "x-request-id": "r", ...headers }).end('{"error":"no"}');
const page =
  (cursor: string, body: string): Connection =>
  (response) =>
    response.writeHead(200, { "change-cursor": cursor, "content-type": "application/json" }).end(body);

/** Follows a server that treats its connections so, one after the other, until there are so many items or an error. */
async function followed(connections: Connection[], count: number, onItem?: (item: string, clock: TestClock) => void) {
  const clock = new TestClock();
  const asked: string[] = [];
  const { url } = await scripted((request, response) => {
    const target = new URL(request.url!, "http://host");
    const wait = target.searchParams.get("wait");
    asked.push(`${target.searchParams.get("after")}${wait === null ? "" : ` wait ${wait}`}`);
    connections[asked.length - 1]!(response);
  });
  const controller = new AbortController();
  const transport = new Transport({ url, key: "k", clock });
  const items: string[] = [];
  let error: unknown;
  try {
    for await (const item of follow(transport, { workspaceId: "w", after: "c0", signal: controller.signal })) {
      items.push(item.type === "status" ? "status" : `${item.type} ${item.cursor}`);
      onItem?.(items.at(-1)!, clock);
      if (items.length === count) break;
    }
  } catch (failed) {
    error = failed;
  }
  return { items, error, asked, slept: clock.slept };
}

test("a stream that breaks is resumed after its last event, with backoff and jitter", async () => {
  const { items, asked, slept } = await followed(
    [ended(change("c1")), refused(502), refused(500), refused(502), ended(change("c2"), change("c3"))],
    3,
  );
  assert.deepEqual(items, ["change c1", "change c2", "change c3"]);
  assert.deepEqual(asked, ["c0", "c1", "c1", "c1", "c1"]);
  // Each delay has half of itself on top; they double, and begin again when events come.
  assert.deepEqual(slept, [300, 600, 1200, 2400]);
});

test("after an orderly end the delay is the one that the server draws", async () => {
  const end = 'event: end\ndata: {"error":"the server stops"}\n\n';
  const { items, slept } = await followed(
    [stream("retry: 3271\n\nevent: bookmark\nid: c1\ndata: {}\n\n", end), stream("retry: 99000\n\n", end), stream(change("c2"))],
    2,
  );
  assert.deepEqual(
    [items, slept],
    [
      ["bookmark c1", "change c2"],
      [3271, 10_000],
    ],
  );
});

test("a stream that is silent for too long is given up", async () => {
  const { items, asked } = await followed([stream(change("c1")), stream(change("c2"))], 2, (_, clock) => {
    clock.isSilent = true;
  });
  assert.deepEqual(
    [items, asked],
    [
      ["change c1", "change c2"],
      ["c0", "c1"],
    ],
  );
});

test("what another connection does not mend is an error", async () => {
  const cases: [Connection, abstract new (...words: never[]) => Error][] = [
    [refused(401), UnauthorizedError],
    [refused(403), ForbiddenError],
    [refused(410), GoneError],
    [stream("event: gone\ndata: {}\n\n"), GoneError],
    [stream("event: change\nid: c1\ndata: {\n\n"), UnreadableAnswerError],
    [stream("event: bookmark\ndata: {}\n\n"), UnreadableAnswerError],
  ];
  for (const [connection, expected] of cases) {
    const { error, asked } = await followed([connection], 1);
    assert.ok(error instanceof expected, String(error));
    assert.equal(asked.length, 1);
  }
});

test("where there is no room for a stream, polls replace it for a while", async () => {
  const connections = [
    refused(429, { "retry-after": "5" }),
    page("c1", '[{"cursor":"c1","changes":{}}]'),
    page("c2", "[]"),
    // The poll is refused too: the delay that the server asks for is longer than polls replace a stream.
    refused(429, { "retry-after": "61" }),
    // After that time changes are asked for before a stream is opened.
    page("c2", "[]"),
    stream(change("c3")),
  ];
  const { items, asked, slept } = await followed(connections, 5);
  assert.deepEqual(items, ["change c1", "bookmark c1", "bookmark c2", "bookmark c2", "change c3"]);
  assert.deepEqual(asked, ["c0", "c0 wait 0", "c1 wait 25", "c2 wait 25", "c2 wait 0", "c2"]);
  assert.deepEqual(slept, [300, 2_000, 2_000, 61_000]);
});

test("an event of a later release is passed over", async () => {
  const { items } = await followed([stream("event: weather\nid: c9\ndata: rain\n\n", change("c1"))], 1);
  assert.deepEqual(items, ["change c1"]);
});

test("a delay that is asked for has a bound", async () => {
  const connections = [
    refused(503, { "retry-after": "86400" }),
    refused(503, { "retry-after": "9".repeat(400) }),
    page("c1", '[{"cursor":"c1","changes":{}}]'),
  ];
  const { slept } = await followed(connections, 1);
  assert.deepEqual(slept, [300_000, 300_000]);
});

test("what a stream does not bring is polled before the next one", async () => {
  const breaks: Connection = (response) => response.socket!.destroy();
  const { items, asked } = await followed(
    [ended(), page("c1", '[{"cursor":"c1","changes":{}}]'), breaks, page("c2", "[]"), ended(change("c3"))],
    4,
  );
  assert.deepEqual(items, ["change c1", "bookmark c1", "bookmark c2", "change c3"]);
  assert.deepEqual(asked, ["c0", "c0 wait 0", "c1", "c1 wait 0", "c2"]);
});

test("a stream that brings its first bookmark alone counts as one without an event", async () => {
  // A proxy passes on the first event of each stream, and holds back the rest.
  const held = ended(bookmark("c0"));
  const connections = [held, page("c0", "[]"), held, page("c0", "[]"), held, page("c0", "[]"), page("c1", "[]")];
  const { asked } = await followed(connections, 7);
  assert.deepEqual(asked, ["c0", "c0 wait 0", "c0", "c0 wait 0", "c0", "c0 wait 0", "c0 wait 25"]);
});

test("a stream that brings a second event counts", async () => {
  const { asked } = await followed([ended(bookmark("c0"), bookmark("c1")), stream(change("c2"))], 3);
  assert.deepEqual(asked, ["c0", "c1"]);
});

test("after three streams without an event polls replace them for minutes", async () => {
  const silent = [ended(), page("c0", "[]"), ended(), page("c0", "[]"), ended()];
  // Each poll is answered at once, so that the next one is two seconds later.
  const polls = Array.from({ length: 150 }, () => page("c1", "[]"));
  const { asked } = await followed([...silent, ...polls, ended(change("c2")), stream(change("c3"))], 2 + 150 + 2);
  assert.deepEqual(asked.slice(0, 7), ["c0", "c0 wait 0", "c0", "c0 wait 0", "c0", "c0 wait 0", "c1 wait 25"]);
  assert.deepEqual(new Set(asked.slice(6, 155)), new Set(["c1 wait 25"]));
  // One stream with an event is enough to go on with streams.
  assert.deepEqual(asked.slice(155), ["c1", "c2"]);
});

test("polls leave half of the rate limit", async () => {
  const limited =
    (remaining: string): Connection =>
    (response) => {
      const limit = { "x-ratelimit-limit": "100", "x-ratelimit-remaining": remaining, "x-ratelimit-reset": "40" };
      response.writeHead(200, { "change-cursor": "c1", "content-type": "application/json", ...limit }).end("[]");
    };
  const { slept } = await followed([refused(429), limited("9"), limited("1"), limited("9")], 3);
  // Four of nine requests in the seconds that are left; then the rest of the window.
  assert.deepEqual(slept, [300, 9_925, 29_775]);
});

test("comments of a proxy keep no stream live", { timeout: 10_000 }, async () => {
  const passed: (() => void)[] = [];
  const clock: Clock = {
    now: () => 0,
    random: () => 0,
    sleep: (ms, signal) =>
      ms !== SILENCE
        ? Promise.resolve()
        : new Promise((resolve) => {
            passed.push(resolve);
            signal?.addEventListener("abort", () => resolve());
          }),
  };
  const asked: string[] = [];
  const body = (...pieces: (string | (() => void))[]) =>
    new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          const piece = pieces.shift();
          if (typeof piece === "string") controller.enqueue(new TextEncoder().encode(piece));
          else piece?.();
        },
      },
      { highWaterMark: 0 },
    );
  // The silence that began with the bookmark passes after the comment.
  const silent = body(bookmark("c0") + bookmark("c1"), ": still here\n", () => passed[1]!());
  const bodies = [silent, body(change("c2"))];
  const transport = new Transport({
    url: "http://agents.example.com",
    key: "k",
    clock,
    fetch: async (input) => {
      asked.push(new URL(String(input)).searchParams.get("after")!);
      return new Response(bodies.shift()!, { headers: head });
    },
  });
  for await (const item of follow(transport, { workspaceId: "w", after: "c0", signal: new AbortController().signal })) {
    if (item.type === "change") break;
  }
  assert.deepEqual(asked, ["c0", "c1"]);
});
