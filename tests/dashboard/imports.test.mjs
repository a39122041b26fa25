// The sources of the dashboard import each other in no circle, also not through what is loaded later.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const DASHBOARD = new URL("../../agentcfg-server/dashboard/", import.meta.url);

/** The circles in a graph, as paths that end where they begin. */
function circles(graph) {
  const found = [];
  const done = new Set();
  const visit = (name, path) => {
    if (path.includes(name)) found.push([...path.slice(path.indexOf(name)), name].join(" > "));
    if (path.includes(name) || done.has(name)) return;
    for (const next of graph[name] ?? []) visit(next, [...path, name]);
    done.add(name);
  };
  for (const name of Object.keys(graph)) visit(name, []);
  return found;
}

test("no module imports itself through others", async () => {
  assert.deepEqual(circles({ a: ["b"], b: ["c"], c: ["a"] }), ["a > b > c > a"]);
  const { build } = createRequire(new URL("package.json", DASHBOARD))("esbuild");
  const { metafile } = await build({
    absWorkingDir: fileURLToPath(DASHBOARD),
    entryPoints: ["src/main.tsx"],
    bundle: true,
    splitting: true,
    format: "esm",
    outdir: "dist",
    write: false,
    metafile: true,
    logLevel: "error",
  });
  const graph = Object.fromEntries(Object.entries(metafile.inputs).map(([name, { imports }]) => [name, imports.map(({ path }) => path)]));
  assert.ok(graph["src/parts/later.tsx"].includes("src/later.tsx"), "what is loaded later is among them");
  assert.deepEqual(circles(graph), []);
});
