// Agents from files: reading them, the plan, and applying it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { prepare, violations } from "./harness.mjs";
import { source } from "./source.mjs";

const stage = prepare();
const { readFiles } = await source("base/agent-files", "readFiles");
const { yaml } = await source("base/yaml", "yaml");

const CLI = process.env.AGENTCFG_TEST_CLI ?? new URL("../../target/debug/agentcfg", import.meta.url).pathname;

/** Numbers keep the text that they are written with, which JSON has no place for. */
const plain = (value) => JSON.parse(JSON.stringify(value, (_, member) => (member && typeof member === "object" && Object.keys(member).join() === "text" ? `=${member.text}` : member)));

const YAML = [
  ["a: 1\nb: text # said\n# all\nc:\nd: null\n", { a: "=1", b: "text", c: null, d: null }],
  ['"odd: key": "a: \\"b\\"\\x41\\U0001F600"\nc: \'it\'\'s\'\n', { "odd: key": 'a: "b"A😀', c: "it's" }],
  ["list:\n  - a\n  - b c\nsame:\n- x\n-\n  - 1\n  - 2\n", { list: ["a", "b c"], same: ["x", ["=1", "=2"]] }],
  ["m:\n  - name: files\n    command: npx x\n  - name: web\n    url: https://x/y#z\n", { m: [{ name: "files", command: "npx x" }, { name: "web", url: "https://x/y#z" }] }],
  ["t: |\n  one\n   two\n\n  three\nu: |-\n  x\nv: |+\n  y\n\nw: |2\n    z\n", { t: "one\n two\n\nthree\n", u: "x", v: "y\n\n", w: "  z\n" }],
  ['e: {}\nf: []\ng: {"a": [1, 2]}\nh: true\n', { e: {}, f: [], g: { a: [1, 2] }, h: true }],
  ["", {}],
];

test("YAML is read as people and the export write it, and refused with its line", () => {
  for (const [text, value] of YAML) assert.deepEqual(plain(yaml(text)), value, text);
  for (const [text, line] of [["a: 1\nb\n", 1], ["a: 1\na: 2\n", 1], ["a: &x 1\n", 0], ["a: 1\n   b: 2\n", 1], ['a: "b\n', 0], ["a: #7c3aed\nb: [1\n", 1]]) assert.throws(() => yaml(text), (error) => error.line === line, text);
});

test("files give agents, or faults with the file and the line", () => {
  const { entries, faults, ignored } = readFiles([
    ["writer.md", '---\nagent_id: writer\ndisplay_name: Writer\nparameters:\n  warmth: 0.7\n---\nBe plain.\n\n'],
    ["quiet.md", "---\ndisplay_name: Quiet\n---"],
    ["more.json", '{"agents": [{"agent_id": "a", "display_name": "A", "id": "x", "is_active": true}]}'],
    ["one.json", '{"agent_id": "b", "display_name": "B", "definition": {"n": 12}}'],
    ["README.md", "# Agents"],
    ["notes.txt", ""],
  ]);
  assert.deepEqual([faults, ignored], [[], ["README.md", "notes.txt"]]);
  assert.deepEqual(plain(entries), [
    { agent_id: "a", display_name: "A" },
    { agent_id: "b", display_name: "B", definition: { n: 12 } },
    { agent_id: "quiet", display_name: "Quiet" },
    { agent_id: "writer", display_name: "Writer", parameters: { warmth: "=0.7" }, persona_prompt: "Be plain.\n" },
  ]);
  const wrong = readFiles([["a.md", "no front"], ["b.md", "---\nagent_id: c\n---\n"], ["c.md", "---\nrole: x\nrole: y\n---\n"], ["d.json", "[1]"], ["e.json", '{"agent_id": "f"}'], ["f.md", "---\n---\n"]]);
  assert.deepEqual(wrong.faults.map((fault) => fault.split(": ")[0]), ["a.md:1", "b.md:2", "c.md:3", "d.json", "f.md"]);
  assert.deepEqual(readFiles([["a.json", "[]"], ["b.json", '{"agents": []}'], ["c.json", '{\n"agent_id": "x",\n}']]).faults, ["a.json: It has no agent.", "b.json: It has no agent.", "c.json:3: It is no JSON."]);
  const { place } = readFiles([["a.md", "---\ndisplay_name: A\nroll: x\n---\n"], ["b.json", '[\n{"agent_id": "b", "roll": 1},\n{"agent_id": "c",\n"roll": 2}]']]);
  assert.deepEqual([place("a", "roll"), place("b", "roll"), place("c", "roll"), place("c", "role"), place("a", "")], ["a.md:3", "b.json:2", "b.json:4", "b.json:3", "a.md:1"]);
});

test("what the command exports is imported without a change, and changed files are planned and applied", async (context) => {
  if (!existsSync(CLI)) return context.skip("the command is not built");
  const { page, id, keys } = await stage.studio("hedda");
  const { server } = stage;
  const definition = { empty: {}, list: [], nested: [[1, [2]], [{ a: 1, b: [true, null] }]], "odd key: x": 'tab\there "quoted"', stop: ["a: b", "- c", "# x", "yes", "null", "12", "'q'", " space "], text: "many\nlines\n\n  of text\n", long: "\n first line is empty\nend\n\n", tools: ["search", { name: "w", description: "x: y" }], big: 1e300, variables: { n: { required: true } } };
  await server.call("hedda", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { definition, description: "First line.\nSecond: line\n", role: "12", persona_prompt: "---\nA line\n\n" });
  const folder = await mkdtemp(join(tmpdir(), "agentcfg-import-"));
  execFileSync(CLI, ["export", folder], { env: { ...server.env, AGENTCFG_URL: server.url, AGENTCFG_API_KEY: keys.pipeline.key } });
  const names = await readdir(folder);
  const files = await Promise.all(names.filter((name) => name.endsWith(".md")).map(async (name) => ({ name, mimeType: "text/markdown", buffer: await readFile(join(folder, name)) })));
  await page.show("agents");
  await page.getByRole("link", { name: "Import" }).click();
  await page.getByRole("heading", { level: 1, name: "Import" }).waitFor();
  const chooser = page.locator("input[type=file]");
  await chooser.setInputFiles(files);
  await page.getByText("10 files, 10 agents").waitFor();
  await page.getByText("Nothing would change.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Apply" }).getAttribute("aria-disabled"), "true");
  await page.getByRole("button", { name: "Start again" }).click();
  const file = (name, text) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
  await chooser.setInputFiles([file("poet.md", "---\ndisplay_name: Poet\ncolor: red\n---\nRhyme.\n"), file("mira.md", "---\nagent_id: Mira\n---\n")]);
  await page.getByText("mira.md:2: agent_id must be mira").waitFor();
  await chooser.setInputFiles([file("mira.md", "---\ndisplay_name: Mira L\nagent_type: human\n---\n")]);
  page.expect(400, "/api/agents/apply");
  await page.getByText(/poet\.md:3: color must be/).waitFor();
  await chooser.setInputFiles([file("poet.md", "---\ndisplay_name: Poet\ncolor: '#f00'\n---\nRhyme.\n")]);
  await page.getByText("2 agents would change.").waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "poet" }).click();
  await page.getByText("Rhyme.").waitFor();
  await page.getByLabel("Message").fill("From files");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("2 agents imported.").waitFor();
  const all = await server.call("hedda", "GET", `/api/agents/configs?workspace_id=${id}`);
  const poet = all.find(({ agent_id }) => agent_id === "poet");
  assert.deepEqual([poet.color, poet.persona_prompt, all.find(({ agent_id }) => agent_id === "mira").display_name], ["#f00", "Rhyme.", "Mira L"]);
  const [entry] = await server.call("hedda", "GET", `/api/audit-log?workspace_id=${id}&limit=1`);
  assert.deepEqual([entry.action, entry.message], ["agents.applied", "From files"]);
  page.faults();
  await page.context().close();
});

test("a file that was mended can be chosen again", async () => {
  const { page } = await stage.studio("ingrid");
  await page.show("import");
  const files = page.locator("input[type=file]");
  await files.setInputFiles([{ name: "poet.md", mimeType: "text/plain", buffer: Buffer.from("no front") }]);
  await page.getByText("Nothing is sent until these are mended.").waitFor();
  assert.equal(await files.evaluate((input) => input.files.length), 1);
  // A browser tells of no change where the same file is chosen, but after none was.
  await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Choose files" }).click()]);
  assert.equal(await files.evaluate((input) => input.files.length), 0);
  await page.getByText("Nothing is sent until these are mended.").waitFor();
  page.faults();
  await page.context().close();
});

test("files are dropped", async () => {
  const { page } = await stage.studio("inga");
  await page.show("import");
  const data = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["---\ndisplay_name: Dropped\n---\n"], "dropped.md"));
    return data;
  });
  await page.locator(".drop").dispatchEvent("drop", { dataTransfer: data });
  await page.getByText("1 agent would change.").waitFor();
  page.faults();
  await page.context().close();
});

test("a field that the server refuses is named with its file and line, as it is written", async () => {
  const { page } = await stage.studio("ines");
  await page.show("import");
  page.expect(400, "/api/agents/apply");
  await page.locator("input[type=file]").setInputFiles([{ name: "poet.md", mimeType: "text/plain", buffer: Buffer.from("---\nrole: Poet\ndisplay_nam: Poet\n---\n") }]);
  await page.getByRole("alert").getByText(/poet\.md:1: display_name is required; poet\.md:3: display_nam is not a known field/).waitFor();
  page.faults();
  await page.context().close();
});
