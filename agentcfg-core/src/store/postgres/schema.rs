//! The tables' definitions, and the one place that changes them.

use deadpool_postgres::Client;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::error::ConnectError;
use super::options::describe;
use super::sql::Sql;
use super::table::{self, Scope, Table};

/// The format of the tables that this release makes, and the newest that it uses.
pub(super) const FORMAT: u32 = 1;

/// What holds back every other process that would make the tables at the same time. Only the making
/// of tables needs it.
const LOCK: i64 = 0x6167_656e_7463_6667;

/// What the store says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    /// Every version of a fresh record is greater: whatever was deleted before the records came here had at
    /// most that.
    pub(super) base: u64,
}

/// Makes or brings up to date the tables, unless they are of this format already.
pub(super) async fn prepare(client: &mut Client, sql: &Sql) -> Result<Facts, ConnectError> {
    verify_server(client).await?;
    if let Some(facts) = facts(client, sql).await? {
        return Ok(facts);
    }
    make(client, sql).await?;
    facts(client, sql)
        .await?
        .ok_or_else(|| ConnectError::Unusable("the tables are gone right after they were made".into()))
}

/// What is in the table `store`, if there is one.
async fn facts(client: &Client, sql: &Sql) -> Result<Option<Facts>, ConnectError> {
    let query = format!("SELECT format::text, base_version::text FROM {}.store", sql.schema);
    let messages = match client.simple_query(&query).await {
        Ok(messages) => messages,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let row = messages.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let number = |column| row.and_then(|row| row.try_get(column).ok().flatten()?.parse::<u64>().ok());
    let (Some(format), Some(base)) = (number(0), number(1)) else {
        return Err(ConnectError::Unusable(format!(
            "the table {}.store is there, but says nothing",
            sql.schema
        )));
    };
    match u32::try_from(format) {
        Ok(FORMAT) => Ok(Some(Facts { base })),
        Ok(0) => Err(ConnectError::Unusable("format 0 does not exist".into())),
        found => Err(ConnectError::TooNew {
            found: found.unwrap_or(u32::MAX),
            supported: FORMAT,
        }),
    }
}

fn is_absent(error: &Error) -> bool {
    [Some(&SqlState::UNDEFINED_TABLE), Some(&SqlState::INVALID_SCHEMA_NAME)].contains(&error.code())
}

/// Makes the tables in one transaction, while all other makers wait.
async fn make(client: &mut Client, sql: &Sql) -> Result<(), ConnectError> {
    let schema = &sql.schema;
    let transaction = client.transaction().await.map_err(|error| failed(&error))?;
    let run = async {
        transaction
            .batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})"))
            .await?;
        let there = transaction
            .query_typed(
                "SELECT 1 FROM information_schema.schemata WHERE schema_name = $1",
                &[(schema, tokio_postgres::types::Type::TEXT)],
            )
            .await?;
        if there.is_empty() {
            // Who may not make schemas can be given one that is there already.
            transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
        }
        for table in table::all() {
            transaction.batch_execute(&definition(sql, table)).await?;
        }
        transaction
            .batch_execute(&format!(
                "CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.rate_windows (\
                 subject text COLLATE \"C\" PRIMARY KEY, ends_at bigint NOT NULL, used bigint NOT NULL\
                 ) WITH (fillfactor = 50);\
                 CREATE TABLE IF NOT EXISTS {schema}.store (\
                 one int PRIMARY KEY CHECK (one = 1), format int NOT NULL, base_version bigint NOT NULL);\
                 INSERT INTO {schema}.store (one, format, base_version) VALUES (1, {FORMAT}, 0) \
                 ON CONFLICT DO NOTHING"
            ))
            .await
    };
    run.await.map_err(|error| failed(&error))?;
    transaction.commit().await.map_err(|error| failed(&error))
}

fn definition(sql: &Sql, table: &Table) -> String {
    let (s, i) = (table.scope_column, table.item_column);
    let scope = match table.scope {
        Scope::Workspace => "uuid",
        Scope::Name => "text COLLATE \"C\"",
    };
    let value = if table.numeric {
        "numeric(20) CHECK (value BETWEEN 0 AND 18446744073709551615)"
    } else {
        "json"
    };
    let room = if table.hot { " WITH (fillfactor = 70)" } else { "" };
    format!(
        "CREATE TABLE IF NOT EXISTS {name} (\
         {s} {scope} NOT NULL, {i} text COLLATE \"C\" NOT NULL, version bigint NOT NULL, value {value}, \
         PRIMARY KEY ({s}, {i})){room}",
        name = sql.name(table)
    )
}

/// Refuses a database that would change what is stored, and warns of one that may lose it.
async fn verify_server(client: &Client) -> Result<(), ConnectError> {
    let setting = async |name: &str| {
        let messages = client
            .simple_query(&format!("SHOW {name}"))
            .await
            .map_err(|error| failed(&error))?;
        Ok::<_, ConnectError>(messages.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten().map(str::to_owned),
            _ => None,
        }))
    };
    let encoding = setting("server_encoding").await?.unwrap_or_default();
    if !encoding.eq_ignore_ascii_case("utf8") {
        return Err(ConnectError::Unusable(format!(
            "its encoding is {encoding}; make one with ENCODING 'UTF8'"
        )));
    }
    if setting("synchronous_commit").await?.as_deref() == Some("off") {
        tracing::warn!("synchronous_commit is off in the database: a crash of it may lose changes that were answered");
    }
    Ok(())
}

fn failed(error: &Error) -> ConnectError {
    match error.as_db_error() {
        Some(_) => ConnectError::Unusable(describe(error)),
        None => ConnectError::Unreachable(describe(error)),
    }
}
