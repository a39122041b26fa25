import assert from "node:assert/strict";
import { test } from "node:test";
import { jsonText, memberText, partsOf } from "../src/json.js";

test("the text of a member is found as it was written", () => {
  const values = [
    "1",
    "-1.50e+3",
    '""',
    '"\\\\"',
    '"a\\"},{\\\\"',
    '["agents", {"agents": 2}]',
    "{ }",
    "null",
    '{"a":9007199254740993}',
  ];
  for (const value of values) {
    const texts = [
      `{"agents":${value}}`,
      ` {\n "agents" : ${value}\n, "z": {"agents": [3]}, "y": ":,}"} `,
      `{"x": ["agents", {"agents": "\\"}"}], "agents": 7, "\\u0061gents":${value}}`,
      `{"x":"agents","agents":${value}}`,
    ];
    for (const text of texts) {
      assert.deepEqual(JSON.parse(text).agents, JSON.parse(value), text);
      assert.equal(memberText(text, "agents"), value, text);
    }
  }
  for (const text of [`[${values.join(",")}]`, ` [\n ${values.join(" ,\n")}\n] `]) {
    assert.deepEqual(
      partsOf(text).map(([, item]) => item),
      values,
    );
  }
  for (const text of ["[]", " [ ] ", "{}"]) assert.deepEqual(partsOf(text), []);
  for (const text of ["{}", '{"x":"agents"}', '{"x":{"agents":1}}']) assert.equal(memberText(text, "agents"), undefined);
});

test("bodies are written as they are given", () => {
  const shared = { b: [1, null] };
  for (const body of [{}, { a: shared, c: [shared, "é"] }, { at: new Date(0) }, [1.5], { "": { "": 0 } }]) {
    assert.equal(jsonText(body), JSON.stringify(body));
  }
  assert.throws(() => jsonText({ a: shared, c: [{ d: shared, e: [NaN] }] }), /^InputError: c\[0\]\.e\[0\] is NaN/);
});
