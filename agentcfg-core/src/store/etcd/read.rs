//! Reads: linearizable, at one revision of the cluster, and shared by the calls that wait at the same moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::super::group::{Limits, Unanswered, Work};
use super::super::plan::{decode_key, scan_range};
use super::super::{Direction, Key, Kind, Record, Scan, Scanned, StoreError};
use super::error::{Failure, Refusal};
use super::layout::{self, Held};
use super::wire::{Headed, KeyValue, RangeRequest, RangeResponse, RequestOp, SortOrder, TxnRequest, TxnResponse, path};
use super::{Cluster, EtcdStore, bounds};

/// The greatest number of keys that one transaction reads.
const KEYS: usize = 1000;
/// The greatest number of records that one request of a scan reads.
const PAGE: usize = 500;
/// The number of records that the first request of a scan with a bound in bytes reads. Each further one reads twice as many.
const FIRST_PAGE: usize = 16;
/// How many times a read begins again because its revision was compacted meanwhile.
const RESTARTS: usize = 5;

/// The records under the keys of one read, in their order.
type Found = Result<Vec<Option<Held>>, StoreError>;

/// Reads keys for the calls that wait at the same moment.
pub(super) struct Reading(pub(super) Arc<Cluster>);

/// The limits of the groups. The bytes are keys.
pub(super) const LIMITS: Limits = Limits {
    group: KEYS,
    bytes: KEYS as u64,
    lane: 65_536,
    queue: 65_536,
    flights: 4,
    slow: Duration::MAX,
    most: 4,
    queue_timeout: Duration::from_secs(8),
};

impl Work for Reading {
    /// A number of its own for each read: reads do not exclude each other.
    type Lane = u64;
    type Request = Vec<Vec<u8>>;
    type Answer = Found;

    async fn run(&self, group: Vec<Vec<Vec<u8>>>) -> Vec<Found> {
        let mut places: HashMap<&[u8], usize> = HashMap::new();
        for key in group.iter().flatten() {
            let next = places.len();
            places.entry(key).or_insert(next);
        }
        let mut keys: Vec<&[u8]> = vec![&[]; places.len()];
        places.iter().for_each(|(key, place)| keys[*place] = key);
        let found = read_keys(&self.0, &keys).await;
        let of_one = |wanted: &Vec<Vec<u8>>| {
            let of = |found: &Vec<Option<Held>>| wanted.iter().map(|key| found[places[&key[..]]].clone()).collect();
            found.as_ref().map(of).map_err(Clone::clone)
        };
        group.iter().map(of_one).collect()
    }
}

impl EtcdStore {
    /// Reads records by their encoded keys, together with other calls.
    pub(super) async fn read(&self, keys: Vec<Vec<u8>>) -> Found {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let lane = self.next_read.fetch_add(1, Ordering::Relaxed);
        match self.reads.submit(lane, keys.len() as u64, keys).await {
            Ok(found) => found,
            Err(Unanswered::NotRun(why)) => Err(StoreError::Unavailable(why.into())),
            Err(Unanswered::Lost) => Err(StoreError::Unavailable("the read was cut off".into())),
        }
    }
}

/// Reads keys at one revision.
pub(super) async fn read_keys(cluster: &Cluster, keys: &[&[u8]]) -> Found {
    for _ in 0..RESTARTS {
        match try_keys(cluster, keys).await {
            Err(Failure::Refused(Refusal::Compacted)) => {}
            Err(failure) => return Err(failure.of_read()),
            Ok(stored) => {
                let records = keys.iter().zip(&stored).map(|(key, stored)| {
                    let open = |stored| layout::open(cluster.base(), key, stored);
                    stored.as_ref().map(open).transpose()
                });
                return records.collect();
            }
        }
    }
    Err(Refusal::Compacted.into_error())
}

async fn try_keys(cluster: &Cluster, keys: &[&[u8]]) -> Result<Vec<Option<KeyValue>>, Failure> {
    let mut revision = 0;
    let mut found = Vec::with_capacity(keys.len());
    for part in keys.chunks(KEYS) {
        let read = |key: &&[u8]| {
            RequestOp::range(RangeRequest {
                revision,
                ..RangeRequest::key(cluster.layout.record(key))
            })
        };
        let txn = TxnRequest {
            success: part.iter().map(read).collect(),
            ..TxnRequest::default()
        };
        let answer = cluster.client.read(&txn, cluster.read_deadline()).await?;
        revision = answer.revision().max(revision);
        let before = found.len();
        found.extend(answer.ranges().map(|range| range.kvs.into_iter().next()));
        if found.len() != before + part.len() {
            return Err(Failure::NotExecuted("the cluster left answers out".into()));
        }
    }
    Ok(found)
}

/// What a scan has found, in one revision.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) entries: Vec<KeyValue>,
    pub(super) with: Vec<Option<KeyValue>>,
    pub(super) revision: i64,
    /// The identifier of the cluster.
    pub(super) cluster: u64,
}

impl Stored {
    /// The records of the range.
    pub(super) fn records(&self, cluster: &Cluster) -> impl Iterator<Item = Result<(Key, Record), StoreError>> {
        self.entries.iter().map(|stored| {
            let key = cluster.layout.encoded(&stored.key);
            Ok((decode_key(key)?, layout::open(cluster.base(), key, stored)?.record))
        })
    }

    /// Whether the range has as many records as a scan may return.
    fn is_full(&self, scan: &Scan) -> bool {
        let lengths = self.entries.iter().map(|stored| layout::value_length(&stored.value));
        scan.is_full(self.entries.len(), lengths.sum())
    }
}

/// Runs a scan.
pub(super) async fn scan(cluster: &Cluster, scan: &Scan) -> Result<Scanned, StoreError> {
    let stored = read_scan(cluster, scan).await?;
    let other = |(key, found): (&Key, &Option<KeyValue>)| {
        let open = |found| layout::open(cluster.base(), &key.encode(), found).map(|held| held.record);
        found.as_ref().map(open).transpose()
    };
    Ok(Scanned {
        entries: scan.take(stored.records(cluster))?,
        with: scan
            .with
            .iter()
            .zip(&stored.with)
            .map(other)
            .collect::<Result<_, StoreError>>()?,
    })
}

/// Reads what a scan finds.
pub(super) async fn read_scan(cluster: &Cluster, scan: &Scan) -> Result<Stored, StoreError> {
    if scan.kind.partition_kind() != scan.partition.kind() {
        let text = format!("{:?} has no records in {:?}", scan.kind, scan.partition);
        return Err(StoreError::Misuse(text));
    }
    for _ in 0..RESTARTS {
        match try_scan(cluster, scan).await {
            Err(Failure::Refused(Refusal::Compacted)) => {}
            read => return read.map_err(Failure::of_read),
        }
    }
    Err(Refusal::Compacted.into_error())
}

async fn try_scan(cluster: &Cluster, scan: &Scan) -> Result<Stored, Failure> {
    if scan.direction == Direction::Descending
        && let Some(first) = near_end(cluster, scan).await?
    {
        let found = read_range(cluster, scan, Some(first)).await?;
        if found.is_full(scan) {
            return Ok(found);
        }
        // The numbers have gaps there, or there are fewer records than the scan may return.
    }
    read_range(cluster, scan, None).await
}

/// A key from which on a descending scan is likely to find as many records as it may return.
///
/// A member reads a whole range before it sorts it in descending order. Most scans in that order are of records whose items
/// end with a number without gaps, such as the entries of a log, so that the number tells where to begin.
async fn near_end(cluster: &Cluster, scan: &Scan) -> Result<Option<Vec<u8>>, Failure> {
    let item = match &scan.after {
        Some(after) => after.to_string(),
        None if scan.kind == Kind::LogEntry && scan.limit < usize::MAX => {
            let head = Key::new(scan.partition.clone(), Kind::LogHead, "").encode();
            let found = try_keys(cluster, &[&head]).await?.into_iter().next().flatten();
            let Some(Ok(head)) = found.map(|stored| layout::open(cluster.base(), &head, &stored)) else {
                return Ok(None);
            };
            match String::from_utf8_lossy(&head.record.value).parse::<u64>() {
                Ok(number) => format!("{:020}", number.saturating_add(1)),
                Err(_) => return Ok(None),
            }
        }
        None => return Ok(None),
    };
    Ok(lower(&item, scan.limit).map(|item| Key::new(scan.partition.clone(), scan.kind, item).encode()))
}

/// The item whose last number is smaller by `count`; `None` for an item without one.
fn lower(item: &str, count: usize) -> Option<String> {
    let digits = item.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (name, number) = item.split_at(item.len() - digits);
    let below = number.parse::<u64>().ok()?.checked_sub(u64::try_from(count).ok()?)?;
    Some(format!("{name}{below:0digits$}"))
}

/// Reads a range in pages of one revision, and further keys at the same revision.
async fn read_range(cluster: &Cluster, scan: &Scan, from: Option<Vec<u8>>) -> Result<Stored, Failure> {
    let (first, end) = bounds(scan_range(scan));
    let mut first = cluster
        .layout
        .record(&from.map_or(first.clone(), |from| from.max(first)));
    let mut end = cluster.layout.record(&end);
    let descends = scan.direction == Direction::Descending;
    let order = if descends { SortOrder::Descend } else { SortOrder::None };
    let mut longest = match scan.max_bytes {
        usize::MAX => PAGE,
        _ => FIRST_PAGE,
    };
    let page = |first: &[u8], end: &[u8], most: usize, revision| RangeRequest {
        limit: i64::try_from(most).unwrap_or(i64::MAX),
        revision,
        sort_order: order.into(),
        ..RangeRequest::between(first.to_vec(), end.to_vec())
    };
    let mut stored = Stored::default();
    let mut success = Vec::with_capacity(1 + scan.with.len());
    // A limit of 0 means "no limit" to the cluster, and an end that is not behind the beginning means other things.
    let is_empty = scan.is_full(0, 0) || first >= end;
    if !is_empty {
        success.push(RequestOp::range(page(&first, &end, scan.limit.min(longest), 0)));
    }
    let with = scan.with.iter().map(|key| cluster.layout.record(&key.encode()));
    success.extend(with.map(|key| RequestOp::range(RangeRequest::key(key))));
    if success.is_empty() {
        return Ok(stored);
    }
    let txn = TxnRequest {
        success,
        ..TxnRequest::default()
    };
    let answer: TxnResponse = cluster.client.read(&txn, cluster.read_deadline()).await?;
    let revision = answer.revision();
    (stored.revision, stored.cluster) = (revision, answer.cluster().unwrap_or_default());
    let mut ranges = answer.ranges();
    let mut last_page = match is_empty {
        true => RangeResponse::default(),
        false => ranges.next().unwrap_or_default(),
    };
    stored.with = ranges.map(|range| range.kvs.into_iter().next()).collect();
    loop {
        let more = last_page.more;
        stored.entries.append(&mut last_page.kvs);
        let Some(last) = stored.entries.last().filter(|_| more && !stored.is_full(scan)) else {
            return Ok(stored);
        };
        longest = (2 * longest).min(PAGE);
        let most = longest.min(scan.limit - stored.entries.len());
        match descends {
            true => end = last.key.clone(),
            false => first = [&last.key[..], &[0]].concat(),
        }
        let request = page(&first, &end, most, revision);
        last_page = cluster
            .client
            .repeat(path::RANGE, &request, cluster.read_deadline())
            .await?;
    }
}

impl Cluster {
    pub(super) fn read_deadline(&self) -> Instant {
        Instant::now() + self.read_timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descending_scan_begins_as_many_numbers_below_as_it_may_return() {
        assert_eq!(lower("writer 00012", 5).as_deref(), Some("writer 00007"));
        assert_eq!(lower("00012", 12).as_deref(), Some("00000"));
        assert_eq!(lower("00012", 13), None);
        assert_eq!(lower("writer", 1), None);
        assert_eq!(lower("7", usize::MAX), None);
    }
}
