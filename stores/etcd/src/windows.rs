//! Fixed rate windows that all servers on one cluster share.
//!
//! The requests that wait at the same moment are counted in one transaction. A window goes by the clock of the process
//! that counts; its end is in the cluster, so that clocks which differ a little do not refill it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::store::group::{Limits, Unanswered, Work};
use agentcfg_core::store::{SharedWindow, SharedWindows, StoreError};
use async_trait::async_trait;
use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::client::answer_timeout;
use super::error::{CallFailure, is_out_of_space};
use super::protocol::{Compare, KeyValue, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse, path};
use super::{Cluster, EtcdStore};

/// The time limit of counting a request here. After it, the caller counts in its own memory.
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);
/// How much later than this process expects a window may end, because another clock is ahead.
const SKEW: i64 = 2000;
/// How long a window is kept after its end.
const KEPT: i64 = 60_000;

/// Counts the requests that arrive while others are counted together.
pub(super) struct Counting {
    cluster: Arc<Cluster>,
    /// The windows that this process was the last to count in, by subject, each with the revision of the count.
    recent: Cache<String, (WindowRecord, i64)>,
}

impl Counting {
    pub(super) fn new(cluster: Arc<Cluster>) -> Self {
        /// How many windows are kept.
        const RECENT: usize = 16_384;
        Self {
            cluster,
            recent: Cache::new(RECENT),
        }
    }
}

/// The requests of one subject.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    subject: String,
    length: i64,
}

/// The limits of the groups: one at a time, because all would change the same windows.
pub(super) const LIMITS: Limits = Limits {
    group: 512,
    bytes: u64::MAX,
    lane: 65_536,
    queue: 65_536,
    flights: 1,
    slow: Duration::MAX,
    most: 1,
    queue_timeout: COUNT_TIMEOUT,
};

impl Work for Counting {
    type Lane = ();
    type Request = Hit;
    type Answer = Result<SharedWindow, StoreError>;

    async fn run(&self, group: Vec<Hit>) -> Vec<Self::Answer> {
        let mut by_subject: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for hit in &group {
            by_subject.entry(&hit.subject).or_default().push(hit.length);
        }
        let deadline = Instant::now() + COUNT_TIMEOUT;
        match self.count(&by_subject, deadline).await {
            Ok((windows, now_millis)) => {
                let mut before: BTreeMap<&str, u64> = BTreeMap::new();
                let mut counted = Vec::with_capacity(group.len());
                for hit in &group {
                    let window = windows[&*hit.subject];
                    let hits = by_subject[&*hit.subject].len() as u64;
                    let used = before.entry(&hit.subject).or_insert(window.used.saturating_sub(hits));
                    *used += 1;
                    counted.push(Ok(SharedWindow {
                        ends_at_millis: window.ends_at,
                        used: *used,
                        now_millis,
                    }));
                }
                counted
            }
            Err(failure) => {
                let error = failure.of_read();
                group.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }
}

/// A stored window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct WindowRecord {
    ends_at: i64,
    used: u64,
}

impl WindowRecord {
    /// The window that a request falls into: this one, unless it has ended, shortened to one length from now.
    fn at(found: Option<Self>, now: i64, length: i64) -> Self {
        match found {
            Some(window) if window.ends_at > now + length + SKEW => Self {
                ends_at: now + length,
                ..window
            },
            Some(window) if window.ends_at > now => window,
            _ => Self {
                ends_at: now + length,
                used: 0,
            },
        }
    }
}

#[async_trait]
impl SharedWindows for EtcdStore {
    async fn hit(&self, subject: &str, window_millis: i64) -> Result<SharedWindow, StoreError> {
        self.cluster.require_open()?;
        let hit = Hit {
            subject: subject.to_owned(),
            length: window_millis,
        };
        match self.counts.submit((), 0, hit).await {
            Ok(counted) => counted,
            Err(Unanswered::NotRun(why)) => Err(StoreError::Unavailable(why.into())),
            Err(Unanswered::Lost) => Err(StoreError::Unavailable("the count was cut off".into())),
        }
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        self.cluster.sweep_windows().await.map_err(CallFailure::of_read)
    }
}

impl Counting {
    /// Returns the window of each subject after its requests were counted, and the time.
    async fn count<'a>(
        &self,
        group: &BTreeMap<&'a str, Vec<i64>>,
        deadline: Instant,
    ) -> Result<(BTreeMap<&'a str, WindowRecord>, i64), CallFailure> {
        let cluster = &*self.cluster;
        let keys: Vec<Vec<u8>> = group.keys().map(|subject| cluster.layout.window(subject)).collect();
        let reads = || keys.iter().map(|key| RequestOp::range(RangeRequest::key(key.clone())));
        let recent = group.keys().map(|subject| {
            let (window, revision) = self.recent.get(*subject)?;
            Some((Some(window), revision))
        });
        // If another process has counted since, the transaction is refused, and its answer has the windows.
        let mut found = match recent.collect::<Option<Vec<_>>>() {
            Some(recent) => recent,
            None => {
                let read = TxnRequest {
                    success: reads().collect(),
                    ..TxnRequest::default()
                };
                window_states(cluster.client.read(&read, deadline).await?.ranges())
            }
        };
        loop {
            // The time is read after the windows, so that the clock which opened one is not ahead on the same machine.
            let now = cluster.clock.now().unix_millis();
            let windows: Vec<WindowRecord> = group
                .iter()
                .zip(&found)
                .map(|((_, hits), (window, _))| {
                    let length = hits.iter().copied().max().unwrap_or_default();
                    let window = WindowRecord::at(*window, now, length);
                    WindowRecord {
                        used: window.used.saturating_add(hits.len() as u64),
                        ..window
                    }
                })
                .collect();
            let put = |(key, window): (&Vec<u8>, &WindowRecord)| {
                RequestOp::put(key.clone(), serde_json::to_vec(window).unwrap_or_default(), 0)
            };
            let txn = TxnRequest {
                compare: keys
                    .iter()
                    .zip(&found)
                    .map(|(key, (_, revision))| Compare::changed_in(key.clone(), *revision))
                    .collect(),
                success: keys.iter().zip(&windows).map(put).collect(),
                failure: reads().collect(),
            };
            let member = cluster.client.member();
            let answer = cluster
                .client
                .call::<_, TxnResponse>(member, path::TXN, &txn, answer_timeout(&txn))
                .await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(failure @ CallFailure::Refused(_)) => return Err(failure),
                Err(CallFailure::Unknown(why)) if is_out_of_space(&why) => return Err(CallFailure::Unknown(why)),
                Err(failure) => {
                    cluster.client.switch_from(member);
                    return Err(failure);
                }
            };
            if answer.succeeded {
                let revision = answer.revision();
                for (subject, window) in group.keys().zip(&windows) {
                    self.recent.insert((*subject).to_owned(), (*window, revision));
                }
                return Ok((group.keys().copied().zip(windows).collect(), now));
            }
            if Instant::now() >= deadline {
                return Err(CallFailure::NotExecuted(
                    "too many servers count at the same time".into(),
                ));
            }
            found = window_states(answer.ranges());
        }
    }
}

/// The windows that were read, each with the revision of its last change.
fn window_states(ranges: impl Iterator<Item = RangeResponse>) -> Vec<(Option<WindowRecord>, i64)> {
    let state = |range: RangeResponse| match range.kvs.first() {
        Some(stored) => (window(stored), stored.mod_revision),
        None => (None, 0),
    };
    ranges.map(state).collect()
}

/// A stored window. One that cannot be read counts as ended.
fn window(stored: &KeyValue) -> Option<WindowRecord> {
    serde_json::from_slice(&stored.value).ok()
}

impl Cluster {
    /// Removes the windows that ended a while ago.
    async fn sweep_windows(&self) -> Result<(), CallFailure> {
        const PAGE: i64 = 500;
        let (mut first, end) = self.layout.windows();
        loop {
            let deadline = self.read_deadline();
            let request = RangeRequest {
                limit: PAGE,
                ..RangeRequest::between(first, end.clone())
            };
            let page: RangeResponse = self.client.repeat(path::RANGE, &request, deadline).await?;
            let now = self.clock.now().unix_millis();
            let has_ended = |stored: &&KeyValue| window(stored).is_none_or(|window| window.ends_at + KEPT < now);
            let ended: Vec<_> = page.kvs.iter().filter(has_ended).collect();
            if !ended.is_empty() {
                // A window that a request has opened again meanwhile keeps all of them for now.
                let unchanged = |stored: &&KeyValue| Compare::changed_in(stored.key.clone(), stored.mod_revision);
                let txn = TxnRequest {
                    compare: ended.iter().map(unchanged).collect(),
                    success: ended
                        .iter()
                        .map(|stored| RequestOp::delete(stored.key.clone()))
                        .collect(),
                    failure: Vec::new(),
                };
                let _: TxnResponse = self.client.repeat(path::TXN, &txn, deadline).await?;
            }
            match page.kvs.last() {
                Some(last) if page.more => first = [&last.key[..], &[0]].concat(),
                _ => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_and_is_never_longer_than_its_length() {
        let stored = WindowRecord { ends_at: 1000, used: 7 };
        assert_eq!(WindowRecord::at(Some(stored), 999, 60_000), stored);
        let next = WindowRecord {
            ends_at: 61_000,
            used: 0,
        };
        assert_eq!(WindowRecord::at(Some(stored), 1000, 60_000), next);
        assert_eq!(WindowRecord::at(None, 1000, 60_000), next);
        let ahead = WindowRecord {
            ends_at: 10_000_000,
            used: 7,
        };
        let shortened = WindowRecord::at(Some(ahead), 1000, 60_000);
        assert_eq!((shortened.ends_at, shortened.used), (61_000, 7));
    }
}
