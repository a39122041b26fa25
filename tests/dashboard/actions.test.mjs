// The actions that the dashboard has words for, and the events that it offers for a new webhook, are those of the API.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server } from "./harness.mjs";
import { source } from "./source.mjs";

let server;
let schemas;

before(async () => {
  server = await Server.start();
  schemas = (await (await fetch(`${server.url}/openapi.json`)).json()).components.schemas;
});
after(() => server?.stop());

test("the dashboard knows each action of the audit log and no other", async () => {
  const { ACTIONS } = await source("base/audit-words.ts", "ACTIONS");
  assert.deepEqual(ACTIONS.toSorted(), schemas.Action.enum.toSorted());
});

test("a new webhook gets the events that the API gives one", async () => {
  const { DEFAULT_TYPES } = await source("screens/webhooks.tsx", "DEFAULT_TYPES");
  const described = schemas.NewWebhook.properties.types.description;
  const types = /Left out: `(\[.*?\])`/.exec(described);
  assert.ok(types, `the document names no default: ${described}`);
  assert.deepEqual(DEFAULT_TYPES, JSON.parse(types[1]));
});
