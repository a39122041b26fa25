// The snippets that connect an application.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare, violations } from "./harness.mjs";

const stage = prepare();

test("a model call is shown in four languages, for the agent, its label and its provider", async () => {
  const { page } = await stage.studio("unn");
  await page.show("connect");
  const code = page.locator(".snippet", { hasText: "Call a model as the agent" }).locator("pre");
  const has = (pattern) => code.filter({ hasText: pattern }).waitFor();
  await has(/curl '[^']*\/anthropic\/@writer:production\/v1\/messages'/);
  await page.getByRole("button", { name: "Python" }).click();
  await has(/client = Anthropic\(base_url="[^"]*\/anthropic\/@writer:production"/);
  await page.getByLabel("For the agent").selectOption("code-reviewer");
  await has(/client = OpenAI\(base_url="[^"]*\/openai\/@code-reviewer\/v1"[\s\S]*chat\.completions\.create/);
  await page.getByRole("button", { name: "TypeScript" }).click();
  await has(/fetch\("[^"]*\/openai\/@code-reviewer\/v1\/chat\/completions"/);
  await page.reload();
  await has(/await fetch/);
  assert.deepEqual(await violations(page), []);
  page.faults();
  await page.context().close();
});
