//! The queue of the writer.

use std::fmt;

use tokio::sync::oneshot;

use super::super::{Batch, CommitError, Committed};
use super::compacted::{CompactError, Compacted};

/// The result of one batch.
pub(super) type Verdict = Result<Committed, CommitError>;

/// Work for the writer.
#[derive(Debug)]
pub(super) enum Task {
    /// A batch, and the channel for its result.
    Commit(Batch, oneshot::Sender<Verdict>),
    /// A read found that the engine of this generation of the database has failed.
    ReadFailed(u64),
    /// Compact the file.
    Compact(Compaction),
}

/// A compaction that the writer is to carry out.
pub(super) struct Compaction {
    pub(super) report: Box<dyn FnMut(u64) + Send>,
    pub(super) answer: oneshot::Sender<Result<Compacted, CompactError>>,
}

impl fmt::Debug for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compaction")
    }
}
