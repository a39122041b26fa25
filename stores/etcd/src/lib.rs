//! The store on an etcd cluster, which survives the loss of any member as long as a majority is left.
//!
//! # Records
//!
//! Each record is one key of the cluster: a prefix, and the [encoded key](Key::encode). Its value is the
//! [envelope](agentcfg_core::store::envelope) with its checksum. The version of a record is the revision of the cluster
//! in which it was written, which no other change has and which never returns; a base is added in a store that was
//! imported.
//!
//! # Reads
//!
//! A read is one linearizable transaction, so all of its records are of one revision, and no commit that was answered
//! is missing. Reads that wait at the same moment share one. A scan reads its pages at the revision of the first one;
//! if that was compacted meanwhile, it begins again.
//!
//! # Commits
//!
//! A commit is one transaction. Its conditions are the revisions of all records that the batch was decided on, and it
//! writes the counters and the numbers of log entries as plain values. When a condition does not hold, the batch is
//! decided again on the current records, which the answer has.
//!
//! A decision that loses its races [holds](Store::hold) the log: the next commit of each other process finds the head
//! changed and, with that answer, the key of the hold, for whose end it waits.
//!
//! # Unknown outcomes
//!
//! When an answer is lost, the store finds out whether the transaction was executed, and prevents that it still is,
//! before it sends another one. So a change of the leader or the end of a member delays commits and does not fail them.
//! [`StoreError::OutcomeUnknown`] is left for a cluster that does not answer until the time limit.
//!
//! # Limits
//!
//! A change is one transaction, so the members must allow transactions and requests that hold the largest change:
//! `--max-txn-ops` and `--max-request-bytes`. [`EtcdStore::connect`] checks that. A transaction of more than 10 MiB is
//! never sent, because members of some releases could not be restarted after it: the values of a large change are
//! compressed, and one that is too large then is refused with [`StoreError::TooLarge`]. When the database of the
//! cluster has reached its quota, the store is [read-only](Store::read_only), also when it is opened then.

#![warn(missing_debug_implementations)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod batch_decision;
mod changes;
mod client;
mod commit;
mod error;
mod health;
mod hold;
mod layout;
mod options;
mod protocol;
mod read;
mod transaction_outcome;
mod transfer;
mod windows;

use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use agentcfg_core::clock::{Clock, Entropy, SystemEntropy};
use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::group::{Combiner, GroupCommit};
use agentcfg_core::store::{
    BUILD, Batch, Changes, CommitError, Committed, FORMAT, Hold, Holds, Key, Kind, OtherFormat, Partition, Position,
    Record, Scan, Scanned, Store, StoreError,
};
use async_trait::async_trait;
use quick_cache::sync::Cache;
use tokio::time::{Instant, sleep};

use self::client::Client;
pub use self::error::ConnectError;
use self::error::{CallFailure, Refusal, is_out_of_space};
use self::health::{Health, REQUIRED_OPS, check_limits};
use self::layout::{ClusterFacts, Held, Layout, Made};
pub use self::options::{EtcdOptions, are_endpoints, is_prefix};
use self::protocol::{Compare, Headed, KeyValue, RangeRequest, RequestOp, TxnRequest, TxnResponse, path};
use self::read::Reading;
use self::transaction_outcome::Identity;
use self::windows::Counting;

/// The store in an etcd cluster, which any number of processes can use at the same time.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::AgentCfg;
/// use agentcfg_etcd::{EtcdOptions, EtcdStore};
///
/// let options = EtcdOptions::new("http://etcd-1:2379,http://etcd-2:2379,http://etcd-3:2379");
/// let store = EtcdStore::connect(&options).await?;
/// let service = AgentCfg::builder(store).build();
/// # Ok(())
/// # }
/// ```
pub struct EtcdStore {
    cluster: Arc<Cluster>,
    commits: GroupCommit<Arc<Cluster>>,
    reads: Combiner<Reading>,
    next_read: AtomicU64,
    counts: Combiner<Counting>,
    holds: Holds,
}

/// The cluster, as the tasks of the store share it.
struct Cluster {
    client: Client,
    layout: Layout,
    identity: Identity,
    health: Health,
    base: AtomicU64,
    /// Counters and heads of logs as this process last saw them, by encoded key.
    numbers: Cache<Vec<u8>, Held>,
    max_ops: usize,
    read_timeout: Duration,
    commit_timeout: Duration,
    clock: Arc<dyn Clock>,
    is_closed: AtomicBool,
}

impl Cluster {
    fn base(&self) -> u64 {
        self.base.load(Ordering::Relaxed)
    }

    fn require_open(&self) -> Result<(), StoreError> {
        match self.is_closed.load(Ordering::Relaxed) {
            true => Err(StoreError::Unavailable("the store is closed".into())),
            false => Ok(()),
        }
    }

    /// Keeps numbers for the next commit.
    fn remember(&self, numbers: impl IntoIterator<Item = (Vec<u8>, Record)>, revision: i64) {
        for (key, record) in numbers {
            let record = Record {
                version: layout::version(self.base(), revision),
                ..record
            };
            self.numbers.insert(key, Held { record, revision });
        }
    }
}

impl EtcdStore {
    /// Connects to the cluster, and makes an empty store if there is none under the prefix.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`]. Records of another format are not changed.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use agentcfg_etcd::{EtcdOptions, EtcdStore};
    /// let options = EtcdOptions::new("http://etcd-1:2379").connect_wait(Duration::from_secs(30));
    /// let store = EtcdStore::connect(&options).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(options: &EtcdOptions) -> Result<Self, ConnectError> {
        Self::open(options, false).await
    }

    async fn open(options: &EtcdOptions, to_import: bool) -> Result<Self, ConnectError> {
        /// How many numbers of counters and logs are kept.
        const NUMBERS: usize = 8192;
        let layout = Layout::new(options.key_prefix()?);
        let client = Client::new(options)?;
        let mut name = [0; 8];
        SystemEntropy
            .fill(&mut name)
            .map_err(|error| ConnectError::Unusable(error.to_string()))?;
        let identity = Identity::new(format!("{:016x}", u64::from_be_bytes(name)));
        let facts = first_contact(&client, &layout, options.connect_wait).await?;
        tracing::info!(endpoints = %options.endpoints, "connected to the etcd cluster");
        if facts.is_importing && !to_import {
            let text = "an import into it has not ended; stop it, or repeat it until it succeeds";
            return Err(ConnectError::Unusable(text.into()));
        }
        check_limits(&client, &layout).await?;
        let health = Health::default();
        health
            .look(&client, Instant::now() + options.read_timeout)
            .await
            .map_err(unreachable)?;
        let deadline = Instant::now() + options.commit_timeout;
        match identity.register(&client, &layout, deadline).await {
            // The store is read-only. The process gets its lease when the database has space again.
            Err(CallFailure::Unknown(why)) if is_out_of_space(&why) => health.note_full(&why),
            registered => registered.map_err(unreachable)?,
        }
        let cluster = Arc::new(Cluster {
            client,
            layout,
            identity,
            health,
            base: AtomicU64::new(facts.base),
            numbers: Cache::new(NUMBERS),
            max_ops: REQUIRED_OPS,
            read_timeout: options.read_timeout,
            commit_timeout: options.commit_timeout,
            clock: Arc::clone(&options.clock),
            is_closed: AtomicBool::new(false),
        });
        tokio::spawn(maintain(Arc::downgrade(&cluster)));
        Ok(Self {
            commits: GroupCommit::new(Arc::clone(&cluster), commit::LIMITS),
            reads: Combiner::new(Reading(Arc::clone(&cluster)), read::LIMITS),
            next_read: AtomicU64::new(0),
            counts: Combiner::new(Counting::new(Arc::clone(&cluster)), windows::LIMITS),
            holds: Holds::default(),
            cluster,
        })
    }

    /// Ends the lease of this process. Later calls return [`StoreError::Unavailable`].
    ///
    /// A process that ends without it counts as connected until its lease expires, which takes half a minute.
    ///
    /// ```no_run
    /// # use agentcfg_etcd::EtcdStore;
    /// # async fn example(store: EtcdStore) {
    /// // The app ends: write what is pending, then close.
    /// store.close().await;
    /// # }
    /// ```
    pub async fn close(&self) {
        if !self.cluster.is_closed.swap(true, Ordering::Relaxed) {
            self.cluster.identity.unregister(&self.cluster.client).await;
        }
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore")
            .field("layout", &self.cluster.layout)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for EtcdStore {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn shutdown(&self) {
        self.close().await;
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.cluster.require_open()?;
        let keys = keys.iter().map(Key::encode).collect();
        let found = self.read(keys).await?;
        Ok(found.into_iter().map(|held| held.map(|held| held.record)).collect())
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.cluster.require_open()?;
        read::scan(&self.cluster, scan).await
    }

    async fn changed_since(
        &self,
        partition: &Partition,
        kind: Kind,
        position: Option<Position>,
    ) -> Result<Changes, StoreError> {
        self.cluster.require_open()?;
        changes::changed_since(&self.cluster, partition, kind, position).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.cluster.require_open()?;
        self.holds.wait(&batch).await;
        self.commits.commit(batch).await
    }

    async fn hold(&self, log: WorkspaceId) -> Result<Option<Hold>, StoreError> {
        self.cluster.require_open()?;
        let queue = self.holds.take(log).await;
        hold::hold(&self.cluster, log, queue).await.map(Some)
    }

    async fn commit_held(&self, _: &Hold, batch: Batch) -> Result<Committed, CommitError> {
        self.cluster.require_open()?;
        commit::commit_held(&self.cluster, batch).await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.cluster.require_open()?;
        self.read(vec![Key::epoch().encode()]).await.map(drop)
    }

    fn read_only(&self) -> Option<String> {
        self.cluster.health.read_only()
    }
}

/// Waits until the cluster answers, and reads or makes the facts of the store.
async fn first_contact(client: &Client, layout: &Layout, wait: Duration) -> Result<ClusterFacts, ConnectError> {
    const PAUSE: Duration = Duration::from_millis(250);
    const ONCE: Duration = Duration::from_secs(5);
    let end = Instant::now() + wait;
    loop {
        let deadline = Instant::now() + ONCE.min(wait.max(Duration::from_secs(2)));
        match facts(client, layout, deadline).await {
            Ok(facts) => return facts,
            Err(CallFailure::Refused(Refusal::NoPermission(why))) => {
                return Err(ConnectError::Unreachable(format!(
                    "{why}: the user needs readwrite on the keys that begin with {}",
                    layout.prefix()
                )));
            }
            Err(failure @ CallFailure::Refused(_)) => return Err(unreachable(failure)),
            Err(failure) if Instant::now() >= end => {
                let members = client.survey().await;
                return Err(ConnectError::Unreachable(format!("{}; {members}", failure.into_text())));
            }
            Err(failure) => tracing::info!(?failure, "the etcd cluster does not answer yet"),
        }
        sleep(PAUSE).await;
    }
}

fn unreachable(failure: CallFailure) -> ConnectError {
    ConnectError::Unreachable(failure.into_text())
}

async fn facts(
    client: &Client,
    layout: &Layout,
    deadline: Instant,
) -> Result<Result<ClusterFacts, ConnectError>, CallFailure> {
    let range = || RequestOp::range(RangeRequest::key(layout.facts()));
    // A database without space accepts no transaction that could write, but it does accept this one.
    let read = TxnRequest {
        success: vec![range()],
        ..TxnRequest::default()
    };
    let answer = client.read(&read, deadline).await?;
    let cluster = answer.cluster().unwrap_or_default();
    let mut stored = first_of(answer);
    if stored.is_none() {
        let new = ClusterFacts {
            format: FORMAT,
            made_by: BUILD.into(),
            base: 0,
            cluster,
            is_importing: false,
            imported: None,
        };
        let text = serde_json::to_vec(&new).unwrap_or_default();
        // If another process makes the store at the same time, its facts are the same.
        let make = TxnRequest {
            compare: vec![Compare::changed_in(layout.facts(), 0)],
            success: vec![RequestOp::put(layout.facts(), text, 0)],
            failure: vec![range()],
        };
        let answer: TxnResponse = match client.repeat(path::TXN, &make, deadline).await {
            Err(CallFailure::Unknown(why)) if is_out_of_space(&why) => {
                return Ok(Err(ConnectError::Full("there is no store under the prefix yet".into())));
            }
            answered => answered?,
        };
        if answer.succeeded {
            return Ok(Ok(new));
        }
        stored = first_of(answer);
    }
    let revision = stored.as_ref().map_or(0, |stored| stored.mod_revision);
    let facts = match stored_facts(layout, &stored.unwrap_or_default().value) {
        Ok(facts) => facts,
        Err(refused) => return Ok(Err(refused)),
    };
    if facts.cluster != cluster {
        match move_in(client, layout, (&facts, revision), cluster, deadline).await {
            Err(CallFailure::Unknown(why)) if is_out_of_space(&why) => {
                let text = "the cluster is another one than before, which must be noted first";
                return Ok(Err(ConnectError::Full(text.into())));
            }
            moved => moved?,
        }
    }
    Ok(Ok(facts))
}

/// Reads the facts of a store, which are refused in another format.
fn stored_facts(layout: &Layout, text: &[u8]) -> Result<ClusterFacts, ConnectError> {
    let no_store = |_| {
        ConnectError::Unusable(format!(
            "the key {} does not describe a store",
            String::from_utf8_lossy(&layout.facts())
        ))
    };
    let made: Made = serde_json::from_slice(text).map_err(no_store)?;
    if made.format != FORMAT {
        return Err(ConnectError::OtherFormat(OtherFormat {
            found: made.format,
            build: made.made_by,
        }));
    }
    serde_json::from_slice(text).map_err(no_store)
}

/// The first record of the first read.
fn first_of(answer: TxnResponse) -> Option<KeyValue> {
    answer.ranges().next().and_then(|range| range.kvs.into_iter().next())
}

/// Notes the cluster that the store is on from now on. If it was on another one, this cluster is made from a snapshot,
/// and its revisions return. So the epoch is removed, and the service makes another one.
async fn move_in(
    client: &Client,
    layout: &Layout,
    (facts, revision): (&ClusterFacts, i64),
    cluster: u64,
    deadline: Instant,
) -> Result<(), CallFailure> {
    let moved = ClusterFacts {
        cluster,
        ..facts.clone()
    };
    let text = serde_json::to_vec(&moved).unwrap_or_default();
    let mut txn = TxnRequest {
        compare: vec![Compare::changed_in(layout.facts(), revision)],
        success: vec![RequestOp::put(layout.facts(), text, 0)],
        failure: Vec::new(),
    };
    if facts.cluster != 0 {
        tracing::warn!("the etcd cluster is another one than before: versions from before are not accepted any more");
        txn.success
            .push(RequestOp::delete(layout.record(&Key::epoch().encode())));
    }
    // If another process was faster, it has done the same.
    client
        .repeat::<_, TxnResponse>(path::TXN, &txn, deadline)
        .await
        .map(drop)
}

/// Extends the lease and looks for alarms, as long as the store exists.
async fn maintain(cluster: Weak<Cluster>) {
    const EACH: Duration = Duration::from_secs(2);
    loop {
        let Some(cluster) = cluster.upgrade().filter(|it| !it.is_closed.load(Ordering::Relaxed)) else {
            return;
        };
        let look = cluster.health.look(&cluster.client, Instant::now() + EACH);
        if let Err(failure) = look.await {
            tracing::debug!(?failure, "the etcd cluster does not show its alarms");
        }
        cluster.identity.keep_alive(&cluster.client, &cluster.layout).await;
        drop(cluster);
        sleep(EACH).await;
    }
}

/// The two ends of a range as the first key and the first one behind it.
fn bounds(range: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> (Vec<u8>, Vec<u8>) {
    // The smallest key behind another one has one byte more.
    let behind = |mut key: Vec<u8>| {
        key.push(0);
        key
    };
    let first = match range.0 {
        Bound::Included(key) => key,
        Bound::Excluded(key) => behind(key),
        Bound::Unbounded => Vec::new(),
    };
    let end = match range.1 {
        Bound::Included(key) => behind(key),
        Bound::Excluded(key) => key,
        Bound::Unbounded => vec![u8::MAX],
    };
    (first, end)
}
