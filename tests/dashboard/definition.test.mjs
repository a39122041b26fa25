// The definition of an agent: its rules, its parts for reading, and its way through review, save and history.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare, violations } from "./harness.mjs";
import { source } from "./source.mjs";

const stage = prepare();
const { toConfig, toDraft } = await source("base/config", "toConfig", "toDraft");
const { merge } = await source("base/merge", "merge");
const { definitionFault, definitionItems, variableNotes } = await source("base/definition", "definitionFault", "definitionItems", "variableNotes");

test("a text that is no JSON object is refused with its line", () => {
  assert.equal(definitionFault('{"tools": ["search"]}'), null);
  assert.equal(definitionFault(" "), null, "an empty text is no definition");
  assert.match(definitionFault('{\n  "tools": [\n    "a" "b"\n  ]\n}'), /look at line 3/);
  assert.equal(definitionFault("[]"), "It must be a JSON object.");
  const after = '\n  "b": [1.5e3, "\\u00e9", null, -0, {}],\n  "c": {"d": [[]], "e": true}\n}';
  assert.equal(definitionFault(`{${after}`), null);
  for (const [line, text] of [
    [4, `{\n  "tools": [\n    "a",\n  ],${after}`],
    [3, `{\n  "a": 1,\n  b: 2,${after}`],
    [2, `{\n  'a': 1,${after}`],
    [3, `{\n  "a": 1${after}`],
    [2, `{\n  "a": True,${after}`],
    [2, `{\n  "a": 01,${after}`],
    [2, `{\n  "a": "\\x",${after}`],
    [2, `{\n  "a": "x\n  y",${after}`],
    [2, `{\n  "a": "x,${after}`],
    [2, `{\n  // note\n  "a": 1,${after}`],
    [2, `{\n  "a" 1,${after}`],
    [2, `{\n  "a": NaN,${after}`],
    [5, `{${after}}\n`.replace("}}", "}\n}")],
    [4, `{${after}`.slice(0, -1)],
  ])
    assert.equal(definitionFault(text), `It is no JSON: look at line ${line}.`, text);
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
  page.expect(400, "/api/agents/apply");
  await area.fill('{"mcp_servers": [{"name": "files", "command": "npx files"}, {"url": "https://example.com"}]}');
  await page.getByText(/definition\.mcp_servers\[1\]\.name .+/).waitFor();
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

test("what is typed stays as it is while its content is the stored one", async () => {
  const { page, id } = await stage.studio("wanja");
  await stage.server.call("wanja", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { definition: { seed: 1 }, parameters: { formality: 50 }, capabilities: ["essays"] });
  await page.show("agents/writer/definition");
  const area = page.getByRole("textbox", { name: "Definition" });
  await area.evaluate((box) => (box.focus(), box.setSelectionRange(1, 1)));
  await page.keyboard.press("Enter");
  assert.equal(await area.inputValue(), '{\n\n  "seed": 1\n}');
  assert.equal(await page.getByText("unsaved change").count(), 0);
  await page.keyboard.type('"x": 1,');
  assert.equal(await area.inputValue(), '{\n"x": 1,\n  "seed": 1\n}');
  await page.getByText("1 unsaved change").waitFor();
  await page.getByRole("button", { name: "Discard" }).click();
  assert.equal(await area.inputValue(), '{\n  "seed": 1\n}');

  await page.show("agents/writer");
  const number = page.getByLabel("formality, number");
  await number.focus();
  await page.keyboard.press("Home");
  await page.keyboard.type("0.");
  assert.equal(await number.inputValue(), "0.50");
  // A comma that sets thousands apart would be one of a decimal fraction.
  await number.fill("1,000");
  await page.getByText("Write a number.").waitFor();
  await number.fill("050");
  await page.getByText("unsaved change").waitFor({ state: "detached" });
  await stage.server.call("wanja", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { parameters: { formality: 60 } });
  await page.until(() => document.querySelector("[aria-label='formality, number']").value === "60");
  page.faults();
  await page.context().close();
});

test("a number that JavaScript writes with an exponent is shown, changed, exported and merged as it is", async () => {
  const { page, id } = await stage.studio("xenia");
  const { server } = stage;
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  const numbers = [1e16, 1e22, -1e22, 1.7976931348623157e308];
  const stored = async () => (await server.raw("xenia", "GET", writer)).text();
  await server.call("xenia", "PATCH", writer, { definition: { numbers } });
  const before = /"numbers":\[[^\]]+\]/.exec(await stored())[0];
  await page.show("agents/writer/definition");
  const area = page.getByRole("textbox", { name: "Definition" });
  assert.deepEqual(JSON.parse(await area.inputValue()), { numbers });
  assert.equal(await page.locator(".fault").count(), 0);
  await area.fill((await area.inputValue()).replace("{", '{"k": 1,'));
  await page.reload();
  await page.getByText("Draft restored.").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByRole("dialog").getByRole("button", { name: /^Save as/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  assert.ok((await stored()).includes(before), await stored());
  await page.show("agents");
  await page.getByLabel("Tick Writer").check();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  const chunks = await (await download.createReadStream()).toArray();
  assert.deepEqual(JSON.parse(Buffer.concat(chunks)).agents[0].definition, { k: 1, numbers });
  page.faults();
  await page.context().close();

  for (const big of ["1e+21", "9007199254740992", "12345678901234567890"]) {
    const base = toConfig(toDraft({ parameters: {} }));
    const found = merge({ ...base, parameters: { big } }, base, toDraft({ parameters: { big } }));
    assert.deepEqual([found.conflicts, found.merged.map(({ side }) => side)], [[], ["theirs"]], big);
  }
});

test("numbers of a definition stay as they are written, in the draft and in what is saved", async () => {
  const { page, id } = await stage.studio("yrsa");
  const { server } = stage;
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  const written = '{"a":1.0,"b":1.50,"c":1E2,"d":-0,"model_settings":{"temperature":0.10}}';
  const patched = await fetch(server.url + writer, { method: "PATCH", headers: { Authorization: `Bearer ${server.token("yrsa")}`, "Content-Type": "application/json" }, body: `{"definition":${written}}` });
  assert.equal(patched.status, 200);
  const numbers = async () => (await (await server.raw("yrsa", "GET", writer)).text()).match(/"definition":\{.*?\}\}/)[0].match(/-?\d[\d.eE+-]*/g);
  const before = await numbers();
  await page.show("agents/writer/definition");
  const area = page.getByRole("textbox", { name: "Definition" });
  assert.deepEqual((await area.inputValue()).match(/-?\d[\d.eE+-]*/g), before);
  await area.fill((await area.inputValue()).replace("{", '{\n  "k": true,'));
  await page.keyboard.press("Control+s");
  await page.getByRole("dialog").getByRole("button", { name: /^Save as/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  assert.deepEqual(await numbers(), before);
  assert.ok(before.includes("1.0"), `the server keeps what is written: ${before}`);
  page.faults();
  await page.context().close();
});
