// The fields of an agent that the dashboard knows are those that the API takes, and each has a control in both forms.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fill, launch, open, Server } from "./harness.mjs";
import { source } from "./source.mjs";

let server;
let fields;

before(async () => {
  fields = (await source("base/agent-fields.ts", "FIELDS")).FIELDS;
  server = await Server.start();
});
after(() => server?.stop());

const TYPES = { text: "string", model: "string", color: "string", choice: "string", tags: "array", numbers: "object", json: "object" };

/** A row of the table, as far as the API has the same. */
const ofRow = ({ kind, nullable = false, limit, most, choices }) => ({
  type: TYPES[kind],
  nullable,
  limit,
  most,
  choices: choices && Object.keys(choices).sort(),
});

/** The same of a property of a body. */
function ofProperty(property, schemas) {
  const inner = property.anyOf?.find(({ type }) => type !== "null") ?? property;
  const schema = inner.$ref ? schemas[inner.$ref.split("/").at(-1)] : inner;
  const types = [schema.type, ...(property.anyOf ?? []).map(({ type }) => type)].flat();
  const entries = { array: schema.items, object: schema.propertyNames }[schema.type];
  return {
    type: [schema.type].flat().find((type) => type !== "null"),
    nullable: types.includes("null"),
    limit: (entries ?? schema).maxLength,
    most: schema.maxItems ?? schema.maxProperties,
    choices: schema.enum?.toSorted(),
  };
}

test("the table of fields is that of the bodies of the API", async () => {
  const { paths, components } = await (await fetch(`${server.url}/openapi.json`)).json();
  const { post, patch } = paths["/api/agents/configs"];
  const rows = Object.fromEntries(Object.entries(fields).map(([name, row]) => [name, ofRow(row)]));
  for (const { requestBody } of [post, patch]) {
    const body = components.schemas[requestBody.content["application/json"].schema.$ref.split("/").at(-1)];
    // What says which agent it is cannot change, and is no part of a configuration.
    const { workspace_id, agent_id, ...properties } = body.properties;
    const known = Object.entries(properties).map(([name, property]) => [name, ofProperty(property, components.schemas)]);
    assert.deepEqual(rows, Object.fromEntries(known));
    if (body.required) {
      const required = Object.keys(fields).filter((name) => fields[name].required);
      assert.deepEqual(["workspace_id", "agent_id", ...required].sort(), body.required.toSorted());
    }
  }
});

test("each field has a control in both forms", async () => {
  const browser = await launch();
  try {
    await fill(server, "ada");
    const page = await open(browser, server);
    await page.signIn("ada");
    const all = Object.values(fields);
    const apart = (wanted) => all.filter(({ label }) => (label === "Definition") === wanted);
    for (const [form, of] of [["new-agent", all], ["agents/writer", apart(false)], ["agents/writer/definition", apart(true)]]) {
      await page.show(form);
      for (const { label } of of)
        await page.locator("form.editor, .field, .group-box, fieldset").getByText(label, { exact: true }).first().waitFor();
    }
    page.faults();
  } finally {
    await browser.close();
  }
});
