// Measures the dashboard in a browser and prints a table: medians of some rounds, with minimum and maximum.
import { fill, launch, open, Server } from "./harness.mjs";

const ROUNDS = Number(process.env.ROUNDS ?? 5);
const THOUSAND = 1_000;
const TEN_THOUSAND = 10_000;

const browser = await launch();
const rows = [];

/** Runs a measurement some times and keeps the row of its figures, in milliseconds. */
async function row(what, goal, measure) {
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await measure(round));
  times.sort((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)];
  const [least, most] = [times[0], times.at(-1)].map((time) => Math.round(time));
  rows.push(`| ${what} | ${Math.round(median)} (${least}–${most}) | ${goal ?? "none"} | ${goal === null ? "" : median < goal ? "yes" : "no"} |`);
}

/** Creates agents in requests of a thousand. */
async function seed(server, user, id, count) {
  for (let first = 0; first < count; first += 1_000) {
    const agents = Array.from({ length: Math.min(1_000, count - first) }, (_, i) => ({ agent_id: `agent-${first + i}`, display_name: `Agent ${first + i}`, role: (first + i) % 7 ? null : "Seventh" }));
    await server.call(user, "POST", `/api/agents/apply?workspace_id=${id}`, { agents });
  }
}

/** The time from an action in the page until what it leads to is painted. Both are functions that run in the page. */
const inPage = (page, act, isThere, given) =>
  page.evaluate(
    async ([act, isThere, given]) => {
      const [run, done] = [globalThis.measured[act], globalThis.measured[isThere]];
      const start = performance.now();
      run(given);
      while (!done(given)) await new Promise((resolve) => requestAnimationFrame(resolve));
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      return performance.now() - start;
    },
    [act, isThere, given],
  );

/** What the measurements run in the page. The policy of the page refuses functions that are sent as text. */
const actions = () => {
  globalThis.measured = {
    press: ({ link }) => document.querySelector(`a[href*="/ui/${link}"]`).click(),
    arrived: ({ heading }) => document.querySelector("h1")?.textContent === heading && !document.querySelector("main [aria-busy=true]"),
    type: ({ text }) => {
      const box = document.querySelector("input[type=search]");
      box.value = text;
      box.dispatchEvent(new Event("input", { bubbles: true }));
    },
    filtered: ({ shown }) => document.body.textContent.includes(shown),
  };
};

try {
  const server = await Server.start({ AGENTCFG_DEFAULT_PLAN: "enterprise" });
  await fill(server, "ada");
  {
    const page = await open(browser, server);
    await page.signIn("ada");
    const session = await page.context().newCDPSession(page);
    await session.send("Network.enable");
    const shown = async () => {
      await page.goto(`${server.url}/ui/agents`);
      await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
      return page.evaluate(() => performance.now());
    };
    const painted = async () => {
      await page.goto(`${server.url}/ui/agents`);
      await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
      return page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
    };
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    await row("first paint, nothing cached", 200, painted);
    await row("agents are shown, nothing cached", null, shown);
    await session.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 90_000 });
    await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    await row("the same with 1.6 Mbit/s, 150 ms and a processor 4 times slower", null, shown);
    await page.context().close();
  }
  for (const [user, count] of [["bea", THOUSAND], ["cleo", TEN_THOUSAND]]) {
    const id = await server.workspace(user, "Large");
    await seed(server, user, id, count);
    const page = await open(browser, server);
    await page.context().addInitScript(actions);
    await page.signIn(user);
    await page.show("agents");
    const text = count.toLocaleString("en");
    await page.getByText(`${text} agents`).first().waitFor();
    const to = (link, heading) => inPage(page, "press", "arrived", { link, heading });
    // Once before, so that what both screens read is there.
    for (const [link, heading] of [["status", "Status"], ["agents", "Agents"]]) await to(link, heading);
    await row(`${text} agents: from Agents to Status`, count === THOUSAND ? 50 : null, async () => {
      const time = await to("status", "Status");
      await to("agents", "Agents");
      return time;
    });
    await row(`${text} agents: from Status to Agents`, count === THOUSAND ? 50 : null, async () => {
      await to("status", "Status");
      return to("agents", "Agents");
    });
    const sevenths = Math.ceil(count / 7).toLocaleString("en");
    await row(`${text} agents: a filter`, null, async () => {
      const time = await inPage(page, "type", "filtered", { text: "seventh", shown: `${text} agents, ${sevenths} shown` });
      await page.getByRole("searchbox").fill("");
      await page.getByText(`${text} agents, ${sevenths} shown`).waitFor({ state: "detached" });
      return time;
    });
    await row(`${text} agents: a report is seen on the page`, 1_000, async (round) => {
      const title = `Task ${count} ${round}`;
      await page.show("status");
      await page.getByText("Live", { exact: true }).waitFor();
      const seen = page.getByText(title).first().waitFor();
      const start = performance.now();
      await server.call(user, "PUT", `/api/agents/status?workspace_id=${id}&agent_id=agent-1`, { status: "working", current_task_id: "t", current_task_title: title });
      await seen;
      return performance.now() - start;
    });
    await row(`${text} agents: the page is loaded and shows them`, null, async () => {
      const start = performance.now();
      await page.show("agents");
      await page.getByText(`${text} agents`).first().waitFor();
      return performance.now() - start;
    });
    page.faults();
    await page.context().close();
  }
  await server.stop();
} finally {
  await browser.close();
}
console.log("| in the browser | ms | less than | reached |");
console.log("|---|---|---|---|");
for (const line of rows) console.log(line);
