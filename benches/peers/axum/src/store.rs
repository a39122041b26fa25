//! The database: one connection for writes, because SQLite has a single writer, and a pool for reads.

use chrono::{SecondsFormat, Utc};
use r2d2::Pool;
use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::agent::Agent;
use crate::auth::KeyRecord;
use crate::failure::Failure;

const READERS: u32 = 4;
const SCHEMA: &str = include_str!("schema.sql");
/// Each commit is on disk before its response; the usual `NORMAL` of a WAL does not guarantee that.
const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";
const NO_LIMIT: u32 = 1_000_000_000;

pub fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}

type Connections = Pool<SqliteConnectionManager>;

pub struct Store {
    writer: Connections,
    readers: Connections,
}

impl Store {
    pub fn open(file: &str) -> Result<Self, Failure> {
        let pool = |size| {
            let manager =
                SqliteConnectionManager::file(file).with_init(|connection| connection.execute_batch(SETTINGS));
            Pool::builder().max_size(size).test_on_check_out(false).build(manager)
        };
        let writer = pool(1)?;
        writer.get()?.execute_batch(SCHEMA)?;
        Ok(Self {
            writer,
            readers: pool(READERS)?,
        })
    }

    pub fn seed(&self, workspace: &str, key_id: &str, key_hash: [u8; 32]) -> Result<(), Failure> {
        let connection = self.writer.get()?;
        connection.execute(
            "INSERT INTO workspaces (id, agent_limit) VALUES (?, ?)",
            params![workspace, NO_LIMIT],
        )?;
        connection.execute(
            "INSERT INTO api_keys (hash, id, workspace_id, rate_limit) VALUES (?, ?, ?, ?)",
            params![key_hash, key_id, workspace, NO_LIMIT],
        )?;
        Ok(())
    }

    pub async fn key_by_hash(&self, hash: [u8; 32]) -> Result<Option<KeyRecord>, Failure> {
        on(&self.readers, move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, workspace_id, rate_limit, expires_at, revoked_at FROM api_keys WHERE hash = ?",
            )?;
            let found = statement.query_row([hash], |row| {
                Ok(KeyRecord {
                    id: row.get(0)?,
                    workspace_id: row.get(1)?,
                    rate_limit: row.get(2)?,
                    expires_at: row.get(3)?,
                    revoked_at: row.get(4)?,
                })
            });
            Ok(found.optional()?)
        })
        .await
    }

    pub async fn list(&self, workspace: String) -> Result<Vec<Agent>, Failure> {
        on(&self.readers, move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT * FROM agents WHERE workspace_id = ? AND is_active = 1 ORDER BY created_at, id",
            )?;
            let agents = statement.query_map([workspace], Agent::read)?;
            Ok(agents.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Takes a slot of the plan, stores the agent and writes the audit entry, in one transaction.
    pub async fn create(&self, actor: String, agent: Agent) -> Result<Agent, Failure> {
        on(&self.writer, move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let slot = transaction
                .prepare_cached("UPDATE workspaces SET active = active + 1 WHERE id = ? AND active < agent_limit")?
                .execute([&agent.workspace_id])?;
            if slot == 0 {
                return Err(Failure::Full);
            }
            agent.insert(&transaction)?;
            transaction
                .prepare_cached(
                    "INSERT INTO audit (workspace_id, actor, action, target, changes, created_at)
                     VALUES (?, ?, 'agent.created', ?, ?, ?)",
                )?
                .execute(params![
                    agent.workspace_id,
                    actor,
                    agent.agent_id,
                    serde_json::to_string(&agent)?,
                    agent.created_at
                ])?;
            transaction.commit()?;
            Ok(agent)
        })
        .await
    }
}

/// Runs work with a pooled connection on a blocking thread.
async fn on<T: Send + 'static>(
    pool: &Connections,
    work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let pool = pool.clone();
    tokio::task::spawn_blocking(move || work(&mut *pool.get()?)).await?
}
