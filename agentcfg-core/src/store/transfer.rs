//! The results of the export and the import of a store in a database.

use std::io;

use super::stream::{Digest, StreamFault};
use super::{OtherFormat, StoreError};

/// The totals of an export or an import.
///
/// ```no_run
/// # use agentcfg_core::store::{TransferError, Transferred};
/// # fn example(export: impl FnOnce(std::io::Sink) -> Result<Transferred, TransferError>) -> Result<(), TransferError> {
/// let exported = export(std::io::sink())?;
/// println!("{} records, digest {}", exported.records, exported.digest);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transferred {
    /// The number of records.
    pub records: u64,
    /// The greatest version that the store has assigned.
    pub sequence: u64,
    /// The digest of the content: equal stores have equal digests.
    pub digest: Digest,
}

/// Why an export or an import failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The database has records already. They were not changed.
    #[error("the database already holds {0} records")]
    NotEmpty(u64),
    /// Other processes use the database.
    #[error(
        "{0} connections of agentcfg servers are open on the database; stop the servers first (on etcd one that was killed counts for half a minute more)"
    )]
    InUse(i64),
    /// The stream has another format.
    #[error("the stream was {0}")]
    OtherFormat(OtherFormat),
    /// The stream is truncated or was modified.
    #[error("the stream is damaged: {0}")]
    Damaged(String),
    /// The imported records do not read back as they were in the stream. No server uses them: a database was rolled
    /// back, and an etcd prefix stays marked as incomplete until an import into it succeeds.
    #[error("the imported records do not read back as they were in the stream")]
    VerificationFailed,
    /// The stream could not be read or written.
    #[error("the stream cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// The store failed. What was imported until then is not used, as after [`Self::VerificationFailed`].
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<StreamFault> for TransferError {
    fn from(fault: StreamFault) -> Self {
        match fault {
            StreamFault::Io(error) => Self::Io(error),
            StreamFault::Other(other) => Self::OtherFormat(other),
            StreamFault::Damaged(text) => Self::Damaged(text),
        }
    }
}
