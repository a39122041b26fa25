// Keys of a page work right after it was opened, with the focus on its heading or nowhere.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare } from "./harness.mjs";

const stage = prepare();
const persona = (changed) => Array.from({ length: 90 }, (_, i) => `Line ${i}${changed.includes(i) ? ", changed" : ""}`).join("\n");

/** A studio whose Writer is a version ahead of production, with changes far from each other. */
async function studio(user) {
  const made = await stage.studio(user);
  const at = (path, query) => `${path}?workspace_id=${made.id}${query}`;
  const save = (persona_prompt) => stage.server.call(user, "PATCH", at("/api/agents/configs", "&agent_id=writer"), { persona_prompt });
  await save(persona([]));
  await stage.server.call(user, "PUT", at("/api/agents/labels", "&agent_id=writer&label=production"), { version: 3 });
  await save(persona([5, 45, 85]));
  await stage.server.call(user, "PUT", at("/api/agents/labels", "&agent_id=writer&label=staging"), { version: 4 });
  return { ...made, save };
}

test("rows are reached, ticked and reviewed with no click before", async () => {
  const { page } = await studio("keya");
  await page.show("agents");
  await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
  const first = await page.locator("[data-name]").first().innerText();
  await page.keyboard.press("j");
  await page.until((name) => document.activeElement.textContent === name, first);
  await page.keyboard.press("x");
  await page.getByText("1 agent ticked").waitFor();
  await page.show("releases");
  await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
  const all = await page.locator("[data-name]").count();
  assert.ok(all > 1, `${all}`);
  await page.keyboard.press("b");
  await page.until(() => document.querySelectorAll("[data-name]").length === 1);
  await page.keyboard.press("j");
  await page.until(() => document.activeElement.textContent === "Writer");
  await page.keyboard.press("x");
  await page.getByText("1 agent ticked").waitFor();
  // In a field a letter is a letter.
  await page.getByRole("searchbox").fill("wri");
  await page.keyboard.press("b");
  await page.keyboard.press("Backspace");
  await page.getByText("1 agent ticked").waitFor();
  await page.getByRole("heading", { level: 1 }).focus();
  await page.keyboard.press("r");
  await page.getByRole("heading", { level: 1, name: "Promote staging to production on 1 agent" }).waitFor();
  page.faults();
});

test("keys that follow each other without a pause are about the row that is reached", async () => {
  const { page } = await studio("keyz");
  await page.show("agents");
  await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
  const second = await page.locator("[data-name]").nth(1).innerText();
  await page.keyboard.press("j");
  await page.until(() => document.activeElement.matches("[data-name]"));
  await page.evaluate(async () => {
    for (const key of ["j", "x"]) {
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
      // As between two events of the browser that wait already: microtasks are done, tasks are not.
      for (let i = 0; i < 10; i += 1) await null;
    }
  });
  await page.getByText("1 agent ticked").waitFor();
  assert.ok(await page.getByLabel(`Tick ${second}`, { exact: true }).isChecked());
  page.faults();
});

test("single letters do nothing where they are turned off", async () => {
  const { page } = await studio("keyb");
  await page.show("releases");
  await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
  await page.keyboard.press("?");
  const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await sheet.getByLabel("Single letters work outside of text fields").uncheck();
  await page.keyboard.press("Escape");
  for (const key of ["b", "j"]) await page.keyboard.press(key);
  assert.ok(!page.url().includes("show="), page.url());
  assert.notEqual(await page.evaluate(() => document.activeElement.dataset.name), "");
  page.faults();
});

test("a review and a history go from change to change, and choose how they are shown", async () => {
  const { page } = await studio("keyc");
  await page.setViewportSize({ width: 1280, height: 600 });
  const places = [];
  for (const address of ["releases/review?of=writer&version=4&to=production", "agents/writer/history"]) {
    await page.show(address);
    await page.locator("[data-change]").nth(2).waitFor();
    await page.evaluate(() => document.activeElement.blur());
    for (const key of ["n", "n", "p"]) {
      await page.keyboard.press(key);
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
      places.push(await page.evaluate(() => Math.round(scrollY)));
    }
    const [first, second, back] = places.splice(0);
    assert.ok(first > 0 && second > first && back < second, `${address}: ${[first, second, back]}`);
    const signs = () => page.evaluate(() => [...document.querySelectorAll(".inline .line:is(.add, .del) .text")].map((text) => getComputedStyle(text, "::before").content.slice(0, 4)));
    if (await page.locator(".diff.inline").count()) assert.deepEqual([...new Set(await signs())].sort(), ['"+ "', '"− "']);
    const inline = () => page.locator(".diff.inline").count();
    const before = await inline();
    await page.keyboard.press("v");
    await page.until((before) => document.querySelectorAll(".diff.inline").length !== before, before);
  }
  page.faults();
});

test("a new agent is created by Ctrl S, which names what is missing first", async () => {
  const { page } = await stage.studio("keyn");
  await page.show("new-agent");
  await page.keyboard.press("Control+s");
  await page.getByText("An agent needs an id.").waitFor();
  await page.keyboard.type("Made by keys");
  await page.keyboard.press("Control+s");
  await page.getByRole("heading", { level: 1, name: "Made by keys" }).waitFor();
  page.faults();
});

test("a merge without conflicts is saved by Ctrl S", async () => {
  const { page, id, save } = await studio("keyd");
  await page.show("agents/writer");
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByLabel("Role").fill("Mine");
  await save(persona([1]));
  await page.getByText("Writer changed while you were editing.").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByText("No conflicts").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByText("Writer is saved as v6.").waitFor();
  const [stored] = await stage.server.call("keyd", "GET", `/api/agents/configs?workspace_id=${id}&agent_id=writer`);
  assert.deepEqual([stored.role, stored.persona_prompt], ["Mine", persona([1])]);
  page.faults();
});
