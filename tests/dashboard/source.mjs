// What the dashboard's sources define and needs no browser.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const DASHBOARD = new URL("../../agentcfg-server/dashboard/", import.meta.url);

/** Leaves out the modules that nothing asked for needs: some of them look for a page when they are loaded. */
const needed = {
  name: "needed",
  setup({ onResolve, resolve }) {
    onResolve({ filter: /.*/ }, async ({ path, pluginData, ...place }) => {
      if (pluginData === needed) return undefined;
      const { kind, importer, resolveDir } = place;
      return { ...(await resolve(path, { kind, importer, resolveDir, pluginData: needed })), sideEffects: false };
    });
  },
};

/** Exports of a module below `src`, whose values need no browser. */
export async function source(path, ...names) {
  const { build } = createRequire(new URL("package.json", DASHBOARD))("esbuild");
  const { outputFiles } = await build({
    stdin: { contents: `export { ${names.join()} } from "./${path}";`, resolveDir: fileURLToPath(new URL("src", DASHBOARD)) },
    bundle: true,
    format: "esm",
    write: false,
    plugins: [needed],
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
