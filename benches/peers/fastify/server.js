// The same authenticated list and durable create, as written with Fastify and SQLite in one process in the usual
// way: schemas for requests and responses, prepared statements, and one transaction for a create. Takes the
// database's file as its argument. Prints `workspace=`, `key=` and `listening on http://…`.
import { createHash, randomBytes, randomUUID } from "node:crypto";
import Fastify from "fastify";
import { agent, failure, newAgent } from "./schemas.js";
import { fail, open } from "./store.js";

const store = open(process.argv[2]);
const sha = (text) => createHash("sha256").update(text).digest();

const workspace = randomUUID();
const key = `svc_live_${randomBytes(32).toString("hex")}`;
store.addWorkspace.run(workspace, 1_000_000_000);
store.addKey.run(sha(key), randomUUID(), workspace, 1_000_000_000);

const windows = new Map();

function count(record, reply) {
  const now = Date.now();
  let window = windows.get(record.id);
  if (!window || window.endsAt <= now) windows.set(record.id, (window = { endsAt: now + 60_000, used: 0 }));
  window.used += 1;
  reply.headers({
    "X-RateLimit-Limit": record.rate_limit,
    "X-RateLimit-Remaining": Math.max(0, record.rate_limit - window.used),
    "X-RateLimit-Reset": Math.ceil(window.endsAt / 1000),
  });
  if (window.used > record.rate_limit) throw fail(429, "rate limit exceeded");
}

const app = Fastify({ genReqId: () => randomUUID() });
app.setErrorHandler((error, request, reply) => reply.code(error.statusCode ?? 500).send({ error: error.message }));
app.decorateRequest("key", null);
app.addHook("onRequest", async (request, reply) => {
  reply.header("X-Request-Id", request.id);
  const plaintext = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1];
  const record = plaintext && store.keyByHash.get(sha(plaintext));
  if (!record || record.revoked_at || (record.expires_at && record.expires_at <= new Date().toISOString())) {
    throw fail(401, "invalid credentials");
  }
  request.key = record;
  count(record, reply);
});

const isOwn = (request, id) => {
  if (id !== request.key.workspace_id) throw fail(403, "another workspace");
};

app.get(
  "/api/agents/configs",
  { schema: { response: { 200: { type: "array", items: agent }, "4xx": failure } } },
  async (request) => {
    isOwn(request, request.query.workspace_id);
    return store.list(request.key.workspace_id);
  },
);

app.post(
  "/api/agents/configs",
  { schema: { body: newAgent, response: { 201: agent, "4xx": failure } } },
  async (request, reply) => {
    isOwn(request, request.body.workspace_id);
    reply.code(201);
    return store.create(request.key.id, { id: randomUUID(), ...request.body });
  },
);

const address = await app.listen({ host: "127.0.0.1", port: 0 });
console.log(`workspace=${workspace}\nkey=${key}\nlistening on ${address}`);
