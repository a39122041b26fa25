import assert from "node:assert/strict";
import { test } from "node:test";
import { EventReader } from "../src/sse.js";

test("events are read wherever the pieces are cut, with any line break", () => {
  const text =
    'retry: 3271\n\n: comment\nevent: change\nid: c1\ndata: {"a":\ndata:1}\n\nevent: bookmark\nid: c2\ndata: {}\n\ndata: x\n\n';
  const expected = [
    { name: "change", id: "c1", data: '{"a":\n1}' },
    { name: "bookmark", id: "c2", data: "{}" },
    { name: "message", id: undefined, data: "x" },
  ];
  for (const whole of [text, text.replaceAll("\n", "\r\n")]) {
    for (let cut = 0; cut <= whole.length; cut += 1) {
      const reader = new EventReader();
      const events = [...reader.take(whole.slice(0, cut)), ...reader.take(whole.slice(cut))];
      assert.deepEqual(events, expected, `cut at ${cut}`);
      assert.equal(reader.retryMs, 3271);
    }
  }
});

test("a long line costs no more than its length", () => {
  const reader = new EventReader();
  const piece = "x".repeat(64);
  const begun = process.cpuUsage().user;
  reader.take("data: ");
  for (let count = 0; count < 200_000; count += 1) reader.take(piece);
  assert.equal(reader.isWithinEvent, true);
  const [event] = reader.take("\n\n");
  assert.equal(event?.data.length, 12_800_000);
  // It took minutes when each piece was searched together with all before it.
  assert.ok(process.cpuUsage().user - begun < 10_000_000);
  reader.take(": comment");
  assert.equal(reader.isWithinEvent, false);
});

test("an event without data, or one that is not complete, is none", () => {
  const reader = new EventReader();
  assert.deepEqual(reader.take("event: change\nid: c1\n\n"), []);
  assert.deepEqual(reader.take("data: half"), []);
  assert.deepEqual(reader.take("\n\n"), [{ name: "message", id: undefined, data: "half" }]);
});
