//! The end of a removal: the tombstones of a deleted workspace.

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{Key, KeyPart, PartitionKind, StoreError};
use uuid::Uuid;

use super::pipeline::{Param, Step};
use super::pool::Connections;
use super::read::column;
use super::sql::Sql;
use super::table::{Location, TABLES, Table};

/// The greatest number of rows that one statement deletes.
const ROWS: i64 = 2000;

/// Deletes the tombstones that name the workspace, and then the row of `marker`.
///
/// A row outside the workspace's partition is found by the row of the partition that it belongs to, so the rows of the
/// partition are deleted after those.
pub(super) async fn end(
    connections: &Connections,
    sql: &Sql,
    workspace: WorkspaceId,
    marker: &Key,
) -> Result<(), StoreError> {
    let id = *workspace.as_uuid();
    for table in TABLES {
        if let Some(rows) = outside(sql, table) {
            delete(connections, sql, table, &rows, id).await?;
        }
    }
    let inside = |table: &&Table| table.kind.partition_kind() == PartitionKind::Workspace;
    for table in TABLES.iter().filter(inside) {
        delete(connections, sql, table, &format!("{} = $1", table.scope_column), id).await?;
    }
    let location = Location::of_key(marker)?;
    let text = format!(
        "DELETE FROM {} WHERE {} = $1 AND {} = $2",
        sql.name(location.table),
        location.table.scope_column,
        location.table.item_column
    );
    let step = Step {
        sql: &text,
        params: vec![location.scope, Param::Text(marker.item().to_owned())],
    };
    connections.rows(&step).await.map(drop)
}

/// The condition that finds the rows of a global table which belong to the workspace `$1`; `None` where there are none.
fn outside(sql: &Sql, table: &Table) -> Option<String> {
    let link = table.kind.link()?;
    let index = TABLES.iter().find(|index| index.kind == link.to)?;
    let (name, item) = (sql.name(index), index.item_column);
    let parts = [(table.scope_column, link.partition), (table.item_column, link.item)];
    let conditions = parts.map(|(column, part)| match part {
        KeyPart::Fixed(text) => format!("{column} = '{text}'"),
        KeyPart::Item => format!("{column} IN (SELECT {item} FROM {name} WHERE workspace_id = $1)"),
        KeyPart::Workspace => format!("{column} = $1::uuid::text"),
        KeyPart::WorkspaceAndItem => format!("left({column}, 37) = $1::uuid::text || '/'"),
    });
    Some(conditions.join(" AND "))
}

/// Deletes tombstones, a bounded number at a time.
async fn delete(connections: &Connections, sql: &Sql, table: &Table, rows: &str, id: Uuid) -> Result<(), StoreError> {
    let (name, s, i) = (sql.name(table), table.scope_column, table.item_column);
    let text = format!(
        "WITH gone AS (DELETE FROM {name} WHERE ({s}, {i}) IN (\
         SELECT {s}, {i} FROM {name} WHERE {rows} AND value IS NULL LIMIT {ROWS}\
         ) AND value IS NULL RETURNING 1) SELECT count(*) FROM gone"
    );
    loop {
        let step = Step {
            sql: &text,
            params: vec![Param::Uuid(id)],
        };
        let deleted = connections.rows(&step).await?;
        let deleted = deleted.first().map_or(Ok(0), |row| column::<i64>(row, 0))?;
        if deleted < ROWS {
            return Ok(());
        }
    }
}
