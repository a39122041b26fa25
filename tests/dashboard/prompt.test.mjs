// The box of the prompt: its lines are numbered as they wrap, Markdown has its colours, texts are found and replaced, and it fills
// the window on demand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, prepare, violations } from "./harness.mjs";

const stage = prepare();

const TEXT = "# Voice\n\nYou are **bold** and use `code` for {{name}}, in a line that is so long that it has to wrap around the end of the box, and once more for sure.\n\n- one\n## Never\nlie";

test("the text that is seen wraps as the text that is typed, each line under its number", async () => {
  const { page } = await stage.studio("alfhild");
  await page.show("agents/writer");
  const area = page.getByLabel("Persona prompt");
  await area.fill(TEXT);
  for (const width of [1280, 768, 390]) {
    await page.setViewportSize({ width, height: 800 });
    // A copy of the box that is as high as its text tells how high each line is.
    const [lines, typed] = await area.evaluate((box) => {
      const copy = box.cloneNode();
      Object.assign(copy, { value: "", rows: 1 });
      copy.style.setProperty("height", "0");
      copy.style.setProperty("min-height", "0");
      copy.style.setProperty("align-self", "start");
      box.parentElement.append(copy);
      const heights = box.value.split("\n").map((line) => ((copy.value = line), copy.scrollHeight));
      copy.value = "";
      const empty = copy.scrollHeight;
      copy.remove();
      const one = parseFloat(getComputedStyle(box).lineHeight);
      const seen = [...document.querySelectorAll(".area-lines > div")].map((line) => line.getBoundingClientRect().height);
      return [seen.map((height) => Math.round(height / one)), heights.map((height) => Math.round((height - empty) / one) + 1)];
    });
    assert.equal(lines.length, 7);
    assert.ok(lines[2] > 1, `it wraps at ${width}`);
    assert.deepEqual(lines, typed, String(width));
  }
  const marks = await page.locator(".area-lines i").allInnerTexts();
  assert.deepEqual(marks, ["**bold**", "`code`", "{{name}}"]);
  assert.deepEqual(await page.locator(".area-lines .heading").allInnerTexts(), ["# Voice\u200b", "## Never\u200b"]);
  page.faults();
});

test("the prompt fills the window, grows with its text, and is saved from there", async () => {
  const { page, id } = await stage.studio("bergljot");
  await page.show("agents/writer");
  const area = page.getByLabel("Persona prompt");
  await page.getByRole("button", { name: "Full screen" }).first().click();
  const box = await area.boundingBox();
  assert.deepEqual([box.x, box.y, Math.round(box.width)], [0, 0, 1280]);
  assert.ok(box.height >= 800, String(box.height));
  await area.fill(Array.from({ length: 120 }, (_, i) => `Line ${i}`).join("\n"));
  assert.ok(await area.evaluate((one) => one.scrollHeight <= one.clientHeight), "no line is behind a scroll of its own");
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Control+s");
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).click();
  await page.getByText(/Writer is saved/).waitFor({ state: "attached" });
  assert.match((await stage.server.call("bergljot", "GET", `/api/agents/configs?workspace_id=${id}&agent_id=writer`))[0].persona_prompt, /^Line 0\n[^]*Line 119$/);
  await area.focus();
  await page.keyboard.press("Escape");
  assert.ok((await area.boundingBox()).width < 800);
  page.faults();
});

test("a text is found in the prompt and replaced, by keyboard, and each step can be undone", async () => {
  const { page } = await stage.studio("cecilie");
  await page.show("agents/writer");
  const area = page.getByLabel("Persona prompt");
  const bar = page.getByRole("search");
  await area.fill("Say (this) once.\nThen say (this) again, and (THIS).\n\nNever say so.");
  await area.press("Control+Home");
  await page.keyboard.press("Control+f");
  await page.keyboard.type("(this)");
  await bar.getByText("1 of 3").waitFor();
  assert.deepEqual(await page.locator(".area-lines mark").allInnerTexts(), ["(this)", "(this)", "(THIS)"]);
  await page.keyboard.press("Enter");
  await bar.getByText("2 of 3").waitFor();
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.press("Shift+Enter");
  await bar.getByText("3 of 3").waitFor();
  assert.equal(await page.locator(".area-lines .on").innerText(), "(THIS)");
  assert.deepEqual(await violations(page), []);

  await bar.getByLabel("Replace with").fill("$&");
  await bar.getByRole("button", { name: "Replace", exact: true }).click();
  assert.equal(await area.inputValue(), "Say (this) once.\nThen say (this) again, and $&.\n\nNever say so.");
  await bar.getByText("1 of 2").waitFor();
  await bar.getByRole("button", { name: "Replace all" }).click();
  assert.equal(await area.inputValue(), "Say $& once.\nThen say $& again, and $&.\n\nNever say so.");
  await bar.getByText("None").waitFor();
  await page.getByText("1 unsaved change").waitFor();
  await area.focus();
  await page.keyboard.press("Control+z");
  assert.match(await area.inputValue(), /^Say \(this\) once\.\nThen say \(this\) again, and \$&/);
  await page.keyboard.press("Control+z");
  assert.match(await area.inputValue(), /and \(THIS\)\./);

  // A text that holds what is looked for is passed over, and one of no letters removes it.
  await bar.getByLabel("Find").fill("say");
  await bar.getByLabel("Replace with").fill("say say");
  await bar.getByRole("button", { name: "Replace", exact: true }).click();
  await bar.getByText("3 of 4").waitFor();
  await bar.getByLabel("Find").fill("(this)");
  await bar.getByLabel("Replace with").fill("");
  await bar.getByRole("button", { name: "Replace all" }).click();
  assert.equal(await area.inputValue(), "say say  once.\nThen say  again, and .\n\nNever say so.");

  // The focus goes back to what was found.
  await bar.getByLabel("Find").fill("never");
  await page.keyboard.press("Escape");
  await bar.waitFor({ state: "detached" });
  assert.equal(await area.evaluate((box) => document.activeElement === box && box.value.slice(box.selectionStart, box.selectionEnd)), "Never");
  for (const width of [768, 390]) {
    await page.setViewportSize({ width, height: 800 });
    await page.getByRole("button", { name: "Find", exact: true }).first().click();
    await bar.getByText("1 of 1").waitFor();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `${width} scrolls sideways`);
    await page.keyboard.press("Escape");
  }
  page.faults();
});

test("who may not change an agent finds texts and replaces none", async () => {
  const { id } = await stage.studio("dagny");
  await stage.server.call("dagny", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=embla`, { role: "viewer" });
  const page = await open(stage.browser, stage.server);
  await page.signIn("embla");
  await page.show("agents/writer");
  await page.getByRole("button", { name: "Find", exact: true }).first().click();
  await page.keyboard.type("outline");
  await page.getByRole("search").getByText("1 of 1").waitFor();
  assert.equal(await page.getByLabel("Replace with").count(), 0);
  page.faults();
});

test("lines that differ from the stored text are marked in the margin, new ones otherwise than edited ones", async () => {
  const { page, id } = await stage.studio("dagrun");
  await stage.server.call("dagrun", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { persona_prompt: "One\nTwo\nThree\nFour" });
  await page.show("agents/writer");
  const area = page.getByLabel("Persona prompt");
  await page.until(() => document.querySelector("textarea")?.value.startsWith("One\n"));
  const marks = () => page.locator(".area-lines").first().evaluate((box) => [...box.children].map(({ className }) => className));
  assert.deepEqual(await marks(), ["", "", "", ""]);
  await area.fill("One\n# Two, edited\nThree\nAnother\nFour");
  assert.deepEqual(await marks(), ["", "heading edited", "", "new", ""]);
  // They are told apart without their colours.
  const style = (name) => page.locator(`.area-lines > .${name}`).evaluate((line) => getComputedStyle(line, "::after").borderLeftStyle);
  assert.deepEqual([await style("edited"), await style("new")], ["solid", "double"]);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
  }
  await area.fill("One\nTwo\nThree\nFour");
  assert.deepEqual(await marks(), ["", "", "", ""]);
  await page.show("new-agent");
  await page.getByLabel("Persona prompt").fill("All of it is new\nand needs no marks");
  assert.deepEqual(await marks(), ["", ""]);
  page.faults();
});

test("the draft is tried from the bar that saves it", async () => {
  const { page } = await stage.studio("eldrid");
  await page.show("agents/writer");
  await page.getByLabel("Persona prompt").fill("You are the draft.");
  await page.getByRole("link", { name: "Try the draft" }).click();
  await page.getByRole("textbox", { name: "Message" }).fill("Say good morning");
  assert.equal(await page.getByLabel("Version").inputValue(), "draft");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Good morning, Ada.").waitFor();
  assert.match(JSON.stringify(stage.models.asked.at(-1).body), /You are the draft\./);
  await page.goBack();
  assert.equal(await page.getByLabel("Persona prompt").inputValue(), "You are the draft.");
  // What is no model's is not tried.
  await page.show("agents/mira");
  await page.getByLabel("Role").fill("Editor");
  await page.getByRole("button", { name: "Review changes" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Try the draft" }).count(), 0);
  page.faults();
});

test("the foot of the box says how long the prompt is and what differs, and covers no text at its end", async () => {
  const { page } = await stage.studio("frigg");
  await page.show("agents/writer");
  const foot = page.locator(".long-area .fill").first();
  await page.getByLabel("Persona prompt").fill("One\nTwo\nThree");
  await foot.getByText("3 lines · about 4 tokens · 3 changed").waitFor();
  await foot.getByRole("button", { name: "Find" }).waitFor();
  await foot.scrollIntoViewIfNeeded();
  const [end, begin] = await page.evaluate(() => [document.querySelector(".area-lines > :last-child").getBoundingClientRect().bottom, document.querySelector(".long-area .fill").getBoundingClientRect().top]);
  assert.ok(end <= begin, `${end} ${begin}`);
  assert.deepEqual(await violations(page), []);
  page.faults();
});

test("the prompt is read in forced colours as in others", async () => {
  const { page } = await stage.studio("gudny");
  await page.show("agents/writer");
  await page.getByLabel("Persona prompt").fill("MMMM MMMM MMMM\nMMMM MMMM MMMM");
  /** How many pixels of the text stand out from the ground that is most of it. */
  const ink = async () => {
    const { x, y } = await page.locator(".area-lines > div").first().boundingBox();
    const image = (await page.screenshot({ clip: { x, y, width: 300, height: 44 } })).toString("base64");
    return page.evaluate(async (image) => {
      const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(image), (char) => char.charCodeAt(0))]));
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
      context.drawImage(bitmap, 0, 0);
      const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
      const light = Array.from({ length: data.length / 4 }, (_, i) => data[i * 4] + data[i * 4 + 1] + data[i * 4 + 2]);
      const ground = light.toSorted((a, b) => a - b)[light.length >> 1];
      return light.filter((one) => Math.abs(one - ground) > 300).length;
    }, image);
  };
  await page.locator("h1").first().click();
  const usual = await ink();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ forcedColors: "active", colorScheme });
    const forced = await ink();
    assert.ok(forced > usual / 2, `${colorScheme}: ${forced} of ${usual}`);
  }
  page.faults();
});
