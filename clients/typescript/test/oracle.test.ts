// Mirrors under faults, compared with the log of the server: each state that a mirror shows is one that the label had, in order.
import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import { after, test } from "node:test";
import { AgentCfg, type ChangeEvent, type Client } from "../src/index.js";
import { Server, type Studio } from "./server.js";

const IDS = ["a", "b", "c", "d", "e", "f"];
/** More of them, and others, in a long run. */
const STEPS = Number(process.env["ORACLE_STEPS"] ?? 160);
let seed = Number(process.env["ORACLE_SEED"] ?? 11);
const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
const pick = <T>(items: readonly T[]): T => items[random(items.length)]!;

/** A proxy that breaks all of its connections when the test says so. */
async function fragile(target: string): Promise<{ url: string; cut(): void }> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const proxy = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  after(() => {
    cut();
    proxy.close();
  });
  return { url: `http://127.0.0.1:${(proxy.address() as { port: number }).port}`, cut };
}

/** What the label releases, as a text that can be compared. */
const shown = (entries: Iterable<[string, number]>) =>
  [...entries]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([id, version]) => `${id}${version}`)
    .join(" ");

/** The states of the label after each revision, by the log alone. */
async function history(client: Client): Promise<string[]> {
  const label = new Map<string, number>();
  const inactive = new Set<string>();
  const states = [""];
  let after = "start";
  for (let events: ChangeEvent[] | undefined; events === undefined || events.length > 0;) {
    const page = await client.changes.read(after, { limit: 1000 });
    events = page.events;
    after = page.cursor!;
    for (const { target, changes } of events) {
      for (const [path, { to }] of Object.entries(changes)) {
        const [, id = target.id, name = path] = /^agents\/([^/]+)\/(.*)$/.exec(path) ?? [];
        if (name === "labels/production") typeof to === "number" ? label.set(id, to) : label.delete(id);
        if (name === "is_active") to === true ? inactive.delete(id) : inactive.add(id);
      }
      states.push(shown([...label].filter(([id]) => !inactive.has(id))));
    }
  }
  return states;
}

/** One change at random. A refusal, such as that of a label that is gone already, is one too. */
async function step({ agents, labels }: Client): Promise<void> {
  const id = pick(IDS);
  const some = IDS.filter(() => random(2) === 0);
  const changes: (() => Promise<unknown>)[] = [
    () => labels.set(id, "production", { version: 1 + random(3) }),
    () => labels.promote({ from: pick(["v1", "v2", "v3"]), to: "production", agent_ids: some.length > 0 ? some : [id] }),
    () => labels.promote({ from: pick(["v1", "v2", "v3"]), to: "production" }),
    () => labels.remove(id, "production"),
    () => agents.delete(id),
    () => agents.restore(id),
    () => agents.restore(id),
    async () => labels.restore("production", (await labels.history("production", { limit: 3 })).at(-1)?.revision ?? 1),
  ];
  await pick(changes)().catch((error: { status?: number }) => {
    assert.ok([404, 409].includes(error.status ?? 0), String(error));
  });
}

async function mirrored(studio: Studio, url: string, key: string): Promise<{ cfg: AgentCfg; seen: string[] }> {
  const cfg = new AgentCfg({ url, key, workspace: studio.id, onError: (error) => assert.fail(error) });
  after(() => cfg.close());
  const seen: string[] = [];
  const note = () => seen.push(shown([...cfg.snapshot.agents].map(([id, agent]) => [id, agent.version])));
  await cfg.ready();
  note();
  cfg.onChange(note);
  return { cfg, seen };
}

/** Waits until the mirrors show this state. */
async function caughtUp(client: Client, mirrors: { cfg: AgentCfg; seen: string[] }[], state: string): Promise<void> {
  for (const { cfg, seen } of mirrors) {
    for (const end = Date.now() + 30_000; seen.at(-1) !== state;) {
      assert.ok(Date.now() < end, `the last state is ${seen.at(-1)}, not ${state}: ${JSON.stringify(cfg.health)}`);
      await client.workspaces.whoAmI();
    }
  }
}

test("mirrors show only states that the label had, in order, through kills and broken connections", async () => {
  const server = await Server.start();
  const studio = await server.studio();
  const client = await studio.client();
  for (const model of ["1", "2", "3"]) {
    await client.agents.apply({ agents: IDS.map((agent_id) => ({ agent_id, display_name: agent_id, model })) });
    await client.labels.promote({ from: "latest", to: `v${model}` });
  }
  const proxy = await fragile(server.url);
  const { key } = await studio.key();
  const mirrors = [
    await mirrored(studio, server.url, key),
    await mirrored(studio, proxy.url, key),
    await mirrored(studio, proxy.url, key),
  ];
  for (let round = 1; round <= STEPS; round += 1) {
    await step(client);
    if (round % 9 === 0) proxy.cut();
    if (round % 40 === 0) {
      await server.kill();
      await server.start();
    }
    if (round % 16 === 0) {
      const { value } = await client.labels.released("production");
      await caughtUp(client, mirrors, shown(value.map(({ agent_id, version }) => [agent_id, version])));
    }
  }
  const states = await history(client);
  await caughtUp(client, mirrors, states.at(-1)!);
  for (const { cfg, seen } of mirrors) {
    // Each state is found in the log at or after the one before it.
    let at = 0;
    for (const state of seen) {
      at = states.indexOf(state, at);
      assert.notEqual(at, -1, `${state} is no state of the label after those seen before`);
    }
    assert.ok(seen.length > STEPS / 32, `${seen.length} states were seen`);
    assert.ok([...cfg.snapshot.agents.values()].every((agent) => agent.model === String(agent.version)));
  }
});
