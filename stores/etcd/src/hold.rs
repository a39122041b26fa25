//! Holds: a key beside a log, for which the commits of all processes wait.
//!
//! Who takes a hold puts the key and writes the head of the log again as it is. So the next commit of every other
//! process finds that the head has changed, and the answer, which has the current records, has this key too: a commit
//! that meets no hold reads and compares nothing for it. Then the process waits until the key is gone. The key belongs
//! to the lease of its process; who has waited for it too long removes it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{Batch, HeldLog, Hold, Key, StoreError, Write};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::Cluster;
use super::error::CallFailure;
use super::protocol::{Compare, KeyValue, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse, path};

/// How long others wait for one hold.
const LONGEST: Duration = Duration::from_secs(3);
/// The pause between two reads of the key.
const PAUSE: Duration = Duration::from_millis(5);

/// A hold of this process.
pub(super) struct HeldKey {
    cluster: Arc<Cluster>,
    key: Vec<u8>,
    /// The revision in which the key was put.
    revision: i64,
    _queue: HeldLog,
}

/// Puts the key of a hold, as soon as no other process has it.
pub(super) async fn hold(cluster: &Arc<Cluster>, log: WorkspaceId, queue: HeldLog) -> Result<Hold, StoreError> {
    let key = cluster.layout.hold(log);
    let head = cluster.layout.record(&Key::log_head(log).encode());
    let deadline = Instant::now() + cluster.commit_timeout;
    let lease = cluster.identity.lease();
    loop {
        let found = read(cluster, vec![key.clone(), head.clone()], deadline).await?;
        let [other, found] = <[Option<KeyValue>; 2]>::try_from(found).unwrap_or_default();
        if let Some(other) = other {
            wait(cluster, other).await?;
            continue;
        }
        let (revision, rewrite) = match found {
            Some(found) => (found.mod_revision, Some(RequestOp::put(head.clone(), found.value, 0))),
            None => (0, None),
        };
        let put = RequestOp::put(key.clone(), cluster.identity.process().as_bytes().to_vec(), lease);
        let txn = TxnRequest {
            compare: vec![
                Compare::changed_in(key.clone(), 0),
                Compare::changed_in(head.clone(), revision),
            ],
            success: [put].into_iter().chain(rewrite).collect(),
            failure: Vec::new(),
        };
        let put: Result<TxnResponse, _> = cluster.client.repeat(path::TXN, &txn, deadline).await;
        let put = put.map_err(failed)?;
        if put.succeeded {
            return Ok(Hold::new(HeldKey {
                cluster: Arc::clone(cluster),
                revision: put.revision(),
                key,
                _queue: queue,
            }));
        }
        // Another commit was faster, or the answer to the first attempt is lost. Then the key is removed as that of
        // another one.
        if Instant::now() >= deadline {
            return Err(StoreError::Unavailable("too many processes write this log".into()));
        }
    }
}

/// The keys of the holds that a batch waits for.
pub(super) fn keys(cluster: &Cluster, batch: &Batch) -> impl Iterator<Item = Vec<u8>> {
    batch.writes.iter().filter_map(|write| match write {
        Write::Append { log, .. } => Some(cluster.layout.hold(*log)),
        _ => None,
    })
}

/// Waits for the holds in these answers.
pub(super) async fn wait_for(cluster: &Cluster, ranges: Vec<RangeResponse>) -> Result<(), StoreError> {
    for found in ranges.into_iter().flat_map(|range| range.kvs) {
        wait(cluster, found).await?;
    }
    Ok(())
}

/// Waits until the key of a hold is gone, and removes it when that takes too long.
async fn wait(cluster: &Cluster, held: KeyValue) -> Result<(), StoreError> {
    let end = Instant::now() + LONGEST;
    while Instant::now() < end {
        sleep(PAUSE).await;
        let found = read(cluster, vec![held.key.clone()], cluster.read_deadline())
            .await?
            .pop();
        if found
            .flatten()
            .is_none_or(|found| found.mod_revision != held.mod_revision)
        {
            return Ok(());
        }
    }
    remove(cluster, held.key, held.mod_revision).await.map_err(failed)
}

async fn remove(cluster: &Cluster, key: Vec<u8>, revision: i64) -> Result<(), CallFailure> {
    let txn = TxnRequest {
        compare: vec![Compare::changed_in(key.clone(), revision)],
        success: vec![RequestOp::delete(key)],
        failure: Vec::new(),
    };
    let deadline = cluster.read_deadline();
    let removed: Result<TxnResponse, _> = cluster.client.repeat(path::TXN, &txn, deadline).await;
    removed.map(drop)
}

/// Reads keys in one transaction.
async fn read(cluster: &Cluster, keys: Vec<Vec<u8>>, deadline: Instant) -> Result<Vec<Option<KeyValue>>, StoreError> {
    let range = |key| RequestOp::range(RangeRequest::key(key));
    let txn = TxnRequest {
        success: keys.into_iter().map(range).collect(),
        ..TxnRequest::default()
    };
    let answer = cluster.client.read(&txn, deadline).await.map_err(failed)?;
    let ranges = answer.ranges().map(|range| range.kvs.into_iter().next());
    Ok(ranges.collect())
}

fn failed(failure: CallFailure) -> StoreError {
    StoreError::Unavailable(failure.into_text())
}

impl Drop for HeldKey {
    fn drop(&mut self) {
        let (cluster, key, revision) = (Arc::clone(&self.cluster), std::mem::take(&mut self.key), self.revision);
        // Without a runtime those who wait remove it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(failure) = remove(&cluster, key, revision).await {
                    tracing::debug!(?failure, "a hold was not removed, so others wait for its end");
                }
            });
        }
    }
}

impl fmt::Debug for HeldKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldKey")
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
