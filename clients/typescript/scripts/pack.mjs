// Makes the package's tarball in the folder that the argument names, and prints its path. The same sources give the same bytes: the
// files are staged with the same modes, and npm sets their times.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import "./build.mjs";

const folder = fileURLToPath(new URL("..", import.meta.url));
const out = resolve(process.argv[2] ?? "");
if (process.argv.length !== 3) throw new Error("the argument is the folder to write into");
const staged = mkdtempSync(join(tmpdir(), "agentcfg-pack-"));
try {
  const { scripts: _, devDependencies: __, ...manifest } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  writeFileSync(`${staged}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
  for (const file of ["README.md", "../../LICENSE-APACHE", "../../LICENSE-MIT"])
    cpSync(join(folder, file), join(staged, file.split("/").at(-1)));
  cpSync(`${folder}/dist`, `${staged}/dist`, { recursive: true });
  for (const name of readdirSync(staged, { recursive: true })) {
    const path = join(staged, name);
    chmodSync(path, statSync(path).isDirectory() ? 0o755 : 0o644);
  }
  mkdirSync(out, { recursive: true });
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", out], { cwd: staged, encoding: "utf8" });
  console.log(join(out, packed.trim()));
} finally {
  rmSync(staged, { recursive: true, force: true });
}
