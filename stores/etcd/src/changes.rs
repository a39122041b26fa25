//! Reading the records that have changed since a revision.
//!
//! A member filters a range by the revision of each record's last change, and tells how many records the range has in
//! all. A record that was deleted is in no answer, but the count tells that there is one: then all records are read
//! again.

use agentcfg_core::store::plan::scan_range;
use agentcfg_core::store::{Changes, Kind, Partition, Position, Scan, StoreError};

use super::error::CallFailure;
use super::protocol::{Headed, RangeRequest, RequestOp, TxnRequest};
use super::read::{Stored, read_scan};
use super::{Cluster, bounds};

/// A member looks through all records of the range in one request. With more than this it could take longer than a
/// request may.
const MAX_RECORDS: u64 = 200_000;

/// With more changed records than this, all are read in pages.
const MAX_CHANGED: i64 = 2_000;

/// Reads the records of one kind in a partition that have changed since a position, or all of them.
pub(super) async fn changed_since(
    cluster: &Cluster,
    partition: &Partition,
    kind: Kind,
    position: Option<Position>,
) -> Result<Changes, StoreError> {
    let scan = Scan::all(partition.clone(), kind);
    if let Some(since) = position.filter(|since| since.count <= MAX_RECORDS)
        && let Some((stored, count)) = put_since(cluster, &scan, since).await.map_err(CallFailure::of_read)?
    {
        return changes(cluster, false, &stored, count);
    }
    let stored = read_scan(cluster, &scan).await?;
    changes(cluster, true, &stored, stored.entries.len() as u64)
}

/// The records that were put since a position, and how many there are in all; `None` when one was deleted, when too
/// many were put, or when the position is of another cluster.
async fn put_since(cluster: &Cluster, scan: &Scan, since: Position) -> Result<Option<(Stored, u64)>, CallFailure> {
    let (first, end) = bounds(scan_range(scan));
    let revision = i64::try_from(since.moment).unwrap_or(i64::MAX);
    let range = RangeRequest {
        min_mod_revision: revision.saturating_add(1),
        // Counts what the filter leaves.
        limit: MAX_CHANGED,
        ..RangeRequest::between(cluster.layout.record(&first), cluster.layout.record(&end))
    };
    let txn = TxnRequest {
        success: vec![RequestOp::range(range)],
        ..TxnRequest::default()
    };
    let answer = cluster.client.read(&txn, cluster.read_deadline()).await?;
    let mut stored = Stored {
        revision: answer.revision(),
        cluster: answer.cluster().unwrap_or_default(),
        ..Stored::default()
    };
    let range = answer.ranges().next().unwrap_or_default();
    // One that was deleted and made again since the position is counted twice here, which reads all records too.
    let made = range
        .kvs
        .iter()
        .filter(|entry| entry.create_revision > revision)
        .count() as u64;
    let count = range.count.unsigned_abs();
    stored.entries = range.kvs;
    let is_later = stored.cluster == since.origin && stored.revision >= revision;
    let is_complete = !range.more && since.count + made == count;
    Ok((is_later && is_complete).then_some((stored, count)))
}

fn changes(cluster: &Cluster, is_all: bool, stored: &Stored, count: u64) -> Result<Changes, StoreError> {
    let records = stored.records(cluster);
    Ok(Changes {
        is_all,
        entries: records
            .map(|found| found.map(|(key, record)| (key, Some(record))))
            .collect::<Result<_, _>>()?,
        position: Some(Position {
            origin: stored.cluster,
            moment: stored.revision.unsigned_abs(),
            count,
        }),
    })
}
