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
      asked.push(`${name} ${url.searchParams.get("after") ?? url.searchParams.get("agent_id") ?? ""}`.trim());
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
const moved = (cursor: string, from: number, to: number) => {
  const changes = { "agents/a/labels/production": { from, to } };
  const event = { cursor, type: "label.set", target: { type: "agent", id: "a" }, changes };
  return `event: change\nid: ${cursor}\ndata: ${JSON.stringify(event)}\n\n`;
};
const stream = (...events: string[]) => new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });

test("what was read already causes no read", async () => {
  const events = [bookmark("e-c3"), moved("e-c2", 0, 2), moved("e-c3", 2, 3), moved("e-c4", 1, 2)];
  const { asked, versions } = await played([released(1, "e-c3"), stream(...events), released(2, "e-c4")]);
  assert.deepEqual(asked, ["released", "changes+ e-c3", "released a", "changes+ e-c4"]);
  assert.deepEqual(versions, [2]);
});

test("an agent that alone has moved is read alone", async () => {
  const headers = { "change-cursor": "e-c1", etag: '"1"' };
  const both = () => Response.json([{ ...row(1), agent_id: "b" }, row(1)], { headers });
  const one = await played([both(), stream(moved("e-c2", 1, 2)), released(2, "e-c2"), stream(moved("e-c3", 2, 3))]);
  assert.deepEqual(one.asked, ["released", "changes+ e-c1", "released a", "changes+ e-c2", "released a"]);
  assert.deepEqual([one.versions, [...one.mirror.snapshot.agents.keys()]], [[2], ["b", "a"]]);
  // Something else has changed when it is read, and then the label of this agent too, so that all is read.
  const again = [stream(moved("e-c5", 2, 3)), released(4, "e-c6"), released(4, "e-c6")];
  const more = await played([both(), stream(moved("e-c2", 1, 2)), released(2, "e-c3"), ...again]);
  const asked = ["changes+ e-c1", "released a", "changes+ e-c2", "released a", "released", "changes+ e-c5"];
  assert.deepEqual(more.asked, ["released", ...asked]);
  // The store was restored, and has another version of this number.
  const restored = await played([both(), stream(moved("e-c2", 1, 2)), released(2, "f-c2"), released(2, "f-c2")]);
  assert.deepEqual(restored.asked, ["released", "changes+ e-c1", "released a", "released", "changes+ e-c2"]);
  // A cache keeps the text of the whole list.
  const kept = await played([both(), stream(moved("e-c2", 1, 2)), released(2, "e-c2")], {
    load: () => Promise.resolve(undefined),
    save: () => Promise.resolve(),
  });
  assert.deepEqual(kept.asked, ["released", "changes+ e-c1", "released", "changes+ e-c2"]);
});

test("a burst of events costs one read at once, and then ten a second at most", async () => {
  const events = Array.from({ length: 300 }, (_, index) => moved(`e-c${index + 2}`, index + 1, index + 2));
  const { asked, versions, clock } = await played([
    released(1, "e-c1"),
    stream(bookmark("e-c1"), ...events),
    released(2, "e-c2"),
    released(200, "e-c200"),
    released(301, "e-c301"),
  ]);
  assert.deepEqual(asked, ["released", "changes+ e-c1", "released a", "released", "released", "changes+ e-c301"]);
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
    stream(moved("e-c2", 1, 2), moved("e-c3", 2, 3)),
    released(2, "e-c2", limit),
    released(3, "e-c3"),
  ]);
  // Four of eight requests in 40 seconds.
  assert.deepEqual([versions, clock.slept[0]], [[2, 3], 10_000]);
});

test("a server that lags is asked again", async () => {
  const { asked, versions } = await played([
    released(2, "e-c5"),
    stream(moved("e-c7", 2, 3)),
    released(2, "e-c6"), // as it was before the event
    released(1, "e-c4"), // as it was before the first answer
    released(2, "e-c5"),
    stream(moved("e-c7", 2, 3)),
    released(3, "e-c7"),
  ]);
  assert.deepEqual(versions, [3]);
  assert.deepEqual(asked.slice(1), [
    "changes+ e-c5",
    ...["released a", "released", "released", "changes+ e-c5", "released a"],
    "changes+ e-c7",
  ]);
});

test("an answer that cannot be read confirms nothing", async () => {
  const headers = { "change-cursor": "e-c2", etag: '"2"' };
  const { health, clock, mirror, asked } = await played([
    released(1, "e-c1"),
    stream(moved("e-c2", 1, 2)),
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
    stream(moved("e-c2", 1, 2), moved("e-c3", 2, 1)),
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
    stream(bookmark("e-c1"), moved("e-c2", 1, 2)),
    failed(500),
  ]);
  assert.deepEqual(asked, ["released", "changes+ e-c1", "changes+ e-c1", "released a", "released"]);
  assert.ok(clock.time > 1_000_000);
  assert.equal(health.ageMs, clock.time - 1_000_000);
});
