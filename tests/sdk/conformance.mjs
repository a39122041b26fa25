// Runs scenarios of @modelcontextprotocol/conformance against /mcp, for tests/mcp/conformance.rs. The suite sends no
// credential, so a proxy in between adds it. The arguments are the scenarios; standard output is one line of JSON for each.

import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const { AGENTCFG_URL, AGENTCFG_API_KEY } = process.env;
const suite = fileURLToPath(new URL('node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url));

const proxy = createServer((incoming, outgoing) => {
  const headers = { ...incoming.headers, authorization: `Bearer ${AGENTCFG_API_KEY}` };
  const forwarded = request(new URL(incoming.url, AGENTCFG_URL), { method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  });
  forwarded.on('error', () => outgoing.destroy());
  incoming.pipe(forwarded);
});
await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${proxy.address().port}/mcp`;

/** The checks of a scenario, with the status that each got. */
async function run(scenario) {
  const results = await mkdtemp(join(tmpdir(), 'conformance-'));
  const args = [suite, 'server', '--url', url, '--scenario', scenario, '--output-dir', results];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'ignore'] });
  await new Promise((resolve) => child.on('exit', resolve));
  const files = (await readdir(results, { recursive: true })).filter((name) => name.endsWith('checks.json'));
  const checks = [];
  for (const file of files) checks.push(...JSON.parse(await readFile(join(results, file), 'utf8')));
  await rm(results, { recursive: true });
  return checks.map(({ id, status, errorMessage }) => ({ id, status, error: errorMessage ?? null }));
}

for (const scenario of process.argv.slice(2)) {
  console.log(JSON.stringify({ scenario, checks: await run(scenario) }));
}
proxy.close();
proxy.closeAllConnections();
