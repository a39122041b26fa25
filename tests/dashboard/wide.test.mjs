// What wide windows show: tables use the width, their filters and heads stay in sight, and all screens have one left edge.
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare, violations } from "./harness.mjs";

const stage = prepare();

test("at 1920 the table of agents uses the width, and its filters and head stay while it scrolls", async () => {
  const { page, id } = await stage.studio("wilma");
  const [agent] = await stage.server.call("wilma", "GET", `/api/agents/configs?workspace_id=${id}&agent_id=writer`);
  const agents = Array.from({ length: 150 }, (_, i) => ({ ...agent, id: `${agent.id}${i}`, agent_id: `many-${i}`, display_name: `Many ${i}` }));
  await page.route(/api\/agents\/configs\?workspace_id=[^&]*$/, (route) => route.fulfill({ json: agents }));
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const [width, least] of [[1440, 1100], [1920, 1500]]) {
      await page.setViewportSize({ width, height: 900 });
      await page.show("agents");
      await page.getByRole("link", { name: "Many 120", exact: true }).scrollIntoViewIfNeeded();
      const places = await page.evaluate(() => ["table", ".tools", "thead th"].map((name) => document.querySelector(name).getBoundingClientRect()).map(({ top, width, bottom }) => ({ top, width, bottom })));
      assert.ok(places[0].width > least, `${width}: the table is ${places[0].width} wide`);
      assert.equal(places[1].top, 0, "the filters stick");
      assert.ok(Math.abs(places[2].top - places[1].bottom) <= 1, `the head is below them: ${places[2].top}, ${places[1].bottom}`);
      assert.equal(await page.evaluate(() => document.elementFromPoint(700, 66).closest("thead") !== null), true, "no row is over the head");
      assert.deepEqual(await violations(page), []);
    }
    for (const width of [390, 768]) {
      await page.setViewportSize({ width, height: 844 });
      await page.show("agents");
      await page.getByLabel("Tick Many 1", { exact: true }).check();
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `${width} scrolls sideways`);
      assert.deepEqual(await violations(page), []);
    }
  }
  page.faults();
  await page.context().close();
});

test("all screens begin at the left edge of their title, and a name has its id below it", async () => {
  const { page } = await stage.studio("ylva");
  const left = (name) => page.evaluate((name) => document.querySelector(name).getBoundingClientRect().left, name);
  for (const width of [1440, 1920]) {
    await page.setViewportSize({ width, height: 900 });
    for (const [path, part] of [["agents", ".tools"], ["agents/writer", ".tabs"], ["agents/writer/try", ".playground"], ["status", ".board"], ["status?view=list", ".table-box"], ["connect", ".lead"], ["webhooks", ".lead"], ["workspace", ".group"], ["new-agent", ".editor"], ["usage", "main > *"]]) {
      await page.show(path);
      await page.locator(part).first().waitFor({ state: "attached" });
      assert.equal(await left(part), await left(".bar .crumbs"), `${path} at ${width}`);
    }
  }
  assert.ok((await page.evaluate(() => document.querySelector(".page").getBoundingClientRect().width)) > 1600);
  for (const path of ["agents", "status?view=list"]) {
    await page.show(path);
    await page.locator(".names").first().waitFor();
    const [name, id] = await page.evaluate(() => [...document.querySelector(".names").children].map((one) => one.getBoundingClientRect()).map(({ left, top, bottom }) => ({ left, top, bottom })));
    assert.equal(name.left, id.left, path);
    assert.ok(id.top >= name.bottom - 1, path);
    // Two lines fit into a row.
    assert.ok((await page.evaluate(() => document.querySelector("tbody tr").getBoundingClientRect().height)) <= 45, path);
  }
  page.faults();
});

test("the tabs of an agent have one width, which ends where the bar above does", async () => {
  const { page } = await stage.studio("ziska");
  await page.setViewportSize({ width: 1440, height: 900 });
  const right = (name) => page.evaluate((name) => document.querySelector(name).getBoundingClientRect().right, name);
  for (const tab of ["", "/definition", "/history", "/labels", "/try", "/usage"]) {
    await page.show(`agents/writer${tab}`);
    await page.locator(".tabs").waitFor();
    assert.equal(await right(".agent-head"), await right(".bar .actions"), tab);
  }
  page.faults();
});

test("in a narrow window a review names its agents whole, and the open tab of an agent is in sight", async () => {
  const { page, id } = await stage.studio("nora");
  const name = "An agent with a name that takes several lines of a narrow window";
  const at = (query) => `/api/agents/configs?workspace_id=${id}${query}`;
  await stage.server.call("nora", "PATCH", at("&agent_id=fact-checker"), { display_name: name });
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 844 });
    await page.show("releases/review?from=latest&to=production&agents=fact-checker,researcher");
    const button = page.getByRole("table", { name: "What moves" }).getByRole("button", { name });
    await button.waitFor();
    assert.ok(await button.evaluate((element) => element.scrollWidth <= element.clientWidth + 1 && element.scrollHeight <= element.clientHeight + 1), `${width}`);
    const lines = await button.evaluate((element) => element.offsetHeight / parseFloat(getComputedStyle(element).lineHeight));
    assert.ok(width > 390 || lines <= 4.1, `${lines} lines`);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await page.show("api-keys");
  const end = page.getByRole("row", { name: /ci-deploy/ }).locator("td", { hasText: "in 3 days" });
  assert.ok(await end.evaluate((cell) => cell.scrollWidth <= cell.clientWidth), "nothing is cut behind the badge");
  for (const tab of ["usage", "history"]) {
    await page.show(`agents/writer/${tab}`);
    await page.locator(".tabs [aria-current]").waitFor();
    await page.until(() => {
      const { left, right } = document.querySelector(".tabs [aria-current]").getBoundingClientRect();
      return left >= 0 && right <= innerWidth;
    });
  }
  page.faults();
});

test("in a narrow window a comparison names author and date of both versions whole", async () => {
  const { page } = await stage.studio("ylfa-of-a-long-name");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.show("agents/writer/history?from=1&to=2");
  const heads = page.locator(".field-table thead th");
  await heads.nth(2).getByText("ylfa-of-a-long-name").waitFor();
  const cut = await heads.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent));
  assert.deepEqual(cut, []);
  page.faults();
});
