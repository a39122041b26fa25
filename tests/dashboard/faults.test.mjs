// Faults that a review of the pages has found, and that would be easy to bring back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare, visit } from "./harness.mjs";

const stage = prepare();

const LINES = Array.from({ length: 40 }, (_, i) => `Line ${i + 1}`).join("\n");
const dialog = (page) => page.getByRole("dialog");
const signInAs = (page, user) =>
  page.evaluate((token) => fetch("/api/sessions", { method: "POST", headers: { Authorization: `Bearer ${token}` } }), stage.server.token(user));
const writer = async (user, id) => (await stage.server.call(user, "GET", `/api/agents/configs?workspace_id=${id}&agent_id=writer`))[0];
const inSight = (locator) =>
  locator.evaluate((one) => {
    const { left, top, bottom } = one.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight && one.contains(document.elementFromPoint(left + 4, (top + bottom) / 2));
  });

test("a click into a long text puts the caret there, also by touch and in full screen", async () => {
  const { page } = await stage.studio("agda");
  const area = page.getByLabel("Persona prompt");
  const click = async (line, tap) => {
    const { x, y, height } = await page.locator(".area-lines > div").nth(line - 1).boundingBox();
    await (tap ?? page.mouse.click.bind(page.mouse))(x + 30, y + height / 2);
    return area.evaluate((box) => [document.activeElement === box, box.value.slice(0, box.selectionStart).split("\n").length]);
  };
  await page.show("agents/writer");
  await area.fill(LINES);
  assert.deepEqual(await click(5), [true, 5]);
  await page.keyboard.type("!");
  assert.equal((await area.inputValue()).split("\n")[4].length, "Line 5!".length);
  await page.getByRole("button", { name: "Full screen" }).first().click();
  assert.deepEqual(await click(9), [true, 9]);
  await page.mouse.dblclick(...Object.values(await page.locator(".area-lines > div").nth(2).boundingBox()).slice(0, 2).map((at) => at + 6));
  assert.equal(await area.evaluate((box) => box.value.slice(box.selectionStart, box.selectionEnd).trim()), "Line");
  page.faults();

  const context = await stage.browser.newContext({ viewport: { width: 390, height: 800 }, hasTouch: true });
  const phone = await visit(context, stage.server);
  await phone.signIn("agda");
  await phone.show("agents/writer");
  const line = phone.locator(".area-lines > div").nth(3);
  await line.scrollIntoViewIfNeeded();
  const { x, y } = await line.boundingBox();
  await phone.touchscreen.tap(x + 30, y + 8);
  assert.equal(await phone.evaluate(() => document.activeElement.tagName), "TEXTAREA");
  await context.close();
});

test("what is wrong with a long text comes in sight when it is to be saved from within", async () => {
  const { page } = await stage.studio("birger");
  page.expect(400, "/api/agents/apply");
  await page.setViewportSize({ width: 1280, height: 600 });
  await page.show("agents/writer");
  const area = page.getByLabel("Persona prompt");
  await area.fill("long ".repeat(30_000));
  const fault = page.getByText(/characters too many/);
  for (const full of [false, true]) {
    if (full) await page.getByRole("button", { name: "Full screen" }).first().click();
    await area.press("Control+Home");
    await page.keyboard.press("Control+s");
    await fault.waitFor();
    await page.until(() => !document.querySelector(".full"));
    await page.waitForTimeout(200);
    assert.ok(await inSight(fault), `full screen: ${full}`);
  }
  page.faults();
});

test("a definition that is no JSON says nothing of variables", async () => {
  const { page, id } = await stage.studio("cajsa");
  await stage.server.call("cajsa", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, {
    persona_prompt: "Write of {{product}}.",
    definition: { variables: { product: {} } },
  });
  await page.show("agents/writer/definition");
  const area = page.getByLabel("Definition");
  await area.fill('{ "variables": ');
  await page.getByText(/It is no JSON/).waitFor();
  assert.equal(await page.getByText(/not declared/).count(), 0);
  await area.fill("{}");
  await page.getByText("{{product}} is in the persona and not declared").waitFor();
  page.faults();
});

test("nothing is saved as another user who has signed in, and the text is kept for the first one", async () => {
  const { page, id } = await stage.studio("dina");
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Typed by dina");
  await page.getByRole("button", { name: "Review changes" }).click();
  // By another page of the server, which does not tell this one.
  await signInAs(page, "mira");
  await dialog(page).getByRole("button", { name: /^Save/ }).click();
  await page.getByText("Not saved. Another user is signed in here.").waitFor();
  await page.getByRole("button", { name: "mira", exact: true }).waitFor();
  assert.equal((await writer("dina", id)).role, "Long-form writer");
  await signInAs(page, "dina");
  await page.show("agents/writer");
  await page.getByText("Draft restored.").waitFor();
  assert.equal(await page.getByLabel("Role").inputValue(), "Typed by dina");

  // A sign-in of the dashboard is told to the other tabs at once.
  const other = await visit(page.context(), stage.server);
  await other.signIn("mira");
  await page.getByRole("button", { name: "mira", exact: true }).waitFor();
  assert.equal(await page.getByText("Typed by dina").count(), 0);
  page.faults();
});

test("what a user has open over the page is gone with the next user, a secret first of all", async () => {
  const { page } = await stage.studio("embla");
  await stage.server.workspace("ylva", "Of ylva");
  // The stream of a workspace may begin again before the page knows that its user has gone.
  page.expect(403, "/api/changes");
  const other = await visit(page.context(), stage.server);
  const next = (user) => Promise.all([other.signIn(user), page.getByRole("button", { name: user, exact: true, includeHidden: true }).waitFor({ state: "attached" })]);
  const create = async (name) => {
    await page.show("api-keys?new=1");
    await dialog(page).getByLabel("Name").fill(name);
    await dialog(page).getByRole("button", { name: "Create key" }).click();
  };
  const asks = () => page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true })));
  await create("of embla");
  const secret = await page.locator("[data-secret]").innerText();
  assert.equal(await asks(), true);
  await next("ylva");
  await dialog(page).waitFor({ state: "detached" });
  assert.equal((await page.content()).includes(secret), false);
  assert.equal(await asks(), false);

  // Her answer comes after she has gone.
  await next("embla");
  let answered;
  await page.route("**/api/api-keys", async (route) => {
    const response = await route.fetch();
    answered = () => route.fulfill({ response });
  });
  await create("late");
  const deadline = Date.now() + 10_000;
  while (!answered && Date.now() < deadline) await page.waitForTimeout(50);
  await next("ylva");
  await answered();
  await page.getByText("Not created. Another user is signed in here.").waitFor();
  assert.equal(await page.locator("[data-secret]").count(), 0);

  await next("embla");
  await page.show("overview");
  await page.getByRole("button", { name: "Studio" }).click();
  await page.getByRole("menuitem", { name: "New workspace" }).click();
  await dialog(page).getByLabel("Name").fill("Half typed");
  await next("ylva");
  await dialog(page).waitFor({ state: "detached" });
  page.faults();
});

test("two tabs of a user keep a draft each", async () => {
  const { page: a } = await stage.studio("eskil");
  await a.show("agents/writer");
  const b = await visit(a.context(), stage.server);
  await b.show("agents/writer");
  const role = (page) => page.getByLabel("Role");
  await role(b).fill("Of the second tab");
  await role(a).fill("Of the first tab");
  await a.getByRole("button", { name: "Review changes" }).click();
  await dialog(a).getByRole("button", { name: /^Save/ }).click();
  await a.getByText(/Writer is saved/).waitFor();
  await b.getByText("Writer changed while you were editing.").waitFor();
  await b.reload();
  await b.getByText("Draft restored.").waitFor();
  assert.equal(await role(b).inputValue(), "Of the second tab");

  // A third tab goes on with the draft: the second one keeps what it has.
  const c = await visit(a.context(), stage.server);
  await c.show("agents/writer");
  await c.getByText("Draft restored.").waitFor();
  await role(c).fill("Of the third tab");
  await c.reload();
  await c.getByText("Draft restored.").waitFor();
  assert.equal(await role(c).inputValue(), "Of the third tab");
  await b.reload();
  await b.getByText("Draft restored.").waitFor();
  assert.equal(await role(b).inputValue(), "Of the second tab");
  for (const page of [a, b, c]) page.faults();
});

test("a session that ends while a dialog is open can be begun again from there", async () => {
  const { page } = await stage.studio("fia");
  page.expect(401, "/api/agents/configs");
  await page.show("agents/writer");
  await page.getByLabel("Role").fill("Typed before the end");
  await page.getByRole("button", { name: "Review changes" }).click();
  for (const path of ["configs", "status", "versions", "labels", "status/history"]) page.expect(401, `/api/agents/${path}`);
  for (const path of ["models", "api-keys", "audit-log", "changes", "usage", "budgets", "webhooks", "workspaces/members", "provider-keys"]) page.expect(401, `/api/${path}`);
  await page.evaluate(() => fetch("/api/sessions", { method: "DELETE" }));
  await dialog(page).getByRole("button", { name: /^Save/ }).click();
  await dialog(page).getByRole("link", { name: "Open sign-in" }).waitFor();
  await signInAs(page, "fia");
  await dialog(page).getByRole("button", { name: "Continue" }).click();
  await dialog(page).getByText("Your session has ended.").waitFor({ state: "detached" });
  await dialog(page).getByRole("button", { name: /^Save/ }).click();
  await page.getByText(/Writer is saved/).waitFor();
  page.faults();
});

test("the keys of further providers have a card, and the model says whose key pays", async () => {
  const { page, id } = await stage.studio("gudrun");
  await page.route("**/api/models?*", async (route) => {
    const answer = await route.fetch();
    const further = { id: "llama-4", provider: "openrouter", display_name: "Llama 4", status: "available", credential: "none" };
    await route.fulfill({ response: answer, json: [...(await answer.json()), further] });
  });
  await stage.server.call("gudrun", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { model: "llama-4" });
  await page.show("ai-providers");
  await page.getByRole("region", { name: "openrouter" }).getByLabel("Your openrouter key").waitFor();
  await page.show("agents/writer");
  await page.getByText("No openrouter key here").waitFor();
  page.faults();
});

test("what could not be read is said, and not taken for nothing", async () => {
  const { page } = await stage.studio("hulda");
  page.expect(503, "/api/agents/labels");
  page.expect(500, "/api/usage");
  await page.route("**/api/agents/labels?*", (route) => route.fulfill({ status: 503, json: { error: "later" } }));
  await page.route("**/api/usage?*", (route) => route.fulfill({ status: 500, json: { error: "broken" } }));
  await page.show("overview");
  await page.getByText("The last releases could not be read.").waitFor();
  assert.equal(await page.getByText("Nothing was released yet").count(), 0);
  await page.show("agents");
  await page.getByText("A part of the table could not be read.").waitFor();
  page.faults();
});

test("answers of the playground stay while another page is shown, and one that broke off is not the best", async () => {
  const { page } = await stage.studio("inga");
  await page.show("agents/writer/try");
  await page.getByRole("button", { name: "Add a column" }).click();
  let calls = 0;
  await page.route("**/api/agents/model-calls/**", async (route) => {
    calls += 1;
    const whole = calls === 1 ? 'data: {"type":"message_delta","usage":{"output_tokens":7}}\n\n' : "data: {broken\n\n";
    if (calls === 1) await new Promise((resolve) => setTimeout(resolve, 300));
    await route.fulfill({ contentType: "text/event-stream", body: `data: {"delta":{"text":"Good morning"}}\n\n${whole}` });
  });
  await page.getByRole("textbox", { name: "Message" }).fill("Say good morning");
  await page.getByRole("button", { name: "Send to 2" }).click();
  await page.getByText("The answer is not complete.").waitFor();
  await page.getByRole("button", { name: "Start again" }).waitFor();
  assert.equal(await page.locator(".answers .best").count(), 0);
  await page.getByRole("link", { name: /^History/ }).first().click();
  await page.getByRole("button", { name: /Roll back/ }).first().waitFor();
  await page.goBack();
  await page.locator(".answer-cell").getByText("Good morning", { exact: true }).first().waitFor();
  assert.deepEqual((await page.locator(".answer-cell").allInnerTexts()).map((text) => text.split("\n")[0]), ["Good morning", "Good morning"]);
  page.faults();
});

test("an answer that breaks off before its first text says so, and an error within it is shown", async () => {
  const { page } = await stage.studio("ingrid");
  const bodies = ["data: {broken\n\n", 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded right now"}}\n\n', 'data: {"delta":{"text":"Good"}}\n\ndata: {"error":{"message":"Out of quota"}}\n\n'];
  await page.route("**/api/agents/model-calls/**", (route) => route.fulfill({ contentType: "text/event-stream", body: bodies.shift() }));
  await page.show("agents/writer/try");
  const answers = page.locator(".answer-cell");
  for (const [i, said] of [[0, /The answer is not complete\.\s+The provider broke it off/], [1, /The call failed\.\s+Overloaded right now/], [2, /Out of quota[\s\S]*Good/]]) {
    await page.getByRole("textbox", { name: "Message" }).fill("Say good morning");
    await page.getByRole("button", { name: "Send" }).click();
    await answers.nth(i).locator(".banner").waitFor();
    assert.match(await answers.nth(i).innerText(), said);
  }
  page.faults();
});

test("a webhook is enabled once by a double click, and the page says so at once", async () => {
  const { page, id } = await stage.studio("judit");
  const hook = { id: "h1", workspace_id: id, url: "https://example.com/in", types: ["*"], description: null, ordered: false, cursor: "c", created_at: new Date().toISOString(), updated_at: new Date().toISOString() };
  const state = { enabled: false, disabled_reason: "gone" };
  let patches = 0;
  await page.route("**/api/webhooks?*", async (route) => {
    if (route.request().method() !== "PATCH") return route.fulfill({ json: [{ ...hook, ...state }] });
    patches += 1;
    await new Promise((resolve) => setTimeout(resolve, 300));
    Object.assign(state, { enabled: true, disabled_reason: null });
    return route.fulfill({ json: { ...hook, ...state } });
  });
  await page.route("**/api/webhooks/deliveries?*", (route) => route.fulfill({ json: [] }));
  await page.show("webhooks/h1");
  await page.getByRole("button", { name: "Enable" }).dblclick();
  await page.getByText("example.com/in is enabled.").waitFor();
  await page.getByText(/This webhook was disabled/).waitFor({ state: "detached" });
  assert.equal(patches, 1);
  page.faults();
});

test("usage without a price is no zero, and a version is seen whole", async () => {
  const { page, id } = await stage.studio("kaia");
  const name = "An agent of a name that is far too long for any column ".repeat(2).trim().slice(0, 100);
  await stage.server.call("kaia", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { display_name: name });
  const row = { calls: 19, errors: 1, input_tokens: 9, cached_input_tokens: 0, output_tokens: 9, unpriced_calls: 19, cost_usd: "0", duration_ms: 9, first_byte_ms: 9, p95_ms: 9 };
  await page.route("**/api/usage?*", (route) => {
    const by = new URL(route.request().url()).searchParams.get("by") ?? "";
    const step = /day/.test(by) ? { day: `${new Date().toISOString().slice(0, 10)}T00:00:00Z` } : {};
    const of = (version) => ({ ...row, ...step, ...(by.includes("agent") || by.includes("version") ? { agent: "writer", version } : {}) });
    return route.fulfill({ json: by.includes("version") ? [of(1), of(2)] : [of(2)] });
  });
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.show("usage?by=version");
  const cells = page.locator(".usage-table tbody td:first-child");
  await cells.nth(1).waitFor();
  // The name is cut at its end, so that the version stands before it.
  for (const text of await cells.allInnerTexts()) assert.match(text, /^(\S+\s)?v[12] of An agent/);
  assert.equal(await page.locator(".usage-table").getByText("0.00").count(), 0);
  await page.show("agents/writer/usage");
  await page.getByText("Before and after").waitFor();
  assert.equal(await page.locator("main").getByText(/0\.00 ¢|\$0\.00/).count(), 0);
  await page.getByText("1 call", { exact: true }).first().waitFor();
  page.faults();
});

test("the page of an agent of a long name without calls stays within the window", async () => {
  const { page, id } = await stage.studio("lova");
  await stage.server.call("lova", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { display_name: "x".repeat(100) });
  for (const width of [1440, 390, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await page.show("agents/writer/usage");
    await page.getByText(/^No call as/).waitFor();
    assert.ok(await page.evaluate(() => [document.documentElement, document.querySelector("main")].every((one) => one.scrollWidth <= one.clientWidth)), String(width));
    assert.ok(await page.locator(".empty h2").evaluate((one) => one.getBoundingClientRect().right <= innerWidth), String(width));
  }
  page.faults();
});

test("what turns the direction of text in a name ends with the name", async () => {
  const { page, id } = await stage.studio("bidi");
  await stage.server.call("bidi", "POST", "/api/agents/configs", { workspace_id: id, agent_id: "rlo", display_name: "Pay \u202eevil", model: "claude-sonnet-5-5", persona_prompt: "x" });
  /** The characters of an element as they stand beside each other, from the left. */
  const seen = (found) =>
    found.evaluate((element) => {
      const letters = [];
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode())
        for (let i = 0; i < node.data.length; i += 1) {
          const range = document.createRange();
          range.setStart(node, i);
          range.setEnd(node, i + 1);
          const { left, width } = range.getBoundingClientRect();
          if (width) letters.push([left, node.data[i]]);
        }
      return letters.sort(([a], [b]) => a - b).map(([, letter]) => letter).join("");
    });
  await page.show("overview");
  await page.getByText("created").first().waitFor();
  assert.match(await seen(page.locator(".list .grow", { hasText: "evil" }).first()), /^bidi ?created ?Pay ?live$/);
  await page.show("agents/rlo");
  await page.getByLabel("Role").fill("Books");
  await page.keyboard.press("Control+s");
  assert.equal(await seen(page.getByRole("dialog").getByRole("heading")), "Save Pay live?");
  await page.keyboard.press("Control+s");
  await page.getByText(/is saved as v2/).waitFor();
  assert.match(await seen(page.locator(".toast").first()), /^Pay live is saved as v2\./);
  await page.getByRole("button", { name: /Actions for/ }).click();
  await page.getByRole("menuitem", { name: "Delete agent" }).click();
  assert.equal(await seen(page.getByRole("dialog").getByRole("heading")), "Delete Pay live?");
  page.faults();
});
