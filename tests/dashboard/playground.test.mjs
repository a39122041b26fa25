// The playground: versions and models side by side, with variables, and what each call was asked.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare, violations, visit } from "./harness.mjs";

const stage = prepare();

const message = (page) => page.getByRole("textbox", { name: "Message" });

test("model, provider and who pays come from the chosen version", async () => {
  const { page, id } = await stage.studio("pia");
  await stage.server.call("pia", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { model: "gpt-5.5" });
  await page.show("agents/writer/try");
  await page.getByText("The version's own model · OpenAI: there is no key for it").waitFor();
  await page.getByLabel("Version").selectOption("version 2");
  await page.getByText("The version's own model · Anthropic, paid with your key").waitFor();
  await message(page).fill("Say good morning");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Good morning, Ada.").waitFor();
  await page.getByText(/Answered in .*7 tokens, v2/).waitFor();
  const asked = stage.models.asked.at(-1);
  assert.deepEqual([asked.path, asked.body.model], ["/v1/messages", "claude-sonnet-5-5"]);
  await page.getByLabel("Model").selectOption("claude-haiku-5-5");
  await page.getByText("Instead of claude-sonnet-5-5 · Anthropic").waitFor();
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/Answered in .*7 tokens, v2/).nth(1).waitFor();
  assert.equal(stage.models.asked.at(-1).body.model, "claude-haiku-5-5");
  page.faults();
});

test("two versions answer beside each other, and the conversation goes on in each", async () => {
  const { page } = await stage.studio("quirin");
  await page.show("agents/writer/try");
  await page.getByRole("button", { name: "Add a column" }).click();
  assert.equal(await page.getByLabel("Version").nth(1).inputValue(), "label production");
  await message(page).fill("Say good morning");
  const before = stage.models.asked.length;
  await page.getByRole("button", { name: "Send to 2" }).click();
  await page.getByRole("group", { name: "Answer 2" }).getByText(/Answered in .*v1/).waitFor();
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    const cut = await page.locator(".answers-head select").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width).filter((width) => width < 130));
    assert.deepEqual(cut, [], `${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole("group", { name: "Answer 1" }).getByText(/Answered in .*v2/).waitFor();
  assert.equal(stage.models.asked.length, before + 2);
  await page.getByRole("button", { name: "Difference" }).click();
  await page.locator(".compared").getByText("Good morning, Ada.").waitFor();
  assert.deepEqual(await violations(page), []);
  await message(page).fill("And good night");
  await page.getByRole("button", { name: "Send to 2" }).click();
  await page.getByRole("group", { name: "Answer 1" }).nth(1).getByText(/Answered in/).waitFor();
  assert.deepEqual(stage.models.asked.at(-1).body.messages, [{ role: "user", content: "Say good morning" }, { role: "assistant", content: "Good morning, Ada." }, { role: "user", content: "And good night" }]);
  await page.getByRole("button", { name: "Remove the column" }).nth(1).click();
  await page.getByRole("button", { name: "Start again" }).click();
  assert.equal(await page.getByText("Good morning, Ada.").count(), 0);
  await page.getByRole("button", { name: "Add a column" }).click();
  await page.getByRole("link", { name: "Label v2" }).click();
  await page.getByRole("heading", { level: 1, name: /production/ }).waitFor();
  page.faults();
});

test("in a difference, the words of one answer do not touch those of the other", async () => {
  const { page } = await stage.studio("ragna");
  let turn = 0;
  await page.route(/model-calls/, (route) => {
    const text = ["We can refund you within ten days", "We can refund you within 14 days"][turn++];
    return route.fulfill({ headers: { "Content-Type": "text/event-stream" }, body: `data: ${JSON.stringify({ delta: { text } })}\n\ndata: [DONE]\n\n` });
  });
  await page.show("agents/writer/try");
  await page.getByRole("button", { name: "Add a column" }).click();
  await message(page).fill("Refund?");
  await page.getByRole("button", { name: "Send to 2" }).click();
  await page.getByRole("button", { name: "Difference" }).click();
  assert.match(await page.locator(".compared").innerText(), /within (ten 14|14 ten) days$/);
  page.faults();
});

test("variables are asked for, and sent as they are", async () => {
  const { page, id } = await stage.studio("rike");
  await stage.server.call("rike", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { persona_prompt: "Write about {{product}} in {{length}}.", definition: { variables: { product: { required: true }, length: { default: "120 words" } } } });
  await page.show("agents/writer/try");
  await message(page).fill("Go");
  const before = stage.models.asked.length;
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("The persona needs a value.").waitFor();
  assert.equal(stage.models.asked.length, before, "nothing is sent");
  await page.getByLabel("{{product}}").fill("Bücher – 本");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("Good morning, Ada.").waitFor();
  assert.match(JSON.stringify(stage.models.asked.at(-1).body.system), /Write about Bücher – 本 in 120 words\./);
  page.faults();
});

test("an answer is shown as elements, never as HTML", async () => {
  const { page } = await stage.studio("sanna");
  const text = "# Title\n\nSome **bold**, *Pin* and 2 * 3 * 4, `code` <img src=x onerror=alert(1)>\n\n- one\n- two\n\n1. first\n\n```\nlet x;\n```\nend";
  await page.route(/model-calls/, (route) =>
    route.fulfill({ headers: { "Content-Type": "text/event-stream" }, body: `data: ${JSON.stringify({ delta: { text } })}\n\ndata: [DONE]\n\n` }),
  );
  await page.show("agents/writer/try");
  await message(page).fill("Go");
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.locator(".markdown");
  await answer.getByText("end", { exact: true }).waitFor();
  assert.deepEqual(await answer.evaluate((element) => [...element.children].map(({ tagName }) => tagName)), ["P", "P", "UL", "OL", "PRE", "P"]);
  assert.equal(await answer.locator("img").count(), 0);
  assert.deepEqual(await answer.locator("p b, em").allInnerTexts(), ["Title", "bold", "Pin"]);
  await answer.getByText("2 * 3 * 4").waitFor();
  await answer.getByText("<img src=x onerror=alert(1)>").waitFor();
  page.faults();
});

test("a draft answers beside the stored version, what is sent is shown, and the cost is that of the usage", async () => {
  const { page, id } = await stage.studio("tilda");
  await stage.server.call("tilda", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { persona_prompt: "Write for {{reader}}.", definition: { variables: { reader: { default: "all" } }, model_settings: { temperature: 0.25 } } });
  await page.show("agents/writer");
  await page.getByLabel("Persona prompt").fill("Rhyme for {{reader}}. {{other}}");
  await page.getByRole("navigation", { name: "Agent" }).getByRole("link", { name: "Playground" }).click();
  await page.getByRole("button", { name: "Add a column" }).click();
  await page.getByLabel("Version").nth(1).selectOption("draft");
  await page.getByLabel("{{reader}}").fill("bees");
  await page.getByRole("button", { name: "What is sent" }).first().click();
  const dialog = page.getByRole("dialog", { name: "What is sent" });
  assert.match(await dialog.locator("pre").innerText(), /"model": "claude-sonnet-5-5"[\s\S]*"system": "Write for bees\."[\s\S]*"temperature": 0\.25/);
  assert.deepEqual(await violations(page), []);
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "What is sent" }).nth(1).click();
  assert.match(await dialog.locator("pre").innerText(), /"system": "Rhyme for bees\. \{\{other\}\}"/);
  await dialog.getByRole("button", { name: "Close" }).click();
  await message(page).fill("Go");
  const before = stage.models.asked.length;
  await page.getByRole("button", { name: "Send to 2" }).click();
  await page.getByRole("group", { name: "Answer 2" }).getByText(/Answered in/).waitFor();
  await page.getByRole("group", { name: "Answer 1" }).getByText(/Answered in/).waitFor();
  const bodies = stage.models.asked.slice(before).map(({ body }) => [JSON.stringify(body.system), body.model, body.temperature]);
  assert.ok(bodies.some(([system]) => /Write for bees\./.test(system)), JSON.stringify(bodies));
  assert.ok(bodies.some(([system, model, temperature]) => /Rhyme for bees\. \{\{other\}\}/.test(system) && model === "claude-sonnet-5-5" && temperature === 0.25), JSON.stringify(bodies));
  assert.match(await page.getByRole("group", { name: "Answer 2" }).innerText(), /7 tokens, draft/);
  assert.match(await page.getByRole("group", { name: "Answer 1" }).innerText(), /7 tokens, v3/);
  const [spent] = (await stage.server.call("tilda", "GET", `/api/usage/calls?workspace_id=${id}`)).map(({ cost_usd }) => cost_usd);
  assert.notEqual(spent, null);
  await page.locator(".answer-foot").first().getByText(/^[\d.]+ ¢$|^\$/).waitFor();
  page.faults();
});

test("a case is saved in the browser, tried again and removed, and the version of one column can be labelled", async () => {
  const { page, id } = await stage.studio("ylva");
  await stage.server.call("ylva", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=writer`, { persona_prompt: "Greet {{name}}.", definition: { variables: { name: { required: true } } } });
  await page.show("agents/writer/try");
  const message = page.getByRole("textbox", { name: "Message" });
  await page.getByLabel("{{name}}").fill("Ada");
  await message.fill("Say good evening");
  await page.getByRole("button", { name: "Save case" }).click();
  await message.fill("Say good night");
  await page.getByLabel("{{name}}").fill("Bo");
  await page.getByRole("button", { name: "Save case" }).click();
  await message.fill("");
  await page.reload();
  await page.getByLabel("Saved cases").selectOption({ label: "Say good evening" });
  assert.equal(await message.inputValue(), "Say good evening");
  assert.equal(await page.getByLabel("{{name}}").inputValue(), "Ada");
  await page.getByRole("button", { name: "Remove case" }).click();
  assert.deepEqual(await page.getByLabel("Saved cases").locator("option").allInnerTexts(), ["Saved cases", "Say good night"]);
  assert.deepEqual(await violations(page), []);
  await page.getByRole("link", { name: "Label v3" }).click();
  await page.getByRole("heading", { level: 1 }).filter({ hasText: /Review|Promote|Release|Move/ }).waitFor();
  assert.match(page.url(), /releases\/review\?.*of=writer&version=3/);
  page.faults();
});

test("a draft without a persona is sent without the stored one, and a failure is read out as one", async () => {
  const { page } = await stage.studio("urda");
  await page.show("agents/writer");
  await page.getByLabel("Persona prompt").fill("");
  await page.getByRole("link", { name: "Try the draft" }).click();
  await message(page).fill("Go");
  await page.keyboard.press("Control+Enter");
  await page.getByText(/Answered in/).waitFor();
  const { system } = stage.models.asked.at(-1).body;
  assert.ok(!system?.length, JSON.stringify(system));
  await page.getByRole("status").filter({ hasText: /^Answered$/ }).waitFor({ state: "attached" });
  page.expect(503, "/messages");
  await page.route(/model-calls/, (route) => route.fulfill({ status: 503, body: '{"error":"no room"}' }));
  await page.keyboard.press("Control+Enter");
  await page.getByText("The call failed.").waitFor();
  await page.getByRole("status").filter({ hasText: /^No call was answered$/ }).waitFor({ state: "attached" });
  page.faults();
});

test("cases that are saved in two tabs are kept beside each other", async () => {
  const { page } = await stage.studio("vigga");
  const other = await visit(page.context(), stage.server);
  for (const one of [page, other]) await one.show("agents/writer/try");
  for (const [one, text] of [[page, "Say one"], [other, "Say two"], [page, "Say three"]]) {
    await message(one).fill(text);
    await one.getByRole("button", { name: "Save case" }).click();
    for (const each of [page, other]) await each.getByLabel("Saved cases").locator("option", { hasText: text }).waitFor({ state: "attached" });
  }
  assert.deepEqual(await other.getByLabel("Saved cases").locator("option").allInnerTexts(), ["Saved cases", "Say three", "Say two", "Say one"]);
  page.faults();
  other.faults();
});
