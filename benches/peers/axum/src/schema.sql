CREATE TABLE IF NOT EXISTS workspaces (id TEXT PRIMARY KEY, agent_limit INTEGER NOT NULL, active INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS api_keys (hash BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE, workspace_id TEXT NOT NULL,
    rate_limit INTEGER NOT NULL, expires_at TEXT, revoked_at TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS agents (id TEXT PRIMARY KEY, workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    agent_id TEXT NOT NULL, display_name TEXT NOT NULL, role TEXT, description TEXT, agent_type TEXT NOT NULL, model TEXT,
    color TEXT, persona_prompt TEXT, capabilities TEXT NOT NULL, parameters TEXT NOT NULL,
    is_active INTEGER NOT NULL DEFAULT 1, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    UNIQUE (workspace_id, agent_id));
CREATE INDEX IF NOT EXISTS active_agents ON agents (workspace_id, created_at, id) WHERE is_active = 1;
CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY, workspace_id TEXT NOT NULL, actor TEXT NOT NULL,
    action TEXT NOT NULL, target TEXT NOT NULL, changes TEXT NOT NULL, created_at TEXT NOT NULL);
