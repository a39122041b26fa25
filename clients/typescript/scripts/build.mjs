// Compiles src into dist, and puts the licences beside it. Existing files of dist are removed.
import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${folder}/dist`, { recursive: true, force: true });
execFileSync(process.execPath, [`${folder}/node_modules/typescript/bin/tsc`, "-p", `${folder}/tsconfig.build.json`], {
  stdio: "inherit",
});
for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(`${folder}/../../${licence}`, `${folder}/${licence}`);
