//! The queue of the writer.

use tokio::sync::oneshot;

use super::super::{Batch, CommitError, Committed};

/// The result of one batch.
pub(super) type Verdict = Result<Committed, CommitError>;

/// Work for the writer.
#[derive(Debug)]
pub(super) enum Task {
    /// A batch, and the channel for its result.
    Commit(Batch, oneshot::Sender<Verdict>),
    /// A read found that the engine of this generation of the database has failed.
    ReadFailed(u64),
}
