import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentSource, InputError, UnknownAgentError } from "../src/index.js";
import { FakeAgentCfg } from "../src/testing.js";

/** A program under test, as a user writes it. */
const greeting = (cfg: AgentSource, name: string) => `${cfg.agent("support").model}: ${cfg.agent("support").prompt({ name })}`;

test("a program runs on agents in memory", async () => {
  const support = { model: "gpt-5.5", persona_prompt: "Help {{name}}.", definition: { variables: { name: { required: true } } } };
  const cfg = await new FakeAgentCfg({ support }).ready();
  assert.equal(greeting(cfg, "Ada"), "gpt-5.5: Help Ada.");
  assert.throws(() => cfg.agent("support").prompt(), InputError);
  assert.throws(() => cfg.agent("suport"), UnknownAgentError);
  assert.deepEqual([cfg.agent("support").version, cfg.agent("support").display_name], [1, "support"]);
});

test("a release is one step", async () => {
  const cfg = new FakeAgentCfg({ a: { model: "m1" }, b: { model: "m1" }, c: {} });
  const steps: string[][] = [];
  const stop = cfg.onChange(({ changed }) =>
    steps.push(changed.map(({ agent_id, from, to }) => `${agent_id} ${from?.version}-${to?.version}`)),
  );
  const before = cfg.snapshot;
  cfg.release({ a: { model: "m2" }, b: null, d: {} });
  assert.deepEqual(steps, [["a 1-2", "d undefined-1", "b 1-undefined"]]);
  assert.equal(before.agents.get("a")?.model, "m1");
  assert.equal(before.agents.get("c"), cfg.find("c"));
  assert.equal(cfg.find("b"), undefined);
  stop();
  cfg.release({ b: {} });
  assert.equal(cfg.agent("b").version, 2);
  assert.equal(steps.length, 1);
});

test("versions are those of a server", () => {
  const cfg = new FakeAgentCfg({ a: { model: "m1" } });
  let steps = 0;
  cfg.onChange(() => {
    steps += 1;
    throw new Error("of the listener");
  });
  cfg.release({ a: { model: "m1" } });
  assert.deepEqual([cfg.agent("a").version, steps], [1, 0]);
  cfg.release({ a: { model: "m1", role: undefined, definition: null } as object });
  assert.deepEqual([cfg.agent("a").version, steps, "definition" in cfg.agent("a")], [1, 0, false]);
  cfg.release({ a: null });
  cfg.release({ a: { model: "m1" } });
  assert.deepEqual([cfg.agent("a").version, steps], [1, 2]);
  cfg.release({ a: { model: "m2", parameters: { x: 1, y: 2 } } });
  cfg.release({ a: { parameters: { y: 2, x: 1 }, model: "m2" } });
  assert.deepEqual([cfg.agent("a").version, steps], [2, 3]);
});

test("what a server refuses is refused", () => {
  assert.throws(() => new FakeAgentCfg({ a: { persona_promt: "x" } as object }), /persona_promt of a is no field/);
  for (const id of ["", "BAD", "a b", "a".repeat(51)]) {
    assert.throws(() => new FakeAgentCfg({ [id]: {} }), /agent_id must be/);
  }
  for (const label of ["", "BAD", "12", "a".repeat(37)]) assert.throws(() => new FakeAgentCfg({}, { label }), /label must be/);
});

test("reports, health and clients are those of the test", async () => {
  const cfg = new FakeAgentCfg({ support: {} }, { openai: (agentId) => ({ agentId }) as never });
  assert.equal(await cfg.reportStatus("support", { working: "Answer", task: "T-1" }, () => 7), 7);
  assert.deepEqual(
    cfg.reports.map(({ agent_id, status }) => [agent_id, status]),
    [
      ["support", "working"],
      ["support", "idle"],
    ],
  );
  cfg.setHealth({ state: "connecting", ageMs: 600_000 });
  assert.deepEqual([cfg.health.state, cfg.health.ageMs], ["connecting", 600_000]);
  assert.deepEqual(await cfg.openai("support"), { agentId: "support" });
  await assert.rejects(cfg.anthropic("support"), /give FakeAgentCfg the option anthropic/);
  await cfg.close();
  assert.equal(cfg.health.state, "closed");
});

test("listeners may subscribe and unsubscribe while they are called", () => {
  const cfg = new FakeAgentCfg({ a: {} });
  const called: string[] = [];
  const stops = [
    cfg.onChange(() => {
      called.push("first");
      stops.shift()?.();
      stops.pop()?.();
      stops.push(cfg.onChange(() => called.push("new")));
    }),
    cfg.onChange(() => called.push("last")),
  ];
  cfg.release({ a: { role: "x" } });
  assert.deepEqual(called, ["first"]);
  cfg.release({ a: { role: "y" } });
  assert.deepEqual(called, ["first", "new"]);
});
