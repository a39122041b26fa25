// The package as its users have it: packed, installed in a clean folder, and the examples of its documentation run there.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { scripted, Server, type Studio, temporaryFolder } from "./server.js";

const run = promisify(execFile);
const source = fileURLToPath(new URL("../..", import.meta.url));
const folder = await temporaryFolder();

before(async () => {
  const pack = async (name: string) =>
    (await run("npm", ["run", "--silent", "pack", join(folder, name)], { cwd: source })).stdout.trim();
  const [first, again] = [await pack("first"), await pack("again")];
  assert.ok((await readFile(first)).equals(await readFile(again)), "the tarball has other bytes when it is made again");
  await writeFile(join(folder, "package.json"), '{"private":true,"type":"module"}');
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", first], { cwd: folder });
  await mkdir(join(folder, "node_modules/@types"), { recursive: true });
  await symlink(join(source, "node_modules/@types/node"), join(folder, "node_modules/@types/node"));
  await symlink(join(source, "node_modules/undici-types"), join(folder, "node_modules/undici-types"));
});

/** Compiles files of the folder with all checks, those of the package's declarations too. */
async function compile(files: string[], options: string[] = []): Promise<void> {
  const words = [
    "--strict",
    "--noEmit",
    "--exactOptionalPropertyTypes",
    "--target",
    "ES2022",
    "--types",
    "node",
    ...options,
    ...files,
  ];
  const failed = await run(process.execPath, [join(source, "node_modules/typescript/bin/tsc"), ...words], { cwd: folder }).then(
    () => undefined,
    (error: { stdout: string }) => error.stdout,
  );
  assert.equal(failed, undefined);
}

test("the package holds what it promises and nothing else", async () => {
  const { stdout } = await run("tar", ["-tzf", join(folder, "first/agentcfg-0.1.0.tgz")]);
  const files = stdout.trim().split("\n");
  assert.ok(
    files.includes("package/LICENSE-MIT") && files.includes("package/README.md") && files.includes("package/dist/testing.d.ts"),
  );
  assert.deepEqual(
    files.filter((file) => !/^package\/(dist\/[\w/-]+\.(js|d\.ts)|README\.md|LICENSE-\w+|package\.json)$/.test(file)),
    [],
  );
});

test("a program compiles without the optional packages, in Node.js and for browsers", async () => {
  const program = `
    import { AgentCfg, type AgentRelease, type Agent } from "agentcfg";
    import { FakeAgentCfg } from "agentcfg/testing";
    const cfg = new AgentCfg({ url: "http://127.0.0.1:1" });
    export const model = (agent: AgentRelease | Agent): string | null => agent.model ?? null;
    // @ts-expect-error: an agent is read-only.
    export const set = () => { cfg.agent("a").version = 1; };
    // @ts-expect-error: an update has no such field.
    export const wrong = () => cfg.api.agents.update("a", { modle: "x" });
    export const fake = new FakeAgentCfg({ a: { model: "m" } });
    await cfg.close();
  `;
  await writeFile(join(folder, "program.ts"), program);
  for (const resolution of [
    ["--module", "NodeNext"],
    ["--module", "ESNext", "--moduleResolution", "bundler", "--lib", "ES2023,DOM"],
  ]) {
    await compile(["program.ts"], resolution);
  }
  const missing = `
    import { AgentCfg } from "agentcfg";
    const cfg = new AgentCfg({ url: "http://127.0.0.1:1", key: "k", workspace: "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05" });
    console.log(await cfg.openai("a").catch((error) => error.message));
    await cfg.close();
  `;
  await writeFile(join(folder, "missing.mjs"), missing);
  const { stdout } = await run(process.execPath, ["missing.mjs"], { cwd: folder });
  assert.equal(stdout.trim(), "the package openai is not installed: npm install openai");
});

test("the examples of the documentation do what they say", async () => {
  const page = await readFile(join(source, "../../docs/typescript.md"), "utf8");
  const examples = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1]!);
  assert.ok(examples.length >= 7, `${examples.length} examples`);
  const loader = examples[0]!.trimEnd().split("\n");
  assert.ok(loader.length <= 8, `the loader has ${loader.length} lines`);
  for (const name of ["openai", "@anthropic-ai", "standardwebhooks", "@stablelib", "fast-sha256", "json-schema-to-ts"]) {
    await symlink(join(source, "node_modules", name), join(folder, "node_modules", name));
  }
  const files = examples.map((_, index) => `example-${index}.ts`);
  await Promise.all(examples.map((text, index) => writeFile(join(folder, files[index]!), text)));
  // The declarations of the SDKs are not checked with all options.
  const options = ["--module", "NodeNext", "--skipLibCheck"];
  await compile(files, options);
  await run(
    process.execPath,
    [join(source, "node_modules/typescript/bin/tsc"), "--target", "ES2022", "--types", "node", ...options, ...files],
    {
      cwd: folder,
    },
  );

  const studio = await documentedStudio();
  const { key } = await studio.key();
  const env = { PATH: process.env["PATH"], AGENTCFG_URL: studio.server.url, AGENTCFG_API_KEY: key };
  for (const [index, text] of examples.entries()) {
    const expected = [...text.matchAll(/\/\/ → (.*)$/gm)].map((match) => match[1]!);
    assert.ok(expected.length > 0, `example ${index} tells what it prints`);
    const script = `example-${index}.js`;
    const printed = text.includes("export async function POST")
      ? await receive(join(folder, script))
      : (await run(process.execPath, [script], { cwd: folder, env, timeout: 60_000 })).stdout;
    assert.deepEqual(printed.trim().split("\n"), expected, text);
  }
});

/** The workspace and the provider that the examples need. */
async function documentedStudio(): Promise<Studio> {
  const provider = await scripted((request, response) => {
    const { model } = JSON.parse(request.text) as { model: string };
    const answer = request.url!.includes("messages")
      ? { id: "m", type: "message", role: "assistant", model, content: [{ type: "text", text: "Hello" }], usage: {} }
      : {
          id: "c",
          object: "chat.completion",
          model,
          choices: [{ index: 0, message: { role: "assistant", content: `Hello from ${model}` } }],
        };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  const server = await Server.start({
    AGENTCFG_OPENAI_BASE_URL: provider.url,
    AGENTCFG_ANTHROPIC_BASE_URL: provider.url,
    AGENTCFG_OPENAI_API_KEY: "sk-of-the-server",
    AGENTCFG_ANTHROPIC_API_KEY: "sk-of-the-server",
  });
  const studio = await server.studio();
  const definition = { variables: { customer: { required: true } } };
  await studio.owner.agents.create({
    agent_id: "support",
    display_name: "Support",
    model: "gpt-5.5",
    persona_prompt: "You help {{customer}}.",
    definition,
  });
  await studio.owner.agents.create({ agent_id: "writer", display_name: "Writer", model: "claude-sonnet-5-5" });
  await studio.owner.labels.promote({ from: "latest", to: "production" });
  return studio;
}

/** Calls the handler of an example with a webhook that is signed, and with one that is not. Returns what it prints. */
async function receive(path: string): Promise<string> {
  const secret = Buffer.from("0123456789abcdef0123456789abcdef");
  process.env["WEBHOOK_SECRET"] = `whsec_${secret.toString("base64")}`;
  const body = JSON.stringify({ type: "label.set", data: { labels: [{ agent_id: "a", label: "production", from: 1, to: 2 }] } });
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", secret).update(`msg_1.${timestamp}.${body}`).digest("base64");
  const headers = { "webhook-id": "msg_1", "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
  const { POST } = (await import(pathToFileURL(path).href)) as { POST(request: Request): Promise<Response> };
  const lines: string[] = [];
  const { log } = console;
  console.log = (...words: unknown[]) => lines.push(words.join(" "));
  try {
    const post = async (text: string) =>
      (await POST(new Request("http://host/", { method: "POST", headers, body: text }))).status;
    assert.deepEqual([await post(body), await post(`${body} `)], [204, 400]);
  } finally {
    console.log = log;
  }
  return lines.join("\n");
}
