// What the navigation says of what needs a person, and how people are called.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare, violations } from "./harness.mjs";

const stage = prepare();

test("the navigation shows disabled webhooks, keys that end, budgets near their limit, and a full plan", async () => {
  const { page, id } = await stage.studio("nora");
  await stage.server.call("nora", "PUT", `/api/budgets?workspace_id=${id}&scope=workspace&period=month`, { limit_usd: 10 });
  const hook = { id: "h", workspace_id: id, url: "https://example.com/in", types: ["agent.*"], description: null, ordered: false, cursor: "c", created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-02T00:00:00Z" };
  await page.route(/\/api\/webhooks\?/, (route) => route.fulfill({ json: [{ ...hook, enabled: false, disabled_reason: "failing" }, { ...hook, id: "by-hand", enabled: false, disabled_reason: null }] }));
  let spent = "9.5";
  await page.route(/\/api\/budgets\?/, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: (await answer.json()).map((budget) => ({ ...budget, spent_usd: spent })) });
  });
  await page.route(/\/api\/whoami/, async (route) => {
    const answer = await route.fetch();
    const who = await answer.json();
    await route.fulfill({ response: answer, json: { ...who, workspaces: who.workspaces.map((one) => ({ ...one, agent_limit: one.active_agents })) } });
  });
  const expires_at = new Date(Date.now() + 10 * 86_400_000).toISOString();
  await stage.server.call("nora", "POST", "/api/api-keys", { workspace_id: id, name: "in-ten-days", environment: "production", scope: "read", expires_at });
  // The page marks the keys that the navigation counts.
  await page.show("api-keys");
  await page.getByRole("row", { name: /in-ten-days/ }).locator(".badge", { hasText: "in 10 days" }).waitFor();
  await page.show("members");
  const place = (name) => page.getByRole("navigation").getByRole("link", { name });
  await place("Webhooks 1 disabled").waitFor();
  await place("API keys 2 expiring").waitFor();
  await place("Usage 1 budget low").waitFor();
  await place("Agents 10 of 10").waitFor();
  await place(/^Overview \d open$/).waitFor();
  assert.deepEqual(await violations(page), []);
  spent = "10";
  await page.reload();
  await place("Usage 1 budget over").waitFor();
  page.faults();
  await page.context().close();
});

test("members are called by their names, with the id below", async () => {
  const { page } = await stage.studio("olga");
  await page.route(/\/api\/workspaces\/members\?/, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: (await answer.json()).map((member) => (member.user_id === "olga" ? { ...member, name: "Olga Berg", email: "olga@example.com" } : member)) });
  });
  await page.show("members");
  const row = page.getByRole("row", { name: /Olga Berg/ });
  assert.match(await row.innerText(), /Olga Berg\s+olga/);
  await page.getByRole("row", { name: /mira/ }).waitFor();
  await page.show("agents/writer/history");
  await page.getByText("Olga Berg").first().waitFor();
  page.faults();
  await page.context().close();
});
