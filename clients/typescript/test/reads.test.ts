// What a mirror asks for, and when. A script answers, because a server cannot be made to behave like this.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cache } from "../src/cache.js";
import type { Clock } from "../src/clock.js";
import { Mirror } from "../src/mirror.js";
import type { SnapshotChange } from "../src/snapshot.js";
import { Transport } from "../src/transport.js";

const SILENCE = 25_000;

/** Delays pass at once, but for those of streams that are silent. */
class TestClock implements Clock {
  readonly slept: number[] = [];
  time = 1_000_000;
  now() {
    return this.time;
  }
  random() {
    return 0.5;
  }
  sleep(ms: number, signal?: AbortSignal) {
    if (ms === SILENCE) return new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
    this.slept.push(ms);
    this.time += ms;
    return Promise.resolve();
  }
}

/** A cache that keeps the texts that are written. */
class TestCache implements Cache {
  readonly texts: string[] = [];
  load() {
    return Promise.resolve(this.texts.at(-1));
  }
  save(text: string) {
    this.texts.push(text);
    return Promise.resolve();
  }
}

/** A mirror whose requests are answered one after the other. It is closed when there is no further answer. */
async function played(answers: (Response | ((mirror: Mirror, clock: TestClock) => Response))[], cache?: Cache) {
  const clock = new TestClock();
  const asked: string[] = [];
  const errors: Error[] = [];
  const steps: SnapshotChange[] = [];
  let end = () => {};
  const isOver = new Promise<void>((resolve) => (end = resolve));
  const transport = new Transport({
    url: "http://agents.example.com",
    key: "k",
    clock,
    fetch: (input, init) => {
      const url = new URL(String(input));
      const isStream = new Headers(init?.headers).get("accept") === "text/event-stream";
      const name = `${url.pathname.split("/").at(-1)}${isStream ? "+" : ""}`;
      asked.push(`${name} ${url.searchParams.get("after") ?? ""}`.trim());
      if (isStream) assert.equal(url.searchParams.get("label"), "production");
      const answer = answers.shift();
      if (answer !== undefined) return Promise.resolve(typeof answer === "function" ? answer(mirror, clock) : answer);
      end();
      return new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason as Error)));
    },
  });
  const mirror: Mirror = new Mirror({
    transport,
    workspaceId: () => Promise.resolve("w"),
    knownWorkspaceId: "w",
    label: "production",
    cache,
    onError: (error) => errors.push(error),
  });
  mirror.onChange((step) => steps.push(step));
  await isOver;
  const { health } = mirror;
  await mirror.close();
  const versions = steps.map(({ snapshot }) => snapshot.agents.get("a")?.version);
  return { mirror, health, asked, errors, steps, versions, clock };
}

const row = (version: number, updated_at = "t", fields: object = {}) => ({
  agent_id: "a",
  label: "production",
  version,
  updated_at,
  config: { display_name: "A", agent_type: "ai", capabilities: [], parameters: {}, ...fields },
});
const released = (version: number, cursor: string, headers: Record<string, string> = {}, ...more: [string?, object?]) =>
  Response.json([row(version, ...more)], { headers: { "change-cursor": cursor, etag: `"${version}"`, ...headers } });
const failed = (status: number) => Response.json({ error: "no" }, { status, headers: { "x-request-id": "r" } });
const bookmark = (cursor: string) => `event: bookmark\nid: ${cursor}\ndata: {}\n\n`;
type Row = ReturnType<typeof row>;
const change = (cursor: string, changes: object, released?: object[]) => {
  const event = { cursor, type: "label.set", target: { type: "agent", id: "a" }, changes, released };
  return `event: change\nid: ${cursor}\ndata: ${JSON.stringify(event)}\n\n`;
};
const changesTo = (rows: Row[]) =>
  Object.fromEntries(rows.map(({ agent_id, version }) => [`agents/${agent_id}/labels/production`, { from: 0, to: version }]));
/** A release that has its rows. */
const moved = (cursor: string, ...rows: Row[]) => change(cursor, changesTo(rows), rows);
/** A release that is too long for its rows. */
const long = (cursor: string, from: number, to: number) => change(cursor, { "agents/a/labels/production": { from, to } });
const stream = (...events: string[]) => new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });

test("what was read already causes no read", async () => {
  const events = [bookmark("e-c3"), long("e-c2", 0, 2), long("e-c3", 2, 3), moved("e-c3", row(3)), long("e-c4", 1, 2)];
  const { asked, versions } = await played([released(1, "e-c3"), stream(...events), released(2, "e-c4")]);
  assert.deepEqual(asked, ["released", "changes+ e-c3", "released", "changes+ e-c4"]);
  assert.deepEqual(versions, [2]);
});

const ofB = (version: number) => ({ ...row(version), agent_id: "b" });
const both = () => Response.json([ofB(1), row(1)], { headers: { "change-cursor": "e-c1", etag: '"1"' } });

test("an event that has what it releases costs no request", async () => {
  const several = [moved("e-c2", row(2)), moved("e-c3", ofB(2)), moved("e-c4", row(3), ofB(3))];
  const { asked, steps, mirror, clock, health } = await played([both(), stream(bookmark("e-c1"), ...several)]);
  assert.deepEqual(asked, ["released", "changes+ e-c1", "changes+ e-c4"]);
  assert.deepEqual(
    steps.map(({ snapshot, changed }) => [snapshot.cursor, ...changed.map(({ agent_id, to }) => `${agent_id}${to?.version}`)]),
    [
      ["e-c2", "a2"],
      ["e-c3", "b2"],
      ["e-c4", "b3", "a3"],
    ],
  );
  assert.deepEqual([...mirror.snapshot.agents.keys()], ["b", "a"], "the order of the list");
  assert.equal(steps[0]?.snapshot.agents.get("b"), steps[1]?.changed[0]?.from, "an agent that stays is the same object");
  assert.equal(clock.slept.length, 1, "the break of the stream");
  assert.deepEqual([health.source, health.error !== undefined], ["server", true]);
});

test("what an event alone does not tell is read whole", async () => {
  const asked = ["released", "changes+ e-c1", "released", "changes+ e-c2"];
  const read = () => released(2, "e-c2");
  for (const event of [
    long("e-c2", 1, 2),
    // An agent whose place in the list is not known, alone and beside another one.
    moved("e-c2", { ...row(1), agent_id: "new" }),
    moved("e-c2", row(2), { ...row(1), agent_id: "new" }),
    change("e-c2", changesTo([row(2)]), [{ ...row(2), config: [] }]),
  ]) {
    const one = await played([both(), stream(event), read()]);
    assert.deepEqual([one.asked, one.versions], [asked, [2]], event);
  }
  // The store was restored: its positions are not those of the state.
  const restored = await played([both(), stream(moved("f-c2", row(2))), released(3, "f-c2")]);
  assert.deepEqual([restored.asked.slice(0, 3), restored.versions], [asked.slice(0, 3), [3]]);
});

test("an event after one that needs a read is taken after it", async () => {
  const events = [long("e-c2", 1, 2), moved("e-c3", row(3)), moved("e-c4", row(4))];
  const { asked, steps } = await played([both(), stream(...events), released(3, "e-c3")]);
  assert.deepEqual(asked, ["released", "changes+ e-c1", "released", "changes+ e-c4"]);
  assert.deepEqual(
    steps.map(({ snapshot }) => [snapshot.cursor, snapshot.agents.get("a")?.version]),
    [
      ["e-c3", 3],
      ["e-c4", 4],
    ],
  );
});

test("a cache has what an event releases, as the server wrote it, and no tag", async () => {
  const cache = new TestCache();
  const big = moved("e-c2", row(2, "t", { parameters: { x: 1.5 } })).replace("1.5", "9007199254740993");
  const { asked } = await played([both(), stream(big)], cache);
  assert.deepEqual(asked, ["released", "changes+ e-c1", "changes+ e-c2"]);
  const text = cache.texts.at(-1)!;
  assert.ok(text.includes('"agents":[{"agent_id":"b"') && text.includes('"parameters":{"x":9007199254740993}'), text);
  const { tag, cursor, agents } = JSON.parse(text) as { tag: string; cursor: string; agents: Row[] };
  assert.deepEqual([tag, cursor, agents.map(({ version }) => version)], ["", "e-c2", [1, 2]]);
  // The next start reads whole, and writes over it.
  const next = await played([released(2, "e-c2", { etag: '"2"' })], cache);
  assert.equal(next.health.source, "server");
});

test("an event confirms no state, because others may follow it", async () => {
  const { health, clock } = await played([both(), failed(502), stream(bookmark("e-c1"), moved("e-c2", row(2))), failed(502)]);
  assert.ok(clock.time > 1_000_000);
  assert.equal(health.ageMs, clock.time - 1_000_000);
});

test("a burst of long releases costs one read at once, and then ten a second at most", async () => {
  const events = Array.from({ length: 300 }, (_, index) => long(`e-c${index + 2}`, index + 1, index + 2));
  const { asked, versions, clock } = await played([
    released(1, "e-c1"),
    stream(bookmark("e-c1"), ...events),
    released(2, "e-c2"),
    released(200, "e-c200"),
    released(301, "e-c301"),
  ]);
  assert.deepEqual(asked, ["released", "changes+ e-c1", "released", "released", "released", "changes+ e-c301"]);
  assert.deepEqual(
    [versions, clock.slept.slice(0, 2)],
    [
      [2, 200, 301],
      [100, 100],
    ],
  );
});

test("reads after events leave half of the rate limit", async () => {
  const limit = { "x-ratelimit-limit": "100", "x-ratelimit-remaining": "8", "x-ratelimit-reset": "1040" };
  const { clock, versions } = await played([
    released(1, "e-c1", limit),
    stream(long("e-c2", 1, 2), long("e-c3", 2, 3)),
    released(2, "e-c2", limit),
    released(3, "e-c3"),
  ]);
  // Four of eight requests in 40 seconds.
  assert.deepEqual([versions, clock.slept[0]], [[2, 3], 10_000]);
});

test("a server that lags is asked again", async () => {
  const { asked, versions } = await played([
    released(2, "e-c5"),
    stream(long("e-c7", 2, 3)),
    released(2, "e-c6"), // as it was before the event
    released(1, "e-c4"), // as it was before the first answer
    released(2, "e-c5"),
    stream(long("e-c7", 2, 3)),
    released(3, "e-c7"),
  ]);
  assert.deepEqual(versions, [3]);
  assert.deepEqual(asked.slice(1), [
    "changes+ e-c5",
    ...["released", "released", "released", "changes+ e-c5", "released"],
    "changes+ e-c7",
  ]);
});

test("an answer that cannot be read confirms nothing", async () => {
  const headers = { "change-cursor": "e-c2", etag: '"2"' };
  const { health, clock, mirror, asked } = await played([
    released(1, "e-c1"),
    stream(long("e-c2", 1, 2)),
    new Response("<html>", { headers }),
    Response.json([{ agent_id: "a" }], { headers }),
  ]);
  assert.equal(asked.length, 5);
  assert.ok(clock.time > 1_000_000);
  assert.equal(health.ageMs, clock.time - 1_000_000);
  assert.equal(mirror.snapshot.agents.get("a")?.version, 1);
});

test("a restored store with the content of before is no step", async () => {
  const gone = "event: gone\ndata: {}\n\n";
  const other = { role: "Other" };
  const { versions, steps } = await played([
    released(1, "e-c9"),
    stream(gone),
    released(1, "f-c4"),
    stream(gone),
    // The number of a version and the time may be as before, where the content is not.
    released(1, "g-c4", {}, "t", other),
  ]);
  assert.deepEqual([versions, steps[0]?.changed[0]?.to?.role], [[1], "Other"]);
});

test("a label that comes back to its version is no step", async () => {
  const { versions, mirror } = await played([
    released(1, "e-c1"),
    stream(long("e-c2", 1, 2), long("e-c3", 2, 1)),
    released(1, "e-c3", {}, "later"),
    released(1, "e-c3", {}, "later"),
  ]);
  assert.deepEqual([versions, mirror.snapshot.agents.get("a")?.updated_at], [[], "later"]);
});

test("a proxy that answers in place of the feed is asked with growing delays", async () => {
  const page = () => new Response("<html>", { status: 403, headers: { "content-type": "text/html" } });
  const cycle = () => [page(), released(1, "e-c1")];
  const { clock, asked } = await played([released(1, "e-c1"), ...cycle(), ...cycle(), ...cycle(), ...cycle()]);
  assert.deepEqual(asked.slice(0, 4), ["released", "changes+ e-c1", "released", "changes+ e-c1"]);
  const [first, , , last] = clock.slept;
  assert.ok(last! >= 8 * first!, `the delays are ${clock.slept.join(", ")}`);
});

test("the first event of a stream confirms nothing", async () => {
  const { health, asked, clock } = await played([
    released(1, "e-c1"),
    failed(502),
    stream(bookmark("e-c1"), long("e-c2", 1, 2)),
    failed(500),
  ]);
  assert.deepEqual(asked, ["released", "changes+ e-c1", "changes+ e-c1", "released", "released"]);
  assert.ok(clock.time > 1_000_000);
  assert.equal(health.ageMs, clock.time - 1_000_000);
});
