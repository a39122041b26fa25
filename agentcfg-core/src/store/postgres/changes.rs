//! Reading the rows that have changed since a snapshot.
//!
//! Each row version names the transaction that wrote it (`xmin`), and each snapshot the first transaction that may not have
//! ended in it. Transactions before that one are seen by the snapshot or were rolled back. So what a later snapshot has of
//! this transaction and of those after it is all that can be new, and no write has to keep a record of changes.

use deadpool_postgres::Client;

use super::super::{Changes, Key, Kind, Partition, Position, StoreError};
use super::Engine;
use super::read::{column, record};
use super::run::{Param, Step};
use super::table::Place;

/// A row's transaction is a number of 32 bits, of which half are in the future of each. A position this far back could be
/// taken for one in the future, long before that is so.
const MAX_DISTANCE: u64 = 1 << 30;

/// Where the statement's snapshot is: since when the server runs, and the first transaction that may not have ended.
const NOW: &str = "(extract(epoch from pg_postmaster_start_time()) * 1000000)::int8, \
                   pg_snapshot_xmin(pg_current_snapshot())::text";

/// Whether the database has what the reads take. Not every engine that speaks the protocol has.
pub(super) async fn is_supported(client: &Client) -> bool {
    let asked = client.simple_query(&format!("SELECT {NOW}, age('3'::text::xid)")).await;
    if let Err(error) = &asked {
        tracing::info!(%error, "the database cannot tell which rows have changed, so each read of statuses reads all of them");
    }
    asked.is_ok()
}

/// Reads the records of one kind in a partition that have changed since a position, or all of them.
pub(super) async fn changed_since(
    engine: &Engine,
    partition: &Partition,
    kind: Kind,
    position: Option<Position>,
) -> Result<Changes, StoreError> {
    if let Some(since) = position {
        let changes = read(engine, partition, kind, Some(since)).await?;
        if changes.position.is_some_and(|now| reaches(since, now)) {
            return Ok(changes);
        }
    }
    read(engine, partition, kind, None).await
}

/// Whether the changes between two positions can be told.
fn reaches(since: Position, now: Position) -> bool {
    let distance = now.moment.checked_sub(since.moment);
    since.origin == now.origin && distance.is_some_and(|distance| distance < MAX_DISTANCE)
}

async fn read(
    engine: &Engine,
    partition: &Partition,
    kind: Kind,
    since: Option<Position>,
) -> Result<Changes, StoreError> {
    let Place { table, scope } = Place::of(partition, kind)?;
    let (name, s, i) = (engine.sql.name(table), table.scope_column, table.item_column);
    let mut params = vec![scope];
    let those = match since {
        // Rows without a value are deleted records.
        Some(since) => {
            let transaction = since.moment % (1 << 32);
            params.push(Param::Text(transaction.to_string()));
            "age(r.xmin) <= (SELECT age($2::text::xid))"
        }
        None => "r.value IS NOT NULL",
    };
    let now = if engine.tells_changes { NOW } else { "0::int8, ''" };
    let sql = format!(
        "SELECT true AS is_now, '' AS item, {now} UNION ALL \
         SELECT false, r.{i}, r.version, r.value::text FROM {name} AS r WHERE r.{s} = $1 AND {those}"
    );
    let rows = engine.connections.rows(&Step { sql: &sql, params }).await?;
    let mut changes = Changes {
        is_all: since.is_none(),
        entries: Vec::with_capacity(rows.len()),
        position: None,
    };
    for row in &rows {
        if column::<bool>(row, 0)? {
            let (origin, moment): (i64, &str) = (column(row, 2)?, column(row, 3)?);
            changes.position = moment.parse().ok().map(|moment| Position {
                origin: origin.unsigned_abs(),
                moment,
                count: 0,
            });
        } else {
            let key = Key::new(partition.clone(), kind, column::<&str>(row, 1)?);
            let found = column::<Option<&str>>(row, 3)?.map(|_| record(row)).transpose()?;
            changes.entries.push((key, found));
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_of_one_run_of_one_server_and_not_too_old() {
        let since = Position {
            origin: 7,
            moment: 1_000,
            count: 0,
        };
        let at = |origin, moment| Position {
            origin,
            moment,
            count: 0,
        };
        assert!(reaches(since, since));
        assert!(reaches(since, at(7, 1_000 + MAX_DISTANCE - 1)));
        assert!(
            !reaches(since, at(7, 1_000 + MAX_DISTANCE)),
            "half of all numbers are in the future"
        );
        assert!(!reaches(since, at(7, 999)), "its transactions were lost");
        assert!(!reaches(since, at(8, 1_000)), "another server");
    }
}
