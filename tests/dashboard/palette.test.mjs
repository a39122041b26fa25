// The palette, and the keys that work on every page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, prepare, violations } from "./harness.mjs";
import { source } from "./source.mjs";

const stage = prepare();
const { findPrompts } = await source("base/prompts", "findPrompts");

test("prompts are looked through in order, a hit for each agent, and not beyond the most that are shown", async () => {
  const agents = [null, "One\nRefunds and refunds", "nothing", "refund first\nrefund", "a refund"].map((persona_prompt, i) => ({ agent_id: `a${i}`, persona_prompt }));
  const hits = await findPrompts(agents, "REFUND", 2, new AbortController().signal);
  assert.deepEqual(hits.map(({ agent, line, text }) => [agent.agent_id, line, text]), [["a1", 2, "Refunds and refunds"], ["a3", 1, "refund first"]]);
});

test("an agent, an action and a prompt are found and opened by keyboard alone", async () => {
  const { page } = await stage.studio("pal");
  await page.show("overview");
  await page.getByText("Live", { exact: true }).waitFor();
  await page.keyboard.press("Control+k");
  const entry = page.getByRole("combobox", { name: "Search or jump to" });
  await entry.waitFor();
  await page.keyboard.type("resea");
  await page.getByRole("option", { name: /^Researcher/ }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Researcher" }).waitFor();
  await entry.waitFor({ state: "detached" });
  // The last agents are there before anything is typed.
  await page.keyboard.press("Control+k");
  await page.getByRole("group", { name: "Visited last" }).getByRole("option", { name: /Researcher/ }).waitFor();
  await page.keyboard.type("writer");
  await page.getByRole("option", { name: /^Usage of Writer/ }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.until(() => document.querySelector("[aria-selected=true]").querySelector(".block").textContent === "Writer");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("#seven lines");
  await page.getByRole("option", { name: /Writer.*seven lines.*line 9/ }).waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.type(">key");
  // Actions alone: the page of keys is not among them.
  await page.until(() => document.querySelectorAll("[role=option]").length === 1);
  await page.getByRole("option", { name: "Create an API key" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("heading", { name: "Create an API key" }).waitFor();
  // A dialog is finished first.
  await page.keyboard.press("Control+k");
  assert.equal(await entry.count(), 0);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: /^Search or jump to/ }).click();
  await page.keyboard.type("zzzz");
  await page.getByText("Nothing matches “zzzz”.").waitFor();
  await page.keyboard.press("Escape");
  await entry.waitFor({ state: "detached" });
  page.faults();
});

test("where prompts alone are looked through, more of them are shown", async () => {
  const { page, id } = await stage.studio("pelle");
  const agents = Array.from({ length: 8 }, (_, i) => ({ agent_id: `source-${i}`, display_name: `Source ${i}`, persona_prompt: "Name the quillwort." }));
  await stage.server.call("pelle", "POST", `/api/agents/apply?workspace_id=${id}`, { agents });
  await page.show("overview");
  await page.keyboard.press("Control+k");
  const hits = (count) => page.until((count) => document.querySelectorAll(".option code").length === count, count);
  await page.keyboard.type("quillwort");
  await hits(5);
  await page.keyboard.press("Control+A");
  await page.keyboard.type("#quillwort");
  await hits(8);
  page.faults();
});

test("what a role may not do is not offered", async () => {
  const { id } = await stage.studio("rut");
  await stage.server.call("rut", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=sigge`, { role: "viewer" });
  const page = await open(stage.browser, stage.server);
  await page.signIn("sigge");
  await page.keyboard.press("Control+k");
  await page.keyboard.type(">");
  await page.getByText("Type to search.").waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("a");
  await page.getByRole("option", { name: "Agents", exact: true }).waitFor();
  assert.equal(await page.getByRole("option", { name: "Members" }).count(), 0);
  page.faults();
});

test("letters lead to pages, the sheet names them, and they can be turned off", async () => {
  const { page } = await stage.studio("tyr");
  await page.show("overview");
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.getByRole("heading", { level: 1, name: "Releases" }).waitFor();
  await page.keyboard.press("?");
  const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await sheet.getByText("Tick the agent").waitFor();
  assert.deepEqual(await violations(page), []);
  await sheet.getByLabel("Single letters work outside of text fields").uncheck();
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
  for (const key of ["g", "o", "?"]) await page.keyboard.press(key);
  assert.equal(await sheet.count(), 0);
  assert.ok(page.url().includes("/ui/releases"));
  await page.reload();
  await page.getByRole("button", { name: "Signed in as tyr" }).or(page.getByRole("button", { name: "tyr", exact: true })).first().click();
  await page.getByRole("menuitem", { name: "Keyboard shortcuts" }).click();
  assert.equal(await sheet.getByLabel("Single letters work outside of text fields").isChecked(), false, "it stays so");
  await sheet.getByLabel("Single letters work outside of text fields").check();
  await sheet.getByRole("button", { name: "Close" }).click();
  await page.getByRole("heading", { level: 1 }).focus();
  await page.keyboard.press("g");
  await page.keyboard.press("u");
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  page.faults();
});
