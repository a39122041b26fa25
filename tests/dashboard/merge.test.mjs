// A save that another one came before: disjoint lines merge by themselves, what both changed is shown in full, and what the server
// refuses is said at its field.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare, violations } from "./harness.mjs";
import { source } from "./source.mjs";

const stage = prepare();
const { mergeLines } = await source("base/merge-lines.ts", "mergeLines");

const dialog = (page) => page.getByRole("dialog");

/** The text that a merge gives, or null where there is a conflict. */
const merged = (base, theirs, mine) => {
  const segments = mergeLines(base, theirs, mine);
  return segments.some(({ kind }) => kind === "conflict") ? null : segments.flatMap((one) => (one.kind === "mine" ? one.mine : one.theirs)).join("\n");
};

test("changes of disjoint lines are all taken, those of the same lines are a conflict", () => {
  assert.equal(merged("a\nb\nc\nd", "a\nB\nc\nd", "a\nb\nc\nD"), "a\nB\nc\nD");
  assert.equal(merged("a\nb\nc", "a\nc", "0\na\nb\nc"), "0\na\nc");
  assert.equal(merged("a\nb", "A\nb", "a\nB"), "A\nB");
  assert.equal(merged("a\nb", "a\nX\nb", "a\nX\nb"), "a\nX\nb");
  assert.equal(merged("a\nb", "a\nX\nb", "a\nY\nb"), null);
  assert.equal(merged("a\nb", "a", "a\nB"), null);
  assert.equal(merged("", "x", ""), "x");
  const [first, conflict, last] = mergeLines("a\nb\nc", "a\nB\nc", "a\nbb\nc");
  assert.deepEqual([first.base, last.base], [["a"], ["c"]]);
  assert.deepEqual(conflict, { kind: "conflict", line: 2, base: ["b"], theirs: ["B"], mine: ["bb"] });
});

test("each side of a merge is that side's text, and a side that changed nothing gives the other one", () => {
  let seed = 5;
  const below = (most) => ((seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0), Math.floor((seed / 2 ** 32) * most));
  for (let round = 0; round < 2_000; round += 1) {
    const text = () => Array.from({ length: 1 + below(8) }, () => "abcd"[below(4)]).join("\n");
    const [base, theirs, mine] = [text(), text(), text()];
    const segments = mergeLines(base, theirs, mine);
    for (const [side, whole] of Object.entries({ base, theirs, mine })) assert.equal(segments.flatMap((one) => (one.kind === (side === "mine" ? "theirs" : "mine") && side !== "base" ? one.base : one[side])).join("\n"), whole);
    assert.equal(merged(base, theirs, base), theirs);
    assert.equal(merged(base, base, mine), mine);
    assert.equal(merged(base, mine, mine), mine);
  }
});

test("disjoint lines of a prompt are merged and saved without a question", async () => {
  const { page, id } = await stage.studio("alva");
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  await page.setViewportSize({ width: 1920, height: 1000 });
  const base = "One\nTwo\nThree\nFour\nFive";
  await stage.server.call("alva", "PATCH", writer, { persona_prompt: base, definition: { tools: [], note: "first" } });
  await page.show("agents/writer");
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByLabel("Persona prompt").fill("One\nTwo\nThree\nFour\nFive, mine");
  await stage.server.call("alva", "PATCH", writer, { persona_prompt: "One, theirs\nTwo\nThree\nFour\nFive" });
  await page.getByText("Writer changed while you were editing.").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByText("No conflicts").waitFor();
  assert.match(await page.locator(".merged").innerText(), /1 change of theirs and 1 of yours, in different lines/);
  await page.getByRole("button", { name: "Save as v5" }).click();
  await page.getByText("Writer is saved as v5.").waitFor();
  assert.equal((await stage.server.call("alva", "GET", writer))[0].persona_prompt, "One, theirs\nTwo\nThree\nFour\nFive, mine");

  // A long conflict: all of it is there to be read, in columns as wide as the page.
  const many = Array.from({ length: 60 }, (_, i) => `Line ${i} of mine`).join("\n");
  await page.getByLabel("Persona prompt").fill(many);
  await stage.server.call("alva", "PATCH", writer, { persona_prompt: many.replaceAll("mine", "theirs") });
  await page.getByText("Writer changed while you were editing.").waitFor();
  await page.keyboard.press("Control+Enter");
  const conflict = page.getByRole("region", { name: "Persona prompt, line 1" });
  await conflict.waitFor();
  for (const column of await conflict.locator(".value").all()) assert.ok(await column.evaluate((element) => element.scrollHeight <= element.clientHeight && element.scrollWidth <= element.clientWidth));
  const [wide, page_] = await page.evaluate(() => [".three", "main"].map((name) => document.querySelector(name).getBoundingClientRect().width));
  assert.ok(wide > 1500 && wide > page_ - 80, `${wide} of ${page_}`);
  assert.deepEqual(await violations(page), []);
  page.faults();
});

test("Ctrl S and Ctrl Enter open the review and confirm it, and an end of the fault is asked for at its field", async () => {
  const { page, id } = await stage.studio("bergit");
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  await page.show("agents/writer");
  for (const [keys, role] of [
    ["Control+s", "By S"],
    ["Control+Enter", "By Enter"],
  ]) {
    await page.getByLabel("Role").fill(role);
    await page.keyboard.press(keys);
    await dialog(page).getByText(role).waitFor();
    await page.keyboard.press(keys);
    await dialog(page).waitFor({ state: "detached" });
    await page.until((role) => [...document.querySelectorAll(".toast")].length > 0 && role, role);
    assert.equal((await stage.server.call("bergit", "GET", writer))[0].role, role);
  }

  // Too long, and on the other tab.
  await page.getByLabel("Persona prompt").fill("x".repeat(5_001));
  await page.keyboard.press("Control+s");
  assert.equal(await dialog(page).count(), 0);
  await page.until(() => document.activeElement.tagName === "TEXTAREA" && document.activeElement.value.length === 5_001);
  await page.getByRole("link", { name: "Definition", exact: true }).click();
  await page.getByRole("heading", { name: "Writer" }).waitFor();
  await page.keyboard.press("Control+s");
  await page.until(() => document.activeElement.tagName === "TEXTAREA" && document.activeElement.value.length === 5_001);
  await page.getByRole("button", { name: "Discard" }).click();

  // What the server alone refuses is said at the field, by the name of the field on screen.
  page.expect(400, "/api/agents/configs");
  await page.route("**/api/agents/configs?*", (route) => (route.request().method() === "PATCH" ? route.fulfill({ status: 400, json: { error: "role must be at most 10 characters, got 14" } }) : route.continue()));
  await page.getByLabel("Role").fill("Fourteen signs");
  await page.keyboard.press("Control+s");
  await dialog(page).getByText("Fourteen signs").waitFor();
  await page.keyboard.press("Control+s");
  await dialog(page).waitFor({ state: "detached" });
  await page.getByText("Role must be at most 10 characters, got 14.").waitFor();
  await page.until(() => document.activeElement.value === "Fourteen signs" && document.activeElement.getAttribute("aria-invalid") === "true");
  await page.getByLabel("Role").fill("Ten signs");
  await page.getByText("Role must be at most 10 characters, got 14.").waitFor({ state: "detached" });
  page.faults();
});

test("both versions of the same lines can be kept", async () => {
  const { page, id } = await stage.studio("disa");
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  await stage.server.call("disa", "PATCH", writer, { persona_prompt: "One\nTwo\nThree" });
  await page.show("agents/writer");
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByLabel("Persona prompt").fill("One\nTwo, mine\nThree");
  await stage.server.call("disa", "PATCH", writer, { persona_prompt: "One\nTwo, theirs\nThree", role: "Theirs" });
  await page.getByText("Writer changed while you were editing.").waitFor();
  await page.keyboard.press("Control+s");
  await page.locator(".conflict label", { hasText: "Both" }).click();
  await page.getByText("1 of 1 conflict decided").waitFor();
  await page.getByRole("button", { name: /^Save as/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  const [{ persona_prompt, role }] = await stage.server.call("disa", "GET", writer);
  assert.deepEqual([persona_prompt, role], ["One\nTwo, theirs\nTwo, mine\nThree", "Theirs"]);
  page.faults();
});

test("what was merged in a text by its lines is listed, as it will be saved", async () => {
  const { page, id } = await stage.studio("froydis");
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  const same = Array.from({ length: 16 }, (_, i) => `The same ${i}`).join("\n");
  await stage.server.call("froydis", "PATCH", writer, { persona_prompt: `One\nTwo\nThree\n${same}\nFive` });
  await page.show("agents/writer");
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByLabel("Persona prompt").fill(`One\nTwo\nThree, mine\n${same}\nFive, mine\nSix`);
  await stage.server.call("froydis", "PATCH", writer, { persona_prompt: `One, theirs\nTwo\nThree, theirs\n${same}\nFive` });
  await page.getByText("Writer changed while you were editing.").waitFor();
  await page.keyboard.press("Control+s");
  const merged = page.getByRole("region", { name: /^Persona prompt, as it will be saved: / });
  const lines = async (kind) => (await merged.locator(`.line.${kind} .text`).allInnerTexts()).map((text) => text.replace(/^(added|removed):\s/, ""));
  await merged.waitFor();
  assert.deepEqual([await lines("del"), await lines("add")], [["One", "Three", "Five"], ["One, theirs", "Three, theirs", "Five, mine", "Six"]]);
  await page.getByText("What is not decided yet is shown as theirs.").waitFor();
  await merged.getByRole("button", { name: "10 equal lines" }).waitFor();
  await page.locator(".conflict label", { hasText: "Mine" }).click();
  await merged.getByText("Three, mine").waitFor();
  await page.getByText("What is not decided yet is shown as theirs.").waitFor({ state: "detached" });
  assert.deepEqual(await lines("add"), ["One, theirs", "Three, mine", "Five, mine", "Six"]);
  for (const width of [1440, 390]) {
    // So high that the bar at the bottom is over nothing.
    await page.setViewportSize({ width, height: 2_000 });
    assert.deepEqual(await violations(page), [], String(width));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }
  page.faults();
});

test("what is typed right after a save is saved against that save, also where the page has not read it yet", async () => {
  const { page, id } = await stage.studio("gunn");
  const writer = `/api/agents/configs?workspace_id=${id}&agent_id=writer`;
  await page.show("agents/writer");
  const description = page.getByLabel("Description");
  await description.fill("First");
  await page.getByText("1 unsaved change").waitFor();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route(/api\/agents\/configs\?.*agent_id=writer/, async (route) => {
    if (route.request().method() === "GET") await held;
    await route.continue();
  });
  await page.keyboard.press("Control+s");
  await dialog(page).getByRole("button", { name: /^Save as/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  await dialog(page).waitFor({ state: "detached" });
  await description.fill("First, and second");
  release();
  await page.keyboard.press("Control+s");
  await dialog(page).getByText("First, and second").waitFor();
  await stage.server.call("gunn", "PATCH", writer, { description: "Theirs" });
  page.expect(412, "/api/agents/configs");
  // The page has heard of it.
  await page.getByText("Writer changed while you were editing.").waitFor();
  await dialog(page).getByRole("button", { name: /^Save as/ }).click();
  await page.getByRole("region", { name: /^Description, line/ }).waitFor();
  assert.equal((await stage.server.call("gunn", "GET", writer))[0].description, "Theirs");
  await page.unrouteAll({ behavior: "ignoreErrors" });
  page.faults();
});
