// What people have not: a persona and a model; and what a provider's key tells of itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare } from "./harness.mjs";

const stage = prepare();

test("a person has no persona and no model, unless one is stored", async () => {
  const { page, id } = await stage.studio("ylva");
  await page.show("agents/mira");
  await page.getByLabel("Display name").waitFor();
  assert.equal(await page.getByLabel("Persona prompt").count(), 0);
  assert.equal(await page.getByLabel("Model").count(), 0);
  await stage.server.call("ylva", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=mira`, { persona_prompt: "Kind." });
  await page.getByLabel("Persona prompt").waitFor();
  await page.show("new-agent");
  await page.getByLabel("Persona prompt").waitFor();
  await page.getByText("Human", { exact: true }).click();
  await page.getByLabel("Persona prompt").waitFor({ state: "detached" });
  page.faults();
  await page.context().close();
});

test("a provider's key is tested, and is told apart by its fingerprint", async () => {
  const { page } = await stage.studio("zita");
  let answer = { ok: true, status: 200, message: "" };
  await page.route(/provider-keys\/test/, (route) => route.fulfill({ json: answer }));
  await page.show("ai-providers");
  const card = page.getByRole("region", { name: "Anthropic" });
  await card.getByText(/fingerprint [0-9a-f]{8}\./).waitFor();
  await card.getByRole("button", { name: "Test key" }).click();
  await page.getByText("The Anthropic key is valid.").waitFor();
  answer = { ok: false, status: 401, message: "invalid x-api-key" };
  await card.getByRole("button", { name: "Test key" }).click();
  await page.getByText("The Anthropic key failed: invalid x-api-key").waitFor();
  page.faults();
  await page.context().close();
});
