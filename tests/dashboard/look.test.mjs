// How the page looks is the choice of its user, kept in the browser: the theme and the height of the rows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fill, open, prepare, Server, violations } from "./harness.mjs";

const stage = prepare();

const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const LIGHT = "rgb(245, 246, 248)";
const DARK = "rgb(12, 13, 16)";

test("a theme is chosen in the menu of the user, and stays", async () => {
  const { page } = await stage.studio("agda");
  await page.show("agents");
  const pick = async (name) => {
    await page.getByRole("button", { name: "agda", exact: true }).click();
    await page.getByRole("menuitemcheckbox", { name }).click();
  };
  assert.equal(await background(page), LIGHT);
  await pick("Dark theme");
  assert.equal(await background(page), DARK);
  assert.deepEqual(await violations(page), []);
  await page.reload();
  await page.getByRole("link", { name: "Writer" }).waitFor();
  assert.equal(await background(page), DARK);
  await page.getByRole("button", { name: "agda", exact: true }).click();
  assert.equal(await page.getByRole("menuitemcheckbox", { name: "Dark theme" }).getAttribute("aria-checked"), "true");
  assert.equal(await page.getByRole("menuitemcheckbox", { name: "Light theme" }).getAttribute("aria-checked"), "false");
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Escape");

  // A chosen theme does not follow the system, and that of the system does.
  await pick("Light theme");
  await page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await background(page), LIGHT);
  assert.deepEqual(await violations(page), []);
  await pick("Theme of the system");
  assert.equal(await background(page), DARK);
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await background(page), LIGHT);
  page.faults();
});

test("rows are as high as chosen, in lists that are drawn in part, too", async (context) => {
  const big = await Server.start({ AGENTCFG_DEFAULT_PLAN: "enterprise" });
  context.after(() => big.stop());
  const { id } = await fill(big, "bodil");
  const page = await open(stage.browser, big);
  await page.signIn("bodil");
  const agents = Array.from({ length: 300 }, (_, i) => ({ agent_id: `many-${i}`, display_name: `Many ${String(i).padStart(3, "0")}` }));
  await big.call("bodil", "POST", `/api/agents/apply?workspace_id=${id}`, { agents });
  await page.show("agents?sort=name");
  const height = () => page.locator("tbody tr[data-row]").nth(3).evaluate((row) => row.getBoundingClientRect().height);
  assert.equal(Math.round(await height()), 44);
  await page.getByRole("button", { name: "bodil", exact: true }).click();
  await page.getByRole("menuitemcheckbox", { name: "Compact rows" }).click();
  await page.until(() => document.querySelector("tbody tr[data-row]").getBoundingClientRect().height < 40);
  assert.equal(Math.round(await height()), 34);
  await page.reload();
  await page.getByRole("link", { name: "Many 000" }).waitFor();
  assert.equal(Math.round(await height()), 34);
  // The spaces for rows that are not drawn have the same height: the last row is at the end.
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await page.getByRole("link", { name: "Writer" }).waitFor();
  const rows = await page.evaluate(() => document.querySelector("tbody").getBoundingClientRect().height / 34);
  assert.equal(Math.round(rows), 310);
  // A narrow window keeps its room for fingers.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.until(() => document.querySelector("tbody tr[data-row]").getBoundingClientRect().height > 50);
  page.faults();
});

test("text of twice the size is cut in no control, and stays beside the navigation", { timeout: 90_000 }, async () => {
  const { page, id } = await stage.studio("cecil");
  const call = await stage.server.raw("cecil", "POST", `/api/agents/model-calls/anthropic/v1/messages?workspace_id=${id}&agent_id=writer`, { max_tokens: 50, stream: true, messages: [{ role: "user", content: "Hello" }] });
  assert.equal(call.status, 200);
  await call.text();
  for (const path of ["overview", "agents", "agents/writer", "members", "releases", "usage"]) {
    await page.show(path);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.evaluate(() => (document.documentElement.style.fontSize = "200%"));
    const cut = await page.evaluate(() => {
      const controls = [...document.querySelectorAll("button, .button, .badge, .station, input.input, select, .place")].filter((one) => one.checkVisibility() && !one.closest(".hidden"));
      const tall = controls.filter((one) => one.scrollHeight > one.clientHeight + 3);
      const edge = document.querySelector(".side").getBoundingClientRect().right;
      const over = [...document.querySelectorAll(".side *")].filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > edge + 1);
      // Figures and what stands beside a chart keep their place: none reaches into the next one.
      const wide = [...document.querySelectorAll(".stats > *, .with-key, .usage-split")].filter((one) => one.scrollWidth > one.clientWidth + 1);
      return [...tall, ...over, ...wide].map((one) => `${one.tagName} ${one.className} ${one.textContent.slice(0, 30)}`);
    });
    assert.deepEqual(cut, [], path);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280, path);
  }
  page.faults();
});

test("tables whose text is of twice the size lose nothing: they scroll", { timeout: 90_000 }, async () => {
  const { page } = await stage.studio("cosima");
  for (const [path, width] of [["agents", 1280], ["releases", 1280], ["releases", 1440], ["agents", 800]]) {
    await page.setViewportSize({ width, height: 800 });
    await page.show(path);
    await page.getByText("Live", { exact: true }).waitFor();
    const lost = () =>
      page.evaluate(() =>
        [...document.querySelectorAll("td, td .clip, thead th")]
          .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible")
          .map((one) => one.textContent.slice(0, 40)),
      );
    await page.evaluate(() => (document.documentElement.style.fontSize = "200%"));
    assert.deepEqual(await lost(), [], `${path} ${width}`);
    const table = page.locator("main table").first();
    assert.ok(await table.evaluate((one) => one.scrollWidth > one.clientWidth), "it scrolls");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, path);
    assert.deepEqual(await violations(page), []);
  }
  page.faults();
});

test("a slider shows its value in forced colours, too", async () => {
  const { page } = await stage.studio("dina");
  await page.emulateMedia({ forcedColors: "active" });
  await page.show("agents/writer");
  const slider = page.locator("input[type=range]").first();
  const { x, y, width, height } = await slider.boundingBox();
  // A part of the track that the thumb is far from.
  const part = async (value) => {
    await slider.fill(value);
    return page.screenshot({ clip: { x: x + width * 0.4, y, width: 8, height } });
  };
  const [low, high] = [await part("10"), await part("90")];
  assert.ok(!low.equals(high), "the filled part looks different");
  page.faults();
});

test("the arrow and Enter lead from the filter to what was found", async () => {
  const { page } = await stage.studio("embla");
  await page.show("agents");
  await page.getByRole("link", { name: "Writer" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("check");
  await page.getByRole("link", { name: "Writer" }).waitFor({ state: "detached" });
  await page.keyboard.press("ArrowDown");
  await page.until(() => document.activeElement.textContent === "Fact checker");
  await page.keyboard.press("/");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Fact checker" }).waitFor();
  // The prompt says about how long it is for a model.
  await page.getByLabel("Persona prompt").fill("x".repeat(402));
  await page.getByText("about 101 tokens").waitFor();
  await page.keyboard.press("Tab");
  await page.locator("h1").first().click();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("From the filter to the rows").waitFor();
  await page.getByRole("dialog").getByText("Next and previous change").waitFor();
  page.faults();
});
