// Makes the picture of the README, docs/dashboard.png: the board of releases.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { fill, launch, open, Server } from "./harness.mjs";

const LIMIT = 150_000;
const FILE = new URL("../../docs/dashboard.png", import.meta.url);

/** The versions that each agent gets, and those that its labels are on. */
const RELEASES = {
  writer: { versions: 6, staging: 7, production: 4 },
  researcher: { versions: 4, staging: 5, production: 5 },
  "support-triage": { versions: 3, staging: 4, production: 2 },
  "fact-checker": { versions: 2, staging: 3, production: 3 },
  "code-reviewer": { versions: 3, staging: 3, production: 3 },
  "translator-de": { versions: 1, staging: 2, production: 2 },
  "release-notes": { versions: 2, staging: 2 },
  "data-analyst": { versions: 1 },
};

/** Changes the persona of agents some times, and sets their labels. */
async function release(server, user, id) {
  for (const [agent, { versions, ...labels }] of Object.entries(RELEASES)) {
    const of = `workspace_id=${id}&agent_id=${agent}`;
    for (let i = 1; i <= versions; i += 1) {
      const lines = Array.from({ length: 4 + 2 * i }, (_, line) => `Rule ${line + 1}: ${line < 4 ? "as before" : `since change ${i}`}.`);
      await server.call(user, "PATCH", `/api/agents/configs?${of}&message=${encodeURIComponent(`Change ${i}`)}`, { persona_prompt: lines.join("\n") });
    }
    for (const [label, version] of Object.entries(labels)) await server.call(user, "PUT", `/api/agents/labels?${of}&label=${label}`, { version });
  }
}

const browser = await launch();
const server = await Server.start();
try {
  const { id } = await fill(server, "ada");
  await release(server, "ada", id);
  const page = await open(browser, server, { viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
  await page.signIn("ada");
  await page.show("releases");
  await page.getByRole("link", { name: "Writer", exact: true }).waitFor();
  // The lines between two versions are read after the board is drawn.
  await page.until(() => [...document.querySelectorAll(".gap")].every(({ textContent }) => textContent.includes("·")));
  const picture = await page.screenshot();
  assert.ok(picture.length <= LIMIT, `the picture has ${picture.length} bytes, more than ${LIMIT}`);
  await writeFile(FILE, picture);
  console.log(`docs/dashboard.png: ${picture.length} bytes`);
} finally {
  await browser.close();
  await server.stop();
}
