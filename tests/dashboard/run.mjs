// Runs every test of this folder. A browser on a busy machine can be later than a test allows: a file that fails gets a
// second try, and the last lines name what was flaky and what failed.
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { run } from "node:test";
import { tap } from "node:test/reporters";
import { basename, join } from "node:path";

const folder = fileURLToPath(new URL(".", import.meta.url));
const all = readdirSync(folder).filter((name) => name.endsWith(".test.mjs")).map((name) => join(folder, name));

/** The names of the tests that failed, by the file that they are in. */
async function failures(files) {
  const failed = new Map();
  const tests = run({ files, concurrency: 3, timeout: 900_000 });
  tests.on("test:fail", ({ file, name, todo }) => {
    if (todo !== undefined) return;
    failed.set(file, [...(failed.get(file) ?? []), name]);
  });
  for await (const line of tests.compose(tap)) process.stdout.write(line);
  return failed;
}

const print = (word, failed) => {
  for (const [file, names] of failed) console.log(`${word} ${basename(file)}: ${[...new Set(names)].join("; ")}`);
};

const first = await failures(all);
const second = first.size === 0 ? first : await failures([...first.keys()]);
for (const file of second.keys()) first.delete(file);
print("FLAKY", first);
print("FAILED", second);
process.exitCode = second.size === 0 ? 0 : 1;
