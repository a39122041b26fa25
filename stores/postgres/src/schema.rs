//! The definitions of the tables, and their creation.

use agentcfg_core::store::{BUILD, FORMAT, OtherFormat, PartitionKind};
use deadpool_postgres::Client;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::error::{ConnectError, describe};
use super::sql::Sql;
use super::table::{TABLES, Table};

/// The advisory lock that serialises the creation of the tables. Nothing else uses it.
const LOCK: i64 = 0x6167_656e_7463_6667;

/// The metadata of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SchemaFacts {
    /// Every version that a new key gets is greater. It is at least the version of each record that was
    /// deleted before an import, so that an imported store reuses no version.
    pub(super) base: u64,
}

/// Creates the tables, unless they are there.
pub(super) async fn prepare(client: &mut Client, sql: &Sql) -> Result<SchemaFacts, ConnectError> {
    verify_server(client).await?;
    if let Some(facts) = facts(client, sql).await? {
        return Ok(facts);
    }
    make(client, sql).await?;
    facts(client, sql)
        .await?
        .ok_or_else(|| ConnectError::Unusable("the tables disappeared right after they were created".into()))
}

/// Reads the table `store`, if it exists.
async fn facts(client: &Client, sql: &Sql) -> Result<Option<SchemaFacts>, ConnectError> {
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
            "the table {}.store has no row with a format",
            sql.schema
        )));
    };
    if format == u64::from(FORMAT) {
        return Ok(Some(SchemaFacts { base }));
    }
    // Another format may have no such column.
    let query = format!("SELECT made_by FROM {}.store", sql.schema);
    let rows = client.query_typed(&query, &[]).await.unwrap_or_default();
    Err(ConnectError::OtherFormat(OtherFormat {
        found: u32::try_from(format).unwrap_or(u32::MAX),
        build: rows.first().and_then(|row| row.try_get(0).ok()),
    }))
}

fn is_absent(error: &Error) -> bool {
    [Some(&SqlState::UNDEFINED_TABLE), Some(&SqlState::INVALID_SCHEMA_NAME)].contains(&error.code())
}

/// Creates the tables in one transaction, under the advisory lock.
async fn make(client: &mut Client, sql: &Sql) -> Result<(), ConnectError> {
    let schema = &sql.schema;
    let transaction = client.transaction().await.map_err(|error| failed(&error))?;
    let run = async {
        // Without the notices that tables exist, when another server has just created them.
        transaction
            .batch_execute(&format!(
                "SET LOCAL client_min_messages = warning; SELECT pg_advisory_xact_lock({LOCK})"
            ))
            .await?;
        let there = transaction
            .query_typed(
                "SELECT 1 FROM information_schema.schemata WHERE schema_name = $1",
                &[(schema, Type::TEXT)],
            )
            .await?;
        if there.is_empty() {
            // `CREATE SCHEMA IF NOT EXISTS` would need the right to create schemas even for an existing one.
            transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
        }
        for table in TABLES {
            transaction.batch_execute(&definition(sql, table)).await?;
        }
        transaction
            .batch_execute(&format!(
                "CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.rate_windows (\
                 subject text COLLATE \"C\" PRIMARY KEY, ends_at bigint NOT NULL, used bigint NOT NULL\
                 ) WITH (fillfactor = 50);\
                 CREATE TABLE IF NOT EXISTS {schema}.store (\
                 one int PRIMARY KEY CHECK (one = 1), format int NOT NULL, made_by text NOT NULL, \
                 base_version bigint NOT NULL);\
                 INSERT INTO {schema}.store (one, format, made_by, base_version) VALUES (1, {FORMAT}, '{BUILD}', 0) \
                 ON CONFLICT DO NOTHING"
            ))
            .await
    };
    run.await.map_err(|error| failed(&error))?;
    transaction.commit().await.map_err(|error| failed(&error))
}

fn definition(sql: &Sql, table: &Table) -> String {
    let (s, i) = (table.scope_column, table.item_column);
    let collation = match table.kind.partition_kind() {
        PartitionKind::Workspace => "",
        PartitionKind::Global => " COLLATE \"C\"",
    };
    let value = if table.numeric {
        "numeric(20) CHECK (value BETWEEN 0 AND 18446744073709551615)"
    } else {
        "json"
    };
    let name = sql.name(table);
    let (room, storage) = match table.hot {
        true => (
            " WITH (fillfactor = 70)",
            format!("ALTER TABLE {name} ALTER COLUMN value SET STORAGE MAIN"),
        ),
        false => ("", String::new()),
    };
    format!(
        "CREATE TABLE IF NOT EXISTS {name} (\
         {s} {scope}{collation} NOT NULL, {i} text COLLATE \"C\" NOT NULL, version bigint NOT NULL, value {value}, \
         PRIMARY KEY ({s}, {i})){room}; {storage}",
        scope = table.scope_type(),
    )
}

/// Refuses a database whose encoding would change stored text, and warns if a crash can lose commits.
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
            "its encoding is {encoding}; create one with ENCODING 'UTF8'"
        )));
    }
    if setting("synchronous_commit").await?.as_deref() == Some("off") {
        tracing::warn!("synchronous_commit is off in the database: if it crashes, confirmed commits may be lost");
    }
    Ok(())
}

fn failed(error: &Error) -> ConnectError {
    match error.as_db_error() {
        Some(_) => ConnectError::Unusable(describe(error)),
        None => ConnectError::Unreachable(describe(error)),
    }
}
