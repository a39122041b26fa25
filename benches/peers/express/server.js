// The same authenticated list and durable create, as written with Express and PostgreSQL in the usual way: every
// request reads the key's record, the rate window is shared through the database, and a create has a plan limit, a
// unique identifier and an audit entry in one transaction. Prints `workspace=` and `key=` for each of WORKSPACES, and `listening on
// http://…`.
import { createHash, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import express from "express";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 16 });
const sha = (text) => createHash("sha256").update(text).digest();

await pool.query(`
  CREATE TABLE IF NOT EXISTS workspaces (id uuid PRIMARY KEY, agent_limit int NOT NULL, active int NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS api_keys (id text PRIMARY KEY, workspace_id uuid NOT NULL, hash bytea NOT NULL,
    rate_limit int NOT NULL, expires_at timestamptz, revoked_at timestamptz);
  CREATE UNLOGGED TABLE IF NOT EXISTS windows (key_id text PRIMARY KEY, ends_at timestamptz NOT NULL, used int NOT NULL);
  CREATE TABLE IF NOT EXISTS agents (workspace_id uuid NOT NULL, agent_id text NOT NULL, id uuid NOT NULL, display_name text NOT NULL,
    role text, description text, agent_type text NOT NULL DEFAULT 'ai', model text, color text, persona_prompt text,
    capabilities jsonb NOT NULL, parameters jsonb NOT NULL, is_active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (workspace_id, agent_id));
  CREATE TABLE IF NOT EXISTS audit (id bigserial PRIMARY KEY, workspace_id uuid NOT NULL, actor text NOT NULL, action text NOT NULL,
    target text NOT NULL, changes jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
`);

const workspaces = [];
for (let number = 0; number < Number(process.env.WORKSPACES ?? 1); number++) {
  const workspace = randomUUID();
  const keyId = randomBytes(10).toString("hex");
  const key = `svc_live_${keyId}_${randomBytes(32).toString("hex")}`;
  await pool.query("INSERT INTO workspaces (id, agent_limit) VALUES ($1, 1000000000)", [workspace]);
  await pool.query("INSERT INTO api_keys (id, workspace_id, hash, rate_limit) VALUES ($1, $2, $3, 1000000000)", [keyId, workspace, sha(key)]);
  workspaces.push({ workspace, key });
}

const app = express();
app.disable("x-powered-by");
app.use(express.json());
app.use(async (request, response, next) => {
  const plaintext = (request.headers.authorization ?? "").replace(/^Bearer /, "");
  const id = plaintext.split("_")[2] ?? "";
  const found = await pool.query({ name: "key", text: "SELECT * FROM api_keys WHERE id = $1", values: [id] });
  const record = found.rows[0];
  if (!record || record.revoked_at || (record.expires_at && record.expires_at < new Date()) || !timingSafeEqual(record.hash, sha(plaintext))) {
    return response.status(401).json({ error: "invalid credentials" });
  }
  const window = await pool.query({
    name: "window",
    text: `INSERT INTO windows VALUES ($1, now() + interval '60 seconds', 1) ON CONFLICT (key_id) DO UPDATE SET
      used = CASE WHEN windows.ends_at <= now() THEN 1 ELSE windows.used + 1 END,
      ends_at = CASE WHEN windows.ends_at <= now() THEN now() + interval '60 seconds' ELSE windows.ends_at END RETURNING *`,
    values: [id],
  });
  const { used, ends_at } = window.rows[0];
  response.set({
    "X-RateLimit-Limit": record.rate_limit,
    "X-RateLimit-Remaining": Math.max(0, record.rate_limit - used),
    "X-RateLimit-Reset": Math.ceil(ends_at / 1000),
    "X-Request-Id": randomUUID(),
  });
  if (used > record.rate_limit) return response.status(429).json({ error: "rate limit exceeded" });
  request.key = record;
  next();
});

app.get("/api/agents/configs", async (request, response) => {
  if (request.query.workspace_id !== request.key.workspace_id) return response.status(403).json({ error: "another workspace" });
  const agents = await pool.query({
    name: "list",
    text: "SELECT * FROM agents WHERE workspace_id = $1 AND is_active ORDER BY created_at, id",
    values: [request.key.workspace_id],
  });
  response.json(agents.rows);
});

app.post("/api/agents/configs", async (request, response) => {
  const { workspace_id, agent_id, ...body } = request.body;
  if (workspace_id !== request.key.workspace_id) return response.status(403).json({ error: "another workspace" });
  if (!/^[a-z0-9_-]{1,50}$/.test(agent_id ?? "") || !body.display_name) return response.status(400).json({ error: "invalid" });
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const id = randomUUID();
    const slot = await client.query({ name: "slot", text: "UPDATE workspaces SET active = active + 1 WHERE id = $1 AND active < agent_limit", values: [workspace_id] });
    if (slot.rowCount === 0) throw Object.assign(new Error("plan limit"), { status: 422 });
    const made = await client.query({
      name: "create",
      text: `INSERT INTO agents (workspace_id, agent_id, id, display_name, role, description, agent_type, model, color, persona_prompt,
        capabilities, parameters) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING *`,
      values: [workspace_id, agent_id, id, body.display_name, body.role, body.description, body.agent_type ?? "ai", body.model,
        body.color, body.persona_prompt, JSON.stringify(body.capabilities ?? []), body.parameters ?? {}],
    });
    await client.query({ name: "audit", text: "INSERT INTO audit (workspace_id, actor, action, target, changes) VALUES ($1, $2, 'agent.created', $3, $4)", values: [workspace_id, request.key.id, agent_id, body] });
    await client.query("COMMIT");
    response.status(201).json(made.rows[0]);
  } catch (error) {
    await client.query("ROLLBACK");
    response.status(error.status ?? (error.code === "23505" ? 409 : 500)).json({ error: error.message });
  } finally {
    client.release();
  }
});

const server = app.listen(0, "127.0.0.1", () => {
  for (const { workspace, key } of workspaces) console.log(`workspace=${workspace}\nkey=${key}`);
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
