//! Group commit for engines behind a network: the batches that arrive while a transaction is in flight share the next one.
//!
//! A transaction costs a round trip and a sync, whether it has one batch or many. A batch that meets no other one starts at
//! once, so a lone writer pays nothing; under load the groups grow.
//!
//! Each batch belongs to the lane of the workspace that it writes. The batches of one lane are in one group at a time, because
//! they would wait for each other's rows in the engine. Lanes do not wait for each other while the engine takes more groups.

mod combine;
mod lanes;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub(in crate::store) use self::combine::{Combiner, Unanswered, Work};
pub(in crate::store) use self::lanes::Limits;
use super::{Batch, CommitError, Committed, Partition, StoreError, Write};

/// An engine that commits several batches as one transaction.
#[async_trait]
pub(super) trait GroupEngine: Send + Sync + 'static {
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
pub(super) struct GroupCommit<E: GroupEngine>(Combiner<Commits<E>>);

impl<E: GroupEngine> GroupCommit<E> {
    /// Makes the groups for an engine.
    pub(super) fn new(engine: E, limits: Limits) -> Self {
        Self(Combiner::new(Commits(engine), limits))
    }

    /// The engine.
    pub(super) fn engine(&self) -> &E {
        &self.0.work().0
    }

    /// Commits a batch in a group.
    ///
    /// A caller that drops the future leaves the batch either unsent or committed as any other.
    ///
    /// # Errors
    ///
    /// Those of the engine; [`StoreError::Unavailable`] when too many batches wait, and [`StoreError::OutcomeUnknown`] when
    /// the group ended without a verdict.
    pub(super) async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
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

/// The lane of a batch: the workspace whose log it appends to, else the partition of its first write; `None` without a write.
///
/// The choice decides only which batches wait for each other. The engine keeps them apart where they touch the same records.
pub(super) fn lane(batch: &Batch) -> Option<Partition> {
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
