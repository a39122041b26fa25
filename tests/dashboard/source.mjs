// Modules of the dashboard's sources that need no browser.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const DASHBOARD = new URL("../../agentcfg-server/dashboard/", import.meta.url);

/** A module below `src/base` that imports types alone. */
export async function source(name) {
  const { transform } = createRequire(new URL("package.json", DASHBOARD))("esbuild");
  const typed = await readFile(new URL(`src/base/${name}`, DASHBOARD), "utf8");
  const { code } = await transform(typed, { loader: "ts" });
  return import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`);
}
