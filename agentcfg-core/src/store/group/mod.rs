//! Group commit for engines behind a network: the batches that arrive while a transaction is in flight share the next
//! one.
//!
//! A transaction costs a round trip and a sync, whether it has one batch or many. A batch that meets no other one
//! starts at once, so a lone writer pays nothing; under load the groups grow.
//!
//! Each batch belongs to the lane of the workspace that it writes. The batches of one lane are in one group at a time,
//! because they would wait for each other's rows in the engine. Lanes do not wait for each other while the engine takes
//! more groups.
//!
//! An engine implements [`GroupEngine`], and its [`Store::commit`](super::Store::commit) calls [`GroupCommit::commit`].
//! A [`Combiner`] does the same for anything else that can share a round trip, such as reads.
//!
//! ```
//! use std::time::Duration;
//! use agentcfg_core::store::group::{GroupCommit, GroupEngine, Limits};
//! use agentcfg_core::store::{Batch, CommitError, Committed, Key, Kind, MemoryStore, Store, Write};
//!
//! /// A real engine would send one transaction for all batches.
//! struct Database(MemoryStore);
//!
//! #[async_trait::async_trait]
//! impl GroupEngine for Database {
//!     async fn commit_group(&self, batches: Vec<Batch>) -> Vec<Result<Committed, CommitError>> {
//!         let mut verdicts = Vec::new();
//!         for batch in batches {
//!             verdicts.push(self.0.commit(batch).await);
//!         }
//!         verdicts
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limits = Limits {
//!     group: 64,
//!     bytes: 1 << 20,
//!     lane: 1000,
//!     queue: 10_000,
//!     flights: 2,
//!     slow: Duration::from_millis(20),
//!     most: 4,
//!     queue_timeout: Duration::from_secs(5),
//! };
//! let commits = GroupCommit::new(Database(MemoryStore::new()), limits);
//! let name = Key::global("store", Kind::Meta, "name");
//! let batch = Batch { writes: vec![Write::Put(name, b"\"north\"".to_vec())], ..Batch::default() };
//! assert_eq!(commits.commit(batch).await?.numbers.len(), 1);
//! # Ok(())
//! # }
//! ```

mod combine;
mod lanes;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use self::combine::{Combiner, Unanswered, Work};
pub use self::lanes::Limits;
use super::{Batch, CommitError, Committed, Partition, StoreError, Write};

/// An engine that commits several batches as one transaction; the [module's text](self) has an example.
#[async_trait]
pub trait GroupEngine: Send + Sync + 'static {
    /// As [`Work::is_near`].
    fn is_near(&self) -> bool {
        false
    }

    /// As [`Work::pause`].
    fn pause(&self, _size: usize, _took: Duration) -> Duration {
        Duration::ZERO
    }

    /// Applies the batches in order, each on the state that the accepted ones before it leave. Returns one verdict for
    /// each batch, in their order.
    ///
    /// A batch whose check fails, or whose counter would leave its bounds, is left out; the others commit. If the
    /// outcome of the transaction is unknown, it is unknown for each batch of it; only refusals that depended on
    /// committed state alone stay. The future of a group is never dropped before its end, unless its runtime is.
    async fn commit_group(&self, batches: Vec<Batch>) -> Vec<Result<Committed, CommitError>>;
}

#[async_trait]
impl<E: GroupEngine> GroupEngine for Arc<E> {
    fn is_near(&self) -> bool {
        (**self).is_near()
    }

    fn pause(&self, size: usize, took: Duration) -> Duration {
        (**self).pause(size, took)
    }

    async fn commit_group(&self, batches: Vec<Batch>) -> Vec<Result<Committed, CommitError>> {
        (**self).commit_group(batches).await
    }
}

/// Commits batches in groups; see the [module's text](self).
pub struct GroupCommit<E: GroupEngine>(Combiner<Commits<E>>);

impl<E: GroupEngine> fmt::Debug for GroupCommit<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}

impl<E: GroupEngine> GroupCommit<E> {
    /// Groups for an engine.
    pub fn new(engine: E, limits: Limits) -> Self {
        Self(Combiner::new(Commits(engine), limits))
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.0.work().0
    }

    /// Commits a batch in a group.
    ///
    /// A caller that drops the future leaves the batch either unsent or committed as any other.
    ///
    /// # Errors
    ///
    /// Errors of the engine; [`StoreError::Unavailable`] when too many batches wait, and [`StoreError::OutcomeUnknown`]
    /// when the group ended without a verdict.
    pub async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let Some(lane) = lane(&batch) else {
            // Without a write there is nothing to wait for and nothing to lose when the future is dropped.
            let verdict = self.engine().commit_group(vec![batch]).await.pop();
            return verdict.unwrap_or_else(|| Err(lost().into()));
        };
        match self.0.submit(lane, batch.bytes(), batch).await {
            Ok(verdict) => verdict,
            Err(Unanswered::NotRun(why)) => Err(StoreError::Unavailable(why.into()).into()),
            Err(Unanswered::Lost) => Err(lost().into()),
        }
    }
}

/// The lane of a batch: the workspace whose log it appends to, else the partition of its first write; `None` without a
/// write.
///
/// The choice decides only which batches wait for each other. The engine keeps them apart where they touch the same
/// records.
///
/// ```
/// use agentcfg_core::store::group::lane;
/// use agentcfg_core::store::{Batch, Partition, Write};
/// let log = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let batch = Batch { writes: vec![Write::Append { log, value: b"{}".to_vec() }], ..Batch::default() };
/// assert_eq!(lane(&batch), Some(Partition::Workspace(log)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lane(batch: &Batch) -> Option<Partition> {
    let log = batch.writes.iter().find_map(|write| match write {
        Write::Append { log, .. } => Some(Partition::Workspace(*log)),
        _ => None,
    });
    log.or_else(|| Some(batch.writes.first()?.key().partition().clone()))
}

fn lost() -> StoreError {
    StoreError::OutcomeUnknown("the group of the batch ended without a verdict".into())
}

/// The work of a [`GroupCommit`].
struct Commits<E>(E);

impl<E: GroupEngine> Work for Commits<E> {
    type Lane = Partition;
    type Request = Batch;
    type Answer = Result<Committed, CommitError>;

    fn is_near(&self) -> bool {
        self.0.is_near()
    }

    fn pause(&self, size: usize, took: Duration) -> Duration {
        self.0.pause(size, took)
    }

    async fn run(&self, group: Vec<Batch>) -> Vec<Self::Answer> {
        self.0.commit_group(group).await
    }
}
