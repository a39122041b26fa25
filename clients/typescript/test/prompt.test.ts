import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentCfgError, type AgentConfig, type Definition, InputError, type Variables } from "../src/index.js";
import { renderPrompt } from "../src/prompt.js";
import { Server } from "./server.js";

const config = (persona_prompt: string | null, variables?: Definition["variables"]): AgentConfig => ({
  display_name: "Support",
  role: null,
  description: null,
  agent_type: "ai",
  model: null,
  color: null,
  persona_prompt,
  capabilities: [],
  parameters: {},
  ...(variables === undefined ? {} : { definition: { variables } }),
});

const declared = { a: {}, b: { default: "B" }, _c1: {}, name: { required: true, default: "Ada" } };

test("declared variables are filled in once, and nothing else is touched", () => {
  const values = { a: "1", b: "{{a}}" };
  const cases = {
    "{{a}} {{ a }} {{  a}}{{a  }}": "1 1 11",
    "{{b}}": "{{a}}",
    "{{_c1}}-": "-",
    "{{name}}": "Ada",
    "{{other}} {{A}} {a} {{a}": "{{other}} {{A}} {a} {{a}",
    "{{{a}}}": "{1}",
    "{{{{a}}}}": "{{1}}",
    "{{ a\n}} {{a.b}} {{}} {{": "{{ a\n}} {{a.b}} {{}} {{",
    "{{\ta}}é{{a}}é$&": "{{\ta}}é1é$&",
    "{{constructor}}{{toString}}": "{{constructor}}{{toString}}",
  };
  for (const [persona, expected] of Object.entries(cases)) {
    assert.equal(renderPrompt(config(persona, declared), values), expected, persona);
  }
  assert.equal(renderPrompt(config("{{a}}")), "{{a}}");
  assert.equal(renderPrompt(config(null)), null);
  assert.equal(renderPrompt(config("{{a}}", { a: {} })), null, "nothing is left");
});

test("all faults of the values are named", () => {
  const variables = { city: { required: true }, day: { required: true }, mood: {} };
  const fault = (persona: string | null, values: object) => {
    try {
      return renderPrompt(config(persona, variables), values as Variables);
    } catch (error) {
      assert.ok(error instanceof InputError);
      return error.message;
    }
  };
  assert.equal(
    fault("{{city}}", { moot: "x" }),
    "variables.moot is not a variable of the agent; variables.city is required; variables.day is required",
  );
  assert.equal(fault("{{city}}", { city: "", day: 7 }), "variables.day must be a text");
  assert.equal(fault(null, {}), null);
  assert.throws(() => renderPrompt(config("x"), { a: "1" }), /variables.a is not a variable of the agent/);
});

test("the prompt is the one that the server renders, or both refuse", async () => {
  const studio = await (await Server.start()).studio();
  const client = await studio.client();
  await client.agents.create({ agent_id: "support", display_name: "Support" });
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const pieces = [
    "{{a}}",
    "{{ b }}",
    "{{",
    "}}",
    "{",
    "}",
    " ",
    "{{a",
    "a}}",
    "é🦀",
    "\n",
    "{{x}}",
    "{{  _c1}}",
    "name",
    "{{name }}",
    "text",
  ];
  let refused = 0;
  for (let round = 0; round < 60; round += 1) {
    const persona = Array.from({ length: random(9) }, () => pieces[random(pieces.length)]).join("");
    const variables: NonNullable<Definition["variables"]> = {};
    for (const name of ["a", "b", "_c1", "name"]) {
      if (random(3) === 0) continue;
      variables[name] = { ...(random(2) ? { default: `<${name}>` } : {}), ...(random(2) ? { required: random(2) === 0 } : {}) };
    }
    const values: Record<string, string> = {};
    for (const name of [...Object.keys(variables), ...(random(8) ? [] : ["unknown"])])
      if (random(2)) values[name] = `{{a}}${random(10)}`;
    const patch = { persona_prompt: persona, definition: { variables } };
    const { value } = await client.agents.update("support", patch);
    const server = await client.prompts.render("support", values).then(
      ({ prompt }) => prompt,
      (error: unknown) => {
        assert.ok(error instanceof AgentCfgError && error.status === 400, String(error));
        refused += 1;
        return error.message;
      },
    );
    let own: string | null;
    try {
      own = renderPrompt(value as unknown as AgentConfig, values);
    } catch (error) {
      own = (error as Error).message;
    }
    const faults = (text: string | null) => text?.split("; ").sort();
    assert.deepEqual(faults(own), faults(server), JSON.stringify({ persona, variables, values }));
  }
  assert.ok(refused > 5 && refused < 55, `${refused} of 60 were refused`);
});
