// Mirrors of the TypeScript client in one process, for the benchmark `mirror`: as mirrors.py.
import { AgentCfg } from "../../clients/typescript/dist/index.js";

const [url, workspace, ofEach, ...keys] = process.argv.slice(2);
const mirrors = keys.flatMap((key) => Array.from({ length: Number(ofEach) }, () => new AgentCfg({ url, key, workspace })));
for (const mirror of mirrors) await mirror.ready();
while (!mirrors.every((mirror) => mirror.health.state === "live")) await new Promise((resolve) => setTimeout(resolve, 50));
for (const mirror of mirrors) {
  mirror.onChange((change) => {
    const micros = Math.trunc((performance.timeOrigin + performance.now()) * 1000);
    console.log(`${change.snapshot.agents.get("seed-0")?.version} ${micros}`);
  });
}
console.log("ready");
for await (const _ of process.stdin);
for (const mirror of mirrors) await mirror.close();
process.exit(0);
