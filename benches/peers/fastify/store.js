// The database: one connection with prepared statements.
import Database from "better-sqlite3";

export const fail = (status, message) => Object.assign(new Error(message), { statusCode: status });

export function open(file) {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  // Each commit is on disk before its response; the usual `NORMAL` of a WAL does not guarantee that.
  db.pragma("synchronous = FULL");
  db.exec(`
    CREATE TABLE IF NOT EXISTS workspaces (id TEXT PRIMARY KEY, agent_limit INTEGER NOT NULL,
      active INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE IF NOT EXISTS api_keys (hash BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE, workspace_id TEXT NOT NULL,
      rate_limit INTEGER NOT NULL, expires_at TEXT, revoked_at TEXT) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS agents (id TEXT PRIMARY KEY, workspace_id TEXT NOT NULL REFERENCES workspaces (id),
      agent_id TEXT NOT NULL, display_name TEXT NOT NULL, role TEXT, description TEXT, agent_type TEXT NOT NULL, model TEXT,
      color TEXT, persona_prompt TEXT, capabilities TEXT NOT NULL, parameters TEXT NOT NULL,
      is_active INTEGER NOT NULL DEFAULT 1, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE (workspace_id, agent_id));
    CREATE INDEX IF NOT EXISTS active_agents ON agents (workspace_id, created_at, id) WHERE is_active = 1;
    CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY, workspace_id TEXT NOT NULL, actor TEXT NOT NULL,
      action TEXT NOT NULL, target TEXT NOT NULL, changes TEXT NOT NULL, created_at TEXT NOT NULL);
  `);
  const listed = db.prepare("SELECT * FROM agents WHERE workspace_id = ? AND is_active = 1 ORDER BY created_at, id");
  const takeSlot = db.prepare("UPDATE workspaces SET active = active + 1 WHERE id = ? AND active < agent_limit");
  const insert = db.prepare(`
    INSERT INTO agents (id, workspace_id, agent_id, display_name, role, description, agent_type, model, color, persona_prompt,
      capabilities, parameters, created_at, updated_at)
    VALUES (@id, @workspace_id, @agent_id, @display_name, @role, @description, @agent_type, @model, @color, @persona_prompt,
      @capabilities, @parameters, @created_at, @updated_at)
    ON CONFLICT (workspace_id, agent_id) DO NOTHING`);
  const note = db.prepare(
    "INSERT INTO audit (workspace_id, actor, action, target, changes, created_at) VALUES (?, ?, 'agent.created', ?, ?, ?)",
  );

  // An exception rolls the transaction back.
  const create = db.transaction((actor, row) => {
    if (takeSlot.run(row.workspace_id).changes === 0) throw fail(422, "the plan's limit is reached");
    if (insert.run(row).changes === 0) throw fail(409, "agent_id is taken");
    note.run(row.workspace_id, actor, row.agent_id, JSON.stringify(row), row.created_at);
  });

  return {
    addWorkspace: db.prepare("INSERT INTO workspaces (id, agent_limit) VALUES (?, ?)"),
    addKey: db.prepare("INSERT INTO api_keys (hash, id, workspace_id, rate_limit) VALUES (?, ?, ?, ?)"),
    keyByHash: db.prepare("SELECT * FROM api_keys WHERE hash = ?"),
    list: (workspace) =>
      listed.all(workspace).map((row) => ({
        ...row,
        capabilities: JSON.parse(row.capabilities),
        parameters: JSON.parse(row.parameters),
        is_active: row.is_active === 1,
      })),
    create(actor, agent) {
      const now = new Date().toISOString();
      const absent = { role: null, description: null, model: null, color: null, persona_prompt: null };
      const made = { ...absent, ...agent, created_at: now, updated_at: now };
      const row = { ...made, capabilities: JSON.stringify(made.capabilities), parameters: JSON.stringify(made.parameters) };
      create.immediate(actor, row);
      return { ...made, is_active: true };
    },
  };
}
