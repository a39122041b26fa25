//! The end of a removal: the tombstones of a deleted workspace.

use uuid::Uuid;

use super::super::{Key, Kind, PartitionKind, StoreError};
use super::pool::Connections;
use super::read::column;
use super::run::{Param, Step};
use super::sql::Sql;
use super::table::{Place, TABLES, Table};
use crate::model::WorkspaceId;

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
    let place = Place::of_key(marker)?;
    let text = format!(
        "DELETE FROM {} WHERE {} = $1 AND {} = $2",
        sql.name(place.table),
        place.table.scope_column,
        place.table.item_column
    );
    let step = Step {
        sql: &text,
        params: vec![place.scope, Param::Text(marker.item().to_owned())],
    };
    connections.rows(&step).await.map(drop)
}

/// The condition that finds the rows of a global table which belong to the workspace `$1`; `None` where there are none.
fn outside(sql: &Sql, table: &Table) -> Option<String> {
    let (s, i) = (table.scope_column, table.item_column);
    let index = |kind: Kind| {
        let table = TABLES.iter().find(|table| table.kind == kind)?;
        let (name, item) = (sql.name(table), table.item_column);
        Some(format!("{s} IN (SELECT {item} FROM {name} WHERE workspace_id = $1)"))
    };
    match table.kind {
        Kind::Membership => index(Kind::Member).map(|of| format!("{i} = $1::uuid::text AND {of}")),
        Kind::ApiKey | Kind::KeyUse => index(Kind::WorkspaceApiKey),
        Kind::SealedKey => Some(format!("left({i}, 37) = $1::uuid::text || '/'")),
        _ => None,
    }
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
