//! Reading the rows that have changed since a snapshot.
//!
//! Each row version names the transaction that wrote it (`xmin`), and each snapshot the first transaction that may not
//! have ended in it. Transactions before that one are seen by the snapshot or were rolled back. So what a later
//! snapshot has of this transaction and of those after it is all that can be new, and no write has to keep a record of
//! changes.

use agentcfg_core::store::{Changes, Key, Kind, Partition, Position, StoreError};
use deadpool_postgres::Client;

use super::Engine;
use super::error::{ConnectError, describe, is_lost};
use super::pipeline::{Param, Step};
use super::read::{column, record};
use super::table::Location;

/// A row's transaction is a number of 32 bits, of which half are in the future of each. A position this far back could
/// be taken for one in the future, long before that is so.
const MAX_DISTANCE: u64 = 1 << 30;

/// Where the statement's snapshot is: in which run of which server, and between which transactions.
///
/// A recovery from a crash hands out the numbers of lost transactions again, such as those that wrote the rate windows
/// alone. It ends with a checkpoint, which is part of the run therefore. Ordinary checkpoints begin another run too:
/// all records are read again every few minutes.
const NOW: &str = "hashtextextended(extract(epoch from pg_postmaster_start_time())::text || \
                   (SELECT checkpoint_lsn::text FROM pg_control_checkpoint()), 0), pg_current_snapshot()::text";

/// Whether the database has what the reads take. Not every engine that speaks the protocol has.
pub(super) async fn is_supported(client: &Client, schema: &str) -> Result<bool, ConnectError> {
    let probe = format!("SELECT {NOW}, age(xmin) FROM {schema}.store");
    match client.simple_query(&probe).await {
        Ok(_) => Ok(true),
        Err(error) if is_lost(&error) => Err(ConnectError::Unreachable(describe(&error))),
        Err(error) => {
            let why = describe(&error);
            tracing::info!(
                why,
                "the database cannot tell which rows have changed, so each read of statuses reads all of them"
            );
            Ok(false)
        }
    }
}

/// Where a snapshot is.
struct Snapshot {
    origin: u64,
    /// The first transaction that may not have ended.
    first: u64,
    /// The first one that had not begun.
    next: u64,
}

impl Snapshot {
    /// Reads what [`NOW`] selects; `None` when that is nothing.
    fn of(origin: i64, snapshot: &str) -> Option<Self> {
        let mut numbers = snapshot.split(':').map(str::parse);
        Some(Self {
            origin: origin.cast_unsigned(),
            first: numbers.next()?.ok()?,
            next: numbers.next()?.ok()?,
        })
    }

    /// Whether it can tell the changes since a position.
    fn reaches(&self, since: Position) -> bool {
        since.origin == self.origin
            && since.moment <= self.first
            && self.next.saturating_sub(since.moment) < MAX_DISTANCE
    }

    fn position(&self) -> Position {
        Position {
            origin: self.origin,
            moment: self.first,
            count: 0,
        }
    }
}

/// Reads the records of one kind in a partition that have changed since a position, or all of them.
pub(super) async fn changed_since(
    engine: &Engine,
    partition: &Partition,
    kind: Kind,
    position: Option<Position>,
) -> Result<Changes, StoreError> {
    if let Some(since) = position {
        let (changes, now) = read(engine, partition, kind, Some(since)).await?;
        if now.is_some_and(|now| now.reaches(since)) {
            return Ok(changes);
        }
    }
    let (changes, _) = read(engine, partition, kind, None).await?;
    Ok(changes)
}

async fn read(
    engine: &Engine,
    partition: &Partition,
    kind: Kind,
    since: Option<Position>,
) -> Result<(Changes, Option<Snapshot>), StoreError> {
    let Location { table, scope } = Location::of(partition, kind)?;
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
    let mut now = None;
    for row in &rows {
        if column::<bool>(row, 0)? {
            now = Snapshot::of(column(row, 2)?, column(row, 3)?);
            changes.position = now.as_ref().map(Snapshot::position);
        } else {
            let key = Key::new(partition.clone(), kind, column::<&str>(row, 1)?);
            let found = column::<Option<&str>>(row, 3)?.map(|_| record(row)).transpose()?;
            changes.entries.push((key, found));
        }
    }
    Ok((changes, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_of_one_run_of_one_server_and_not_too_old() {
        let now = |origin, snapshot: &str| Snapshot::of(origin, snapshot).unwrap();
        let since = now(-7, "1000:1005:1002,1003").position();
        assert_eq!(since.moment, 1000);
        let far = 1_000 + MAX_DISTANCE;
        assert!(now(-7, "1000:1000:").reaches(since));
        assert!(now(-7, &format!("1001:{}:1001", far - 1)).reaches(since));
        let too_far = now(-7, &format!("1001:{far}:1001"));
        assert!(!too_far.reaches(since), "half of all numbers are in the future");
        assert!(!now(-7, "999:1010:").reaches(since), "its transactions were lost");
        assert!(!now(8, "1000:1005:").reaches(since), "another run");
        assert!(Snapshot::of(0, "").is_none(), "an engine that cannot tell");
    }
}
