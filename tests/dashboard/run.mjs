// Runs every test of this folder.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { tap } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { runTests } from "../../scripts/node-tests.mjs";

const folder = fileURLToPath(new URL(".", import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith(".test.mjs")).map((name) => join(folder, name));
await runTests({ files, concurrency: 3, timeout: 900_000 }, () => tap);
