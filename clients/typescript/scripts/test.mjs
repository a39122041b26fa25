// Compiles the sources with the tests into dist-test, and runs the tests that are named, or all. AGENTCFG_TEST_BINARY names the
// server, target/debug/agentcfg-server unless it is given.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { runTests } from "../../../scripts/node-tests.mjs";

const folder = fileURLToPath(new URL("..", import.meta.url));
const server =
  process.env.AGENTCFG_TEST_BINARY ?? fileURLToPath(new URL("../../../target/debug/agentcfg-server", import.meta.url));
if (!existsSync(server)) {
  console.error(`error: there is no server at ${server}; build it, or name another one in AGENTCFG_TEST_BINARY`);
  process.exit(1);
}
rmSync(`${folder}/dist-test`, { recursive: true, force: true });
execFileSync(process.execPath, [`${folder}/node_modules/typescript/bin/tsc`, "-p", `${folder}/tsconfig.json`], {
  stdio: "inherit",
});
const named = process.argv.slice(2);
const files = readdirSync(`${folder}/dist-test/test`).filter(
  (file) => file.endsWith(".test.js") && (named.length === 0 || named.some((name) => file.startsWith(name))),
);
if (files.length === 0) {
  console.error(`error: no test file begins with ${named.join(" or ")}`);
  process.exit(1);
}
process.env.AGENTCFG_TEST_BINARY = server;
const paths = files.map((file) => `${folder}/dist-test/test/${file}`);
await runTests({ files: paths, concurrency: true, timeout: 120_000 }, () => new spec());
