// Compiles src into dist; what was there is removed.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${folder}/dist`, { recursive: true, force: true });
execFileSync(process.execPath, [`${folder}/node_modules/typescript/bin/tsc`, "-p", `${folder}/tsconfig.build.json`], {
  stdio: "inherit",
});
