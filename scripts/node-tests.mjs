// Runs files of tests of Node.js. On a busy machine an event can come later than a test allows: a file that fails gets a
// second try, and the last lines name what was flaky and what failed.
import { basename } from "node:path";
import { run } from "node:test";

/** The names of the tests that failed, by the file that they are in. */
async function failures(options, reporter) {
  const failed = new Map();
  const tests = run(options);
  tests.on("test:fail", ({ file, name, todo }) => {
    if (todo !== undefined) return;
    failed.set(file, [...(failed.get(file) ?? []), name]);
  });
  for await (const line of tests.compose(reporter())) process.stdout.write(line);
  return failed;
}

const print = (word, failed) => {
  for (const [file, names] of failed) console.log(`${word} ${basename(file)}: ${[...new Set(names)].join("; ")}`);
};

/** Runs the files of these options of `run` from `node:test` with reporters that are made by a function, and sets the exit code of the process. */
export async function runTests(options, reporter) {
  const first = await failures(options, reporter);
  const second = first.size === 0 ? first : await failures({ ...options, files: [...first.keys()] }, reporter);
  for (const file of second.keys()) first.delete(file);
  print("FLAKY", first);
  print("FAILED", second);
  process.exitCode = second.size === 0 ? 0 : 1;
}
