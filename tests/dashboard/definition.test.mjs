// The definition of an agent: its rules, its parts for reading, and its way through review, save and history.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare, violations } from "./harness.mjs";
import { source } from "./source.mjs";

const stage = prepare();
const { definitionFault, definitionItems, variableNotes } = await source("base/definition", "definitionFault", "definitionItems", "variableNotes");

const WRONG = [
  [{ tools: ["search", ""] }, "definition.tools[1] must be a text of 1 to 200 characters."],
  [{ tools: {} }, "definition.tools must be a list."],
  [{ tools: [7] }, "definition.tools[0] must be a text or an object."],
  [{ mcp_servers: [{ name: "files", command: "npx files" }, { command: "x" }] }, "definition.mcp_servers[1].name must be a text of 1 to 100 characters."],
  [{ mcp_servers: [{ name: "files" }] }, "definition.mcp_servers[0] must have a url or a command."],
  [{ mcp_servers: [{ name: "files", url: "ftp://x" }] }, "definition.mcp_servers[0].url must be an http or https address."],
  [{ mcp_servers: [{ name: "a", command: "x" }, { name: "a", command: "y" }] }, "definition.mcp_servers[1].name is there twice: a."],
  [{ model_settings: { stream: true } }, "definition.model_settings.stream is filled in by the server, and cannot be set."],
  [{ model_settings: null }, "definition.model_settings must be an object."],
  [{ fallback_models: ["a", "b", "c", "d", "e", "f"] }, "definition.fallback_models has 6 entries. The limit is 5."],
  [{ variables: { "1st": {} } }, "definition.variables.1st: a name has letters, digits and _, at most 64."],
  [{ variables: { who: { default: 5 } } }, "definition.variables.who.default must be a text."],
  [{ variables: { who: { required: "yes" } } }, "definition.variables.who.required must be true or false."],
  [{ metadata: { team: 7 } }, "definition.metadata.team must be a text of 0 to 1000 characters."],
  [{ output_schema: [] }, "definition.output_schema must be an object."],
];
const RIGHT = [
  {},
  { tools: ["search", { type: "function", function: { name: "lookup", description: "Finds" } }], anything: [null] },
  { mcp_servers: [{ name: "files", command: "npx files" }, { name: "web", url: "https://example.com/mcp" }], skills: ["write", { name: "edit" }] },
  { model_settings: { temperature: 0.7, max_tokens: 900 }, variables: { who: { required: true }, tone: { default: "dry", description: "How it sounds" } } },
];

test("a definition is refused where the server refuses it, and the path is named", async () => {
  for (const [definition, said] of WRONG) assert.equal(definitionFault(JSON.stringify(definition)), said);
  for (const definition of RIGHT) assert.equal(definitionFault(JSON.stringify(definition)), null, JSON.stringify(definition));
  assert.equal(definitionFault(" "), null, "an empty text is no definition");
  assert.match(definitionFault('{\n  "tools": [\n    "a" "b"\n  ]\n}'), /look at line 3/);
  assert.equal(definitionFault("[]"), "It must be a JSON object.");
  const { server } = stage;
  const id = await server.workspace("ruth", "Rules");
  for (const [definition, well] of [...WRONG.map(([definition]) => [definition, false]), ...RIGHT.map((definition) => [definition, true])]) {
    const answer = await server.raw("ruth", "POST", `/api/agents/apply?workspace_id=${id}&dry_run=true`, { agents: [{ agent_id: "a", display_name: "A", definition }] });
    assert.equal(answer.status, well ? 200 : 400, `${JSON.stringify(definition)}: ${await answer.text()}`);
  }
});

test("the parts of a definition are listed, unknown ones last", () => {
  const items = definitionItems({ other: [1], tools: ["search", { function: { name: "lookup", description: "Finds" } }], variables: { who: { required: true }, tone: { default: "dry", description: "Sound" } }, mcp_servers: [{ name: "web", url: "https://x" }], model_settings: { temperature: 0.5 } });
  assert.deepEqual(items.map(({ part, name, note }) => [part, name, note].join("|")), ["Model settings|temperature|0.5", "Variables|who|required", "Variables|tone|default: dry · Sound", "Tools|search|", "Tools|lookup|Finds", "MCP servers|web|https://x", "other||[\n  1\n]"]);
  assert.deepEqual(variableNotes("Write for {{ who }} in {{style}}.", { variables: { who: {}, tone: {} } }), ["{{style}} is in the persona and not declared: sent as written.", "{{tone}} is declared and not in the persona."]);
  assert.deepEqual(variableNotes("None.", null), []);
});

test("a definition is edited with its faults at the field, saved against its tag, and shown in the history", async () => {
  const { page, id } = await stage.studio("vera");
  const { server } = stage;
  await page.show("agents/writer");
  await page.getByRole("navigation", { name: "Agent" }).getByRole("link", { name: "Definition" }).click();
  const area = page.getByRole("textbox", { name: "Definition" });
  await area.fill('{"mcp_servers": [{"name": "files", "command": "npx files"}, {"url": "https://example.com"}]}');
  await page.getByText("definition.mcp_servers[1].name must be a text of 1 to 100 characters.").waitFor();
  await page.keyboard.press("Control+s");
  await page.until(() => document.activeElement.tagName === "TEXTAREA");
  assert.equal(await page.getByRole("dialog").count(), 0, "a fault is mended first");
  await area.fill('{"tools": ["search"], "mcp_servers": [{"name": "files", "command": "npx files"}], "variables": {"tone": {"default": "dry"}}, "model_settings": {"temperature": 0.5}}');
  const parts = page.getByRole("table", { name: "What the definition has" });
  await parts.getByText("npx files").waitFor();
  await parts.getByText("default: dry").waitFor();
  await page.getByText("{{tone}} is declared and not in the persona.").waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Control+s");
  const asked = page.waitForRequest((request) => request.method() === "PATCH");
  await page.getByRole("dialog").getByRole("button", { name: "Save as v3" }).click();
  assert.ok((await asked).headers()["if-match"], "it is saved against its tag");
  await page.getByText("Writer is saved as v3.").waitFor();
  const [stored] = await server.call("vera", "GET", `/api/agents/configs?workspace_id=${id}&agent_id=writer`);
  assert.deepEqual(stored.definition.model_settings, { temperature: 0.5 });
  assert.equal(stored.role, "Long-form writer", "other fields stay");
  await page.show("agents/writer/history?from=2&to=3");
  await page.getByRole("region", { name: /^Definition: 0 lines removed/ }).getByText('"npx files"').waitFor();
  // What a draft of one tab holds is there on the other one.
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Essayist");
  await page.getByRole("navigation", { name: "Agent" }).getByRole("link", { name: "Definition" }).click();
  await page.getByText("1 unsaved change").waitFor();
  await page.getByRole("button", { name: "Discard" }).click();
  await page.show("agents/mira");
  assert.equal(await page.getByRole("navigation", { name: "Agent" }).getByRole("link", { name: "Definition" }).count(), 0, "people have none");
  page.faults();
  await page.context().close();
});
