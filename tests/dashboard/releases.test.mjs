// What people do with releases: the board, the review of a move, its undo, the history and the way back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, prepare, violations } from "./harness.mjs";
import { source } from "./source.mjs";

const stage = prepare();
const { releaseRows, usualColumns, step, gapOf, isBack } = await source("base/releases", "releaseRows", "usualColumns", "step", "gapOf", "isBack");

/** A studio in which Researcher and Support triage are ahead of what is in production. */
async function studio(user) {
  const made = await stage.studio(user);
  const at = (path, query) => `${path}?workspace_id=${made.id}${query}`;
  const { server } = stage;
  for (const [agent, changes] of [["researcher", 3], ["support-triage", 2]]) {
    for (let i = 0; i < changes; i += 1) {
      await server.call(user, "PATCH", at("/api/agents/configs", `&agent_id=${agent}&message=Change%20${i}`), { persona_prompt: `Line ${i}\nThe same\n${"more\n".repeat(i)}` });
    }
    await server.call(user, "PUT", at("/api/agents/labels", `&agent_id=${agent}&label=staging`), { version: 3 });
    await server.call(user, "PUT", at("/api/agents/labels", `&agent_id=${agent}&label=production`), { version: 1 });
  }
  const labels = async (label) => Object.fromEntries((await server.call(user, "GET", at("/api/agents/labels", `&label=${label}`))).map((row) => [row.agent_id, row.version]));
  const move = (agent, label, version) => server.call(user, "PUT", at("/api/agents/labels", `&agent_id=${agent}&label=${label}`), { version });
  return { ...made, labels, move };
}

test("columns, groups and differences follow from labels and versions", () => {
  const version = (agent_id, version) => ({ agent_id, version, created_at: "2026-01-02T00:00:00Z", actor: null });
  const label = (agent_id, label, version) => ({ agent_id, label, version, updated_at: "2026-01-01T00:00:00Z", actor: null });
  const agents = ["a", "b", "c", "d"].map((agent_id) => ({ agent_id, agent_type: agent_id === "d" ? "human" : "ai" }));
  const versions = [version("a", 9), version("b", 4), version("c", 2), version("d", 1)];
  const labels = [label("a", "production", 9), label("a", "staging", 7), label("b", "production", 1), label("b", "staging", 4)];
  const columns = usualColumns(versions, labels);
  assert.deepEqual(columns, ["latest", "staging", "production"], "production comes last whatever its lag is");
  const rows = releaseRows(agents, versions, labels, columns);
  assert.deepEqual(rows.map(({ agent, group, behind }) => [agent.agent_id, group, behind]), [["a", "current", 0], ["b", "behind", 3], ["c", "never", 0]], "a human without a label is left out");
  // What is newer than what waits in the column before is no part of it.
  const waits = [label("a", "production", 7), label("a", "staging", 7), label("b", "production", 1), label("b", "staging", 3), label("c", "production", 1)];
  const behind = releaseRows(agents, versions, waits, columns).map(({ agent, group, behind }) => [agent.agent_id, group, behind]);
  assert.deepEqual(behind, [["a", "current", 0], ["b", "behind", 2], ["c", "behind", 1]], "without a label before it, latest waits");
  assert.deepEqual(step(rows[1], "staging", "production"), { from: 1, to: 4 });
  assert.deepEqual(step(rows[2], "latest", "production"), { from: null, to: 2 });
  assert.equal(step(rows[2], "staging", "production"), null, "an agent without the source has no step");
  assert.deepEqual(gapOf({ changes: { persona_prompt: {}, role: {} }, prompt_diff: "--- version 1\n+++ version 2\n@@ -1 +1,2 @@\n-x\n+y\n+-z\n same\n" }), { lines: 3, fields: ["role"] });
  assert.deepEqual(gapOf({ changes: {}, prompt_diff: null }), { lines: 0, fields: [] });
  const moves = (...pairs) => ({ moves: pairs.map(([from, to]) => ({ agent_id: "a", from, to })) });
  assert.deepEqual([isBack(moves([3, 1])), isBack(moves([1, 3])), isBack(moves([null, 1])), isBack(moves([3, null])), isBack(moves([3, 1], [1, 2]))], [true, false, false, true, false]);
});

test("agents are ticked on the board by keyboard, reviewed, promoted, and the release is undone", async () => {
  const { page, labels } = await studio("agda");
  await page.show("releases");
  await page.getByRole("row", { name: /Researcher/ }).getByText("+2 versions · 3 lines").waitFor();
  const name = page.getByRole("link", { name: "Researcher", exact: true });
  await name.focus();
  await page.keyboard.press("x");
  await page.getByText("1 agent ticked").waitFor();
  await page.keyboard.press("j");
  await page.until(() => document.activeElement.textContent === "Support triage");
  await page.keyboard.press("Shift+X");
  await page.getByText("2 agents ticked").waitFor();
  await page.keyboard.press("r");
  await page.getByRole("heading", { level: 1, name: "Promote staging to production on 2 agents" }).waitFor();
  const table = page.getByRole("table", { name: "What moves" });
  assert.match(await table.innerText(), /Researcher[\s\S]*v1[\s\S]*v3[\s\S]*Support triage[\s\S]*v1[\s\S]*v3/);
  await page.getByText("Nothing has moved yet: production moves on 2 agents.").waitFor();
  await page.getByText("1 is not looked at yet").waitFor();
  // The difference of the agent that is open, then of the next one.
  assert.match(await page.locator(".diff").innerText(), /Line 1/);
  await page.getByRole("heading", { level: 2, name: "Researcher" }).waitFor();
  await page.getByRole("heading", { level: 1 }).focus();
  await page.keyboard.press("]");
  await page.getByRole("heading", { level: 2, name: "Support triage" }).waitFor();
  await page.getByText("is not looked at yet").waitFor({ state: "detached" });
  await page.getByLabel("Message").fill("Both were tried for a week");
  assert.deepEqual(await violations(page), []);
  assert.equal((await labels("production")).researcher, 1, "a review moves nothing");
  await page.keyboard.press("Control+Enter");
  await page.getByText("production is moved on 2 agents.").waitFor();
  await page.getByRole("heading", { level: 1, name: "Releases" }).waitFor();
  await page.locator(".release.chosen").getByText("Both were tried for a week").waitFor();
  assert.deepEqual(await labels("production"), { researcher: 3, "support-triage": 3, writer: 1 });
  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await page.getByText("production is put back on 2 agents.").waitFor();
  assert.deepEqual(await labels("production"), { researcher: 1, "support-triage": 1, writer: 1 });
  page.faults();
});

test("a release is undone in the workspace that it was made in, whichever is shown by then", async () => {
  const { page, labels, id } = await studio("asgerd");
  await stage.server.workspace("asgerd", "Another one");
  await page.show(`releases/review?workspace=${id}&from=staging&to=production&agents=researcher,support-triage`);
  // What is read after the move is late: the other workspace is shown by then.
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route(/labels\/promote\?(?!.*dry_run)/, async (route) => {
    const response = await route.fetch();
    await held;
    await route.fulfill({ response });
  });
  await page.getByRole("button", { name: "Promote to production" }).click();
  await page.getByTitle(/^Workspace /).click();
  await page.getByRole("menuitem", { name: "Another one" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  release();
  await page.getByText("production is moved on 2 agents.").waitFor();
  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await page.getByText("production is put back on 2 agents.").waitFor();
  assert.deepEqual(await labels("production"), { researcher: 1, "support-triage": 1, writer: 1 });
  await page.unrouteAll({ behavior: "ignoreErrors" });
  page.faults();
});

test("what is to be checked stands above a long list of what moves, and counts what it does not name", async () => {
  const { page, id, move } = await studio("alva");
  const { server } = stage;
  for (const agent of ["researcher", "support-triage", "writer", "fact-checker"]) {
    await server.call("alva", "PATCH", `/api/agents/configs?workspace_id=${id}&agent_id=${agent}`, { model: "gpt-6-sol" });
    await move(agent, "production", 1);
  }
  await page.show("releases/review?from=latest&to=production");
  await page.getByText("Another model for 1 more agent.").waitFor();
  const models = await server.call("alva", "GET", `/api/models?workspace_id=${id}`);
  const price = (wanted) => models.find((model) => model.id === wanted);
  const [was, will] = ["claude-opus-5-5", "gpt-6-sol"].map(price).map(({ input_price: into, output_price: out }) => [into, out].map((usd) => `$${usd.toFixed(2)}`));
  await page.getByText(`claude-opus-5-5 (${was[0]} in, ${was[1]} out a million tokens) to gpt-6-sol (${will[0]} in, ${will[1]} out a million tokens)`).waitFor();
  const top = (place) => place.evaluate((one) => one.getBoundingClientRect().top);
  const table = await top(page.getByRole("table", { name: "What moves" }));
  assert.ok((await top(page.getByText("Before it moves"))) < table);
  assert.ok((await top(page.getByLabel("Message"))) < table);
  assert.deepEqual(await violations(page), []);
  page.faults();
});

test("a review moves nothing that was moved since, and shows the new state", async () => {
  const { page, labels, move } = await studio("birk");
  await page.show("releases/review?from=staging&to=production&agents=researcher,support-triage");
  await page.getByText("production moves on 2 agents.").waitFor();
  await page.getByLabel("Move Support triage").uncheck();
  await page.getByRole("heading", { level: 1, name: "Promote staging to production on 1 agent", exact: true }).waitFor();
  await move("researcher", "production", 2);
  page.expect(412, "/api/agents/labels/promote");
  await page.getByRole("button", { name: "Promote to production" }).click();
  await page.getByText("the last move was by birk. Nothing has moved. Look again.").waitFor();
  await page.getByRole("row", { name: /Researcher.*v2.*v3/ }).waitFor();
  assert.equal((await labels("production")).researcher, 2);
  assert.equal(await page.getByLabel("Move Support triage").isChecked(), false, "what was left out stays so");
  await page.getByRole("button", { name: "Promote to production" }).click();
  await page.getByText("production is moved on 1 agent.").waitFor();
  assert.deepEqual(await labels("production"), { researcher: 3, "support-triage": 1, writer: 1 });
  // The undo is refused where the label was moved again.
  await move("writer", "production", 2);
  page.expect(412, "/api/agents/labels/restore");
  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await page.getByText("production was moved since. Open the history.").waitFor();
  assert.equal((await labels("production")).researcher, 3);
  page.faults();
});

test("a review that was left is gone on with as it was, until it is done", async () => {
  const { page } = await studio("bodil");
  const address = "releases/review?from=latest&to=production&agents=researcher,support-triage,writer";
  const chosen = (count) => page.getByRole("heading", { level: 1, name: `Promote latest to production on ${count}`, exact: true }).waitFor();
  await page.show(address);
  await chosen("3 agents");
  await page.getByLabel("Move Support triage").uncheck();
  await page.getByLabel("Message").fill("Without the triage");
  await page.getByRole("button", { name: "Next agent" }).click();
  await chosen("2 agents");
  await page.getByRole("link", { name: "Open in History" }).click();
  await page.getByRole("navigation", { name: "Agent" }).waitFor();
  await page.goBack();
  await chosen("2 agents");
  assert.equal(await page.getByLabel("Move Support triage").isChecked(), false);
  assert.equal(await page.getByLabel("Message").inputValue(), "Without the triage");
  await page.getByRole("button", { name: "Promote to production" }).click();
  await page.getByText("production is moved on 2 agents.").waitFor();
  await page.goBack();
  await page.getByLabel("Message").waitFor();
  assert.equal(await page.getByLabel("Message").inputValue(), "");
  page.faults();
});

test("a review names the picked agents that it leaves out, as they were moved or deleted meanwhile", async () => {
  const { page, id, labels, move } = await studio("bror");
  await page.show("releases/review?from=staging&to=production&agents=researcher,support-triage");
  await page.getByText("production moves on 2 agents.").waitFor();
  await move("researcher", "production", 3);
  page.expect(412, "/api/agents/labels/promote");
  await page.getByRole("button", { name: "Promote to production" }).click();
  await page.getByText("Not moved, as production is there already: Researcher.").waitFor();
  await page.getByRole("heading", { level: 1, name: "Promote staging to production on 1 agent", exact: true }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "Promote to production" }).click();
  await page.getByText("production is moved on 1 agent.").waitFor();
  assert.equal((await labels("production")).researcher, 3);
  await stage.server.call("bror", "DELETE", `/api/agents/configs?workspace_id=${id}&agent_id=researcher`);
  page.expect(404, "/api/agents/labels/promote");
  await page.show("releases/review?from=staging&to=production&agents=researcher,support-triage");
  await page.getByRole("alert").getByText("Agent \"researcher\" not found.").waitFor();
  page.faults();
});

test("a label that moves back is warned about, and the history puts it back", async () => {
  const { page, labels } = await studio("cilla");
  await page.show("releases/review?of=writer&to=staging&version=1");
  await page.getByText("Writer goes back: v2 to v1.").waitFor();
  await page.getByText("1 version taken back").waitFor();
  await page.getByRole("button", { name: "Move staging" }).click();
  await page.getByText("staging is moved on 1 agent.").waitFor();
  assert.equal((await labels("staging")).writer, 1);
  await page.locator(".release.chosen").getByText("moved back").waitFor();
  const back = page.getByRole("button", { name: /^Put back to before/ });
  await back.waitFor();
  assert.deepEqual(await violations(page), []);
  await back.focus();
  await page.keyboard.press("Enter");
  await page.getByText("staging is put back on 1 agent.").waitFor();
  assert.equal((await labels("staging")).writer, 2);
  // An older move takes back what came after it.
  await page.getByRole("list", { name: "Releases" }).getByRole("button").last().click();
  await page.getByText("What was released after it is taken back too.").waitFor();
  page.faults();
});

test("what lies between two versions is read again after a failure", async () => {
  const { page } = await studio("dalla");
  let failed = false;
  await page.route(/\/api\/agents\/diff\?.*agent_id=researcher/, (route) => {
    if (failed) return route.continue();
    failed = true;
    return route.fulfill({ status: 404, json: { error: "later" } });
  });
  page.expect(404, "/api/agents/diff");
  await page.show("releases");
  await page.getByRole("row", { name: /Researcher/ }).getByText("+2 versions · 3 lines").waitFor();
  await page.getByRole("row", { name: /Researcher/ }).getByText(/\+1 version · /).waitFor();
  assert.ok(failed);
  page.faults();
});

test("at 768 pixels the board shows all of its columns", async () => {
  const { page } = await studio("disa");
  await page.setViewportSize({ width: 768, height: 900 });
  await page.show("releases");
  const row = page.getByRole("row", { name: /Support triage/ });
  await row.getByText(/· \d+ lines?/).first().waitFor();
  const cut = await page.evaluate(() => [...document.querySelectorAll(".wide-box, .board-table td:not(.c-name), .hop .gap, .board-table thead b")].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `${one.className} ${one.textContent}`));
  assert.deepEqual(cut, []);
  const counts = await page.evaluate(() => [...document.querySelectorAll(".side .count")].filter((one) => one.offsetHeight > 20).map((one) => one.textContent));
  assert.deepEqual(counts, [], "what the navigation says is in one line");
  page.faults();
});

test("columns are chosen and kept, and filters are in the address", async () => {
  const { page } = await studio("dagny");
  await page.show("releases");
  await page.getByRole("button", { name: "Columns" }).click();
  await page.getByRole("dialog").getByLabel("staging", { exact: true }).uncheck();
  await page.getByRole("dialog").getByRole("button", { name: "Show" }).click();
  await page.getByRole("columnheader", { name: /^staging/ }).waitFor({ state: "detached" });
  await page.show("releases");
  await page.getByRole("columnheader", { name: /^latest/ }).waitFor();
  assert.equal(await page.getByRole("columnheader", { name: /^staging/ }).count(), 0, "the choice is kept");
  await page.getByRole("button", { name: /^Never released/ }).click();
  assert.match(page.url(), /show=never/);
  await page.getByRole("searchbox").fill("no such agent");
  await page.getByText("No agent matches").waitFor();
  await page.getByRole("button", { name: "Clear filter" }).click();
  await page.getByRole("link", { name: "Researcher", exact: true }).waitFor();
  page.faults();
});

test("who may not release sees the board without its ways to move a label", async () => {
  const { id } = await studio("edda");
  await stage.server.call("edda", "PUT", `/api/workspaces/members?workspace_id=${id}&user_id=finn`, { role: "member" });
  const page = await open(stage.browser, stage.server);
  await page.signIn("finn");
  await page.show("releases");
  await page.getByRole("link", { name: "Researcher", exact: true }).waitFor();
  assert.equal(await page.getByRole("checkbox").count(), 0);
  await page.show("releases/history");
  await page.getByRole("complementary", { name: "The chosen release" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /^Put back/ }).count(), 0);
  await page.show("releases/review?from=staging&to=production");
  await page.getByText("Your role may not see this page").waitFor();
  page.faults();
});

test("a workspace without labels offers to label all agents", async () => {
  const id = await stage.server.workspace("greta", "Fresh");
  await stage.server.call("greta", "POST", "/api/agents/configs", { workspace_id: id, agent_id: "solo", display_name: "Solo" });
  await stage.server.call("greta", "POST", "/api/agents/configs", { workspace_id: id, agent_id: "mira", display_name: "Mira", agent_type: "human" });
  const page = await open(stage.browser, stage.server);
  await page.signIn("greta");
  await page.show("releases/history");
  await page.getByText("Nothing was released yet").waitFor();
  await page.show("releases");
  await page.getByRole("link", { name: "Label all as production" }).click();
  await page.getByRole("row", { name: /Solo/ }).getByText("New").waitFor();
  await page.getByRole("row", { name: /Mira/ }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Promote to production" }).click();
  await page.getByText("production is moved on 1 agent.").waitFor();
  page.faults();
});

test("an agent whose latest version alone is ahead is nowhere behind", async () => {
  const { page, move } = await studio("beata");
  // Support triage is at version 4, of which nothing is staged beyond 3.
  await move("support-triage", "production", 3);
  await page.show("releases");
  await page.getByRole("row", { name: /^(Tick )?all: Production behind|Production behind 2/ }).first().waitFor();
  const group = page.locator(".group-row", { hasText: "Production up to date" });
  await group.waitFor();
  const row = page.getByRole("row", { name: /Support triage/ });
  assert.equal(await row.locator(".c-last .station.current").innerText(), "v3");
  assert.equal(await page.locator("thead .c-last .hint").innerText(), "3 agents, 2 behind");
  const cut = await page.locator("thead .c-last .hint").evaluate((one) => one.scrollWidth > one.clientWidth);
  assert.ok(!cut, "the count of the last column is read in full");
  await page.getByRole("navigation").getByRole("link", { name: "Releases 2 behind" }).waitFor();
  await page.show("agents/support-triage");
  assert.equal(await page.locator(".agent-head .badge", { hasText: "production v3" }).getAttribute("class"), "badge accent");
  page.faults();
});

test("a day of the history says when its releases were, and the chosen one's title is not under its count", async () => {
  const { page, move } = await studio("clara");
  for (const agent of ["writer", "researcher", "support-triage", "fact-checker"]) await move(agent, "production", 1);
  await page.show("releases/history");
  const release = page.getByRole("button", { name: /moved/ }).first();
  assert.match(await release.locator("time").innerText(), /^\d\d:\d\d$/);
  const aside = page.getByRole("complementary", { name: "The chosen release" });
  const [title, count] = await aside.locator("header").first().evaluate((head) => [...head.children].map((one) => one.getBoundingClientRect()).map(({ left, right }) => ({ left, right })));
  assert.ok(title.right <= count.left, `${title.right} ${count.left}`);
  page.faults();
});

test("an agent is behind since the version after its own was made, not since its label was moved", async () => {
  const { page } = await studio("embla");
  const days = (count) => new Date(Date.now() - count * 86_400_000).toISOString();
  await page.route(/\/api\/agents\/labels\?/, async (route) => {
    const answer = await route.fetch();
    const labels = await answer.json();
    await route.fulfill({ response: answer, json: labels.map((label) => (label.label === "production" ? { ...label, updated_at: days(9) } : label)) });
  });
  await page.route(/\/api\/agents\/version\?.*agent_id=researcher/, async (route) => {
    const answer = await route.fetch();
    const version = await answer.json();
    await route.fulfill({ response: answer, json: { ...version, created_at: days(version.version === 2 ? 4 : 1) } });
  });
  await page.show("releases");
  await page.getByText(/, the oldest for 4 days$/).waitFor();
  page.faults();
});

test("an agent whose label goes on was behind before, and one whose label went back is behind since then", async () => {
  const { page, move } = await studio("frauke");
  const days = (count) => new Date(Date.now() - count * 86_400_000).toISOString();
  // The next version of both is old; the label of Researcher went on, that of Support triage back.
  await move("researcher", "production", 2);
  await move("support-triage", "production", 2);
  await move("support-triage", "production", 1);
  const since = { researcher: 8, "support-triage": 9 };
  await page.route(/\/api\/agents\/version\?/, async (route) => {
    const answer = await route.fetch();
    const version = await answer.json();
    await route.fulfill({ response: answer, json: { ...version, created_at: days(since[version.agent_id] ?? 0) } });
  });
  await page.show("releases");
  await page.getByText(/, the oldest for 8 days$/).waitFor();
  page.faults();
});

test("what waits between the first columns is ticked, and goes where it waits for", async () => {
  const { page, move } = await studio("gerda");
  // Support triage has a newer version than staging and production, which are equal; Writer has none to promote to production.
  await move("support-triage", "production", 3);
  await move("researcher", "production", 3);
  await move("researcher", "staging", 4);
  await move("researcher", "production", 4);
  await page.show("releases");
  assert.ok(await page.getByLabel("Tick Researcher").isDisabled(), "it is the same everywhere");
  await page.getByLabel("Tick Support triage").check();
  const bar = page.getByRole("group", { name: "Ticked agents" });
  assert.deepEqual([await bar.getByLabel("Promote from").inputValue(), await bar.getByLabel("Promote to").inputValue()], ["latest", "staging"]);
  await page.getByLabel("Tick Writer").check();
  await bar.getByText("2 agents ticked").waitFor();
  assert.deepEqual([await bar.getByLabel("Promote from").inputValue(), await bar.getByLabel("Promote to").inputValue()], ["staging", "production"]);
  await bar.getByRole("button", { name: "Review 1 change" }).waitFor();
  await bar.getByLabel("Promote from").selectOption("latest");
  await bar.getByRole("button", { name: "Review 2 changes" }).click();
  await page.getByRole("heading", { level: 1, name: "Promote latest to production on 2 agents" }).waitFor();
  // With the newest version as the last column nothing but the way to a label is left.
  await page.show("releases?columns=staging,latest");
  await page.getByLabel("Tick Support triage").check();
  await bar.getByRole("button", { name: "Review 1 change" }).waitFor();
  assert.deepEqual([await bar.getByLabel("Promote from").inputValue(), await bar.getByLabel("Promote to").inputValue()], ["latest", "staging"]);
  page.faults();
});
