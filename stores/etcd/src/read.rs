//! Reads: linearizable, at one revision of the cluster, and shared by the calls that wait at the same moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentcfg_core::store::group::{Limits, Unanswered, Work};
use agentcfg_core::store::plan::{decode_key, scan_range};
use agentcfg_core::store::{Direction, Key, Kind, Record, Scan, Scanned, StoreError};
use tokio::time::Instant;

use super::client::ELECTION;
use super::error::{CallFailure, Refusal};
use super::layout::{self, Held, Layout};
use super::protocol::{
    Headed, KeyValue, RangeRequest, RangeResponse, RequestOp, SortOrder, TxnRequest, TxnResponse, path,
};
use super::{Cluster, EtcdStore, bounds};

/// The greatest number of keys that one transaction reads.
const KEYS: usize = 1000;
/// The greatest number of records that one request of a scan reads.
const PAGE: usize = 500;
/// The number of records that the first request of a scan with a bound in bytes reads. Each further one reads twice as
/// many.
const FIRST_PAGE: usize = 16;
/// How many times a read begins again because its revision was compacted meanwhile.
const RESTARTS: usize = 5;

/// The records under the keys of one read, in their order.
type RecordsRead = Result<Vec<Option<Held>>, StoreError>;

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
    type Answer = RecordsRead;

    async fn run(&self, group: Vec<Vec<Vec<u8>>>) -> Vec<RecordsRead> {
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
    pub(super) async fn read(&self, keys: Vec<Vec<u8>>) -> RecordsRead {
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
pub(super) async fn read_keys(cluster: &Cluster, keys: &[&[u8]]) -> RecordsRead {
    for _ in 0..RESTARTS {
        match try_keys(cluster, keys).await {
            Err(CallFailure::Refused(Refusal::Compacted)) => {}
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

async fn try_keys(cluster: &Cluster, keys: &[&[u8]]) -> Result<Vec<Option<KeyValue>>, CallFailure> {
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
            return Err(CallFailure::NotExecuted("the cluster left answers out".into()));
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
            Err(CallFailure::Refused(Refusal::Compacted)) => {}
            read => return read.map_err(CallFailure::of_read),
        }
    }
    Err(Refusal::Compacted.into_error())
}

/// Reads a range in pages of one revision, and further keys at the same revision.
async fn try_scan(cluster: &Cluster, scan: &Scan) -> Result<Stored, CallFailure> {
    let mut rest = Rest::of(&cluster.layout, scan);
    // A limit of 0 means "no limit" to the cluster, and an end that is not behind the beginning means other things.
    let is_empty = scan.is_full(0, 0) || rest.is_empty();
    let mut stored = Stored::default();
    let mut success = Vec::with_capacity(1 + scan.with.len());
    let mut asked = RangeRequest::default();
    if !is_empty {
        if rest.descends {
            rest.behind = behind(cluster, scan).await?;
        }
        asked = rest.next_page(scan.limit);
        success.push(RequestOp::range(asked.clone()));
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
    let mut page = match is_empty {
        true => RangeResponse::default(),
        false => ranges.next().unwrap_or_default(),
    };
    stored.with = ranges.map(|range| range.kvs.into_iter().next()).collect();
    loop {
        rest.advance(&asked, &page);
        stored.entries.append(&mut page.kvs);
        if rest.is_empty() || stored.is_full(scan) {
            return Ok(stored);
        }
        asked = RangeRequest {
            revision,
            ..rest.next_page(scan.limit - stored.entries.len())
        };
        page = cluster
            .client
            .repeat_for(ELECTION, path::RANGE, &asked, cluster.read_deadline())
            .await?;
    }
}

/// The item behind those that a descending scan may return, if one is known.
async fn behind(cluster: &Cluster, scan: &Scan) -> Result<Option<String>, CallFailure> {
    if scan.kind != Kind::LogEntry || scan.after.is_some() {
        return Ok(scan.after.as_deref().map(str::to_owned));
    }
    let head = Key::new(scan.partition.clone(), Kind::LogHead, "").encode();
    let found = try_keys(cluster, &[&head]).await?.into_iter().next().flatten();
    let Some(Ok(head)) = found.map(|stored| layout::open(cluster.base(), &head, &stored)) else {
        return Ok(None);
    };
    let number = String::from_utf8_lossy(&head.record.value).parse::<u64>();
    Ok(number.ok().map(|number| format!("{:020}", number.saturating_add(1))))
}

/// The item whose last number is smaller by `count`; `None` for an item without one.
fn lower(item: &str, count: usize) -> Option<String> {
    let digits = item.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (name, number) = item.split_at(item.len() - digits);
    let below = number.parse::<u64>().ok()?.checked_sub(u64::try_from(count).ok()?)?;
    Some(format!("{name}{below:0digits$}"))
}

/// What a scan has not read yet: the keys from `first` up to `end`, which is excluded.
///
/// A member reads all records of a request's range before it sorts them in descending order and returns the first ones.
/// Most scans in that order are of records whose items end with a number without gaps, such as the entries of a log. So
/// the number of the item behind a page tells where the page begins, and the range has no more records than the page.
struct Rest<'a> {
    layout: &'a Layout,
    scan: &'a Scan,
    descends: bool,
    first: Vec<u8>,
    end: Vec<u8>,
    /// The greatest number of records of the next page.
    longest: usize,
    /// The item behind the rest of a descending scan. `None` where it is not known, and after a page that had fewer
    /// records than its numbers tell.
    behind: Option<String>,
}

impl<'a> Rest<'a> {
    fn of(layout: &'a Layout, scan: &'a Scan) -> Self {
        let (first, end) = bounds(scan_range(scan));
        Self {
            layout,
            scan,
            descends: scan.direction == Direction::Descending,
            first: layout.record(&first),
            end: layout.record(&end),
            longest: match scan.max_bytes {
                usize::MAX => PAGE,
                _ => FIRST_PAGE,
            },
            behind: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.first >= self.end
    }

    /// The request for the next records, `room` at most. The page after it may be longer.
    fn next_page(&mut self, room: usize) -> RangeRequest {
        let most = self.longest.min(room);
        self.longest = (2 * self.longest).min(PAGE);
        let order = if self.descends {
            SortOrder::Descend
        } else {
            SortOrder::None
        };
        RangeRequest {
            limit: i64::try_from(most).unwrap_or(i64::MAX),
            sort_order: order.into(),
            ..RangeRequest::between(self.first_of(most), self.end.clone())
        }
    }

    /// The first key of a page of `most` records.
    fn first_of(&self, most: usize) -> Vec<u8> {
        let near = self.behind.as_deref().and_then(|item| lower(item, most)).map(|item| {
            let key = Key::new(self.scan.partition.clone(), self.scan.kind, item);
            self.layout.record(&key.encode())
        });
        near.unwrap_or_default().max(self.first.clone())
    }

    /// Takes a page away.
    fn advance(&mut self, asked: &RangeRequest, page: &RangeResponse) {
        let is_full = i64::try_from(page.kvs.len()).is_ok_and(|length| length >= asked.limit);
        match page.kvs.last() {
            Some(last) if self.descends && (is_full || page.more) => {
                let behind = Key::decode(self.layout.encoded(&last.key));
                self.behind = behind.map(|key| key.item().to_owned());
                self.end.clone_from(&last.key);
            }
            Some(last) if page.more => self.first = [&last.key[..], &[0]].concat(),
            // All of the range was read, and there are gaps between the numbers or no records below it.
            _ => {
                self.behind = None;
                self.end = match self.descends {
                    true => asked.key.clone(),
                    false => self.first.clone(),
                };
            }
        }
    }
}

impl Cluster {
    pub(super) fn read_deadline(&self) -> Instant {
        Instant::now() + self.read_timeout
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use agentcfg_core::model::WorkspaceId;
    use agentcfg_core::store::Partition;

    #[test]
    fn a_descending_scan_begins_as_many_numbers_below_as_it_may_return() {
        assert_eq!(lower("writer 00012", 5).as_deref(), Some("writer 00007"));
        assert_eq!(lower("00012", 12).as_deref(), Some("00000"));
        assert_eq!(lower("00012", 13), None);
        assert_eq!(lower("writer", 1), None);
        assert_eq!(lower("7", usize::MAX), None);
    }

    /// A member that holds these items, and how many records it reads for a scan. It returns what the scan finds.
    fn scanned(items: &BTreeSet<String>, scan: &Scan, behind: Option<&str>) -> (Vec<String>, usize) {
        let layout = Layout::new("p/".into());
        let key = |item: &String| layout.record(&Key::new(scan.partition.clone(), scan.kind, &**item).encode());
        let mut rest = Rest::of(&layout, scan);
        rest.behind = behind.map(str::to_owned);
        let (mut found, mut read) = (Vec::new(), 0);
        while !rest.is_empty() && found.len() < scan.limit {
            let asked = rest.next_page(scan.limit - found.len());
            let keys = items.iter().map(|item| (key(item), item));
            let mut range: Vec<_> = keys
                .filter(|(key, _)| asked.key <= *key && *key < asked.range_end)
                .collect();
            let limit = usize::try_from(asked.limit).unwrap();
            let more = range.len() > limit;
            if scan.direction == Direction::Descending {
                read += range.len();
                range.reverse();
            }
            range.truncate(limit);
            if scan.direction == Direction::Ascending {
                read += range.len();
            }
            found.extend(range.iter().map(|(_, item)| (*item).clone()));
            let kvs = range.into_iter().map(|(key, _)| KeyValue {
                key,
                ..KeyValue::default()
            });
            let page = RangeResponse {
                kvs: kvs.collect(),
                more,
                ..RangeResponse::default()
            };
            rest.advance(&asked, &page);
        }
        (found, read)
    }

    #[test]
    fn a_descending_scan_of_numbered_records_reads_no_more_than_it_returns() {
        let partition = Partition::Workspace(WorkspaceId::new(uuid::Uuid::from_u128(1)));
        let scan = |limit, max_bytes, after: Option<&str>| Scan {
            direction: Direction::Descending,
            limit,
            max_bytes,
            after: after.map(Into::into),
            ..Scan::all(partition.clone(), Kind::LogEntry)
        };
        let number = |number: u64| format!("{number:020}");
        let log: BTreeSet<String> = (1..=2000).map(number).collect();
        let end = number(2001);
        // The limit, the bytes, the item behind, and how many records are returned and read.
        for (limit, max_bytes, after, expected) in [
            (256, 1 << 19, None, 256),
            (256, 1 << 19, Some(number(1501)), 256),
            (1000, usize::MAX, Some(number(1501)), 1000),
            (usize::MAX, usize::MAX, None, 2000),
            (256, 1 << 19, Some(number(101)), 100),
            (256, 1 << 19, Some(number(1)), 0),
        ] {
            let scan = scan(limit, max_bytes, after.as_deref());
            let (found, read) = scanned(&log, &scan, Some(after.as_deref().unwrap_or(&end)));
            assert_eq!((found.len(), read), (expected, expected), "{scan:?}");
            let below = log
                .iter()
                .rev()
                .filter(|item| scan.after.as_deref().is_none_or(|after| &***item < after));
            assert!(found.iter().eq(below.take(limit)), "{scan:?}");
        }
        // Numbers with gaps, and items without numbers.
        let others: BTreeSet<String> = (1..=2000)
            .filter(|item| item % 7 > 1)
            .map(number)
            .chain(["", "a", "a-", "a12", "a9", "b"].map(str::to_owned))
            .collect();
        for after in [None, Some("a13"), Some("b"), Some(&*number(700)), Some(&*number(3))] {
            for limit in [1, 2, 256, usize::MAX] {
                for max_bytes in [1 << 19, usize::MAX] {
                    for direction in [Direction::Descending, Direction::Ascending] {
                        let scan = Scan {
                            direction,
                            ..scan(limit, max_bytes, after)
                        };
                        let (found, _) = scanned(&others, &scan, scan.after.as_deref());
                        let expected: Vec<_> = match direction {
                            Direction::Descending => {
                                let below = others
                                    .iter()
                                    .rev()
                                    .filter(|item| after.is_none_or(|after| &***item < after));
                                below.take(limit).cloned().collect()
                            }
                            Direction::Ascending => {
                                let above = others.iter().filter(|item| after.is_none_or(|after| &***item > after));
                                above.take(limit).cloned().collect()
                            }
                        };
                        assert_eq!(found, expected, "{scan:?}");
                    }
                }
            }
        }
    }
}
