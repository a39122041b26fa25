//! The failures of stores, and their conversion into errors of the service.

use crate::error::{Error, ErrorKind};

/// The failure of a store. The text is for logs, never for clients.
///
/// ```
/// use agentcfg_core::store::StoreError;
/// use agentcfg_core::{Error, ErrorKind};
/// let error = Error::from(StoreError::Unavailable("the disk is full".into()));
/// assert_eq!(error.kind(), ErrorKind::Unavailable);
/// assert_eq!(error.message(), "storage is unavailable, try again");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The engine cannot be reached, or refuses work because its queue is full (back-pressure). Nothing changed; try
    /// later.
    #[error("storage is unavailable: {0}")]
    Unavailable(String),
    /// The commit may have taken effect: read before trying again.
    #[error("the outcome of the commit is unknown: {0}")]
    OutcomeUnknown(String),
    /// Stored data is damaged: its checksum or form is wrong.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// The engine cannot hold the change in one commit, now or later. Nothing changed.
    #[error("the change is too large: {0}")]
    TooLarge(String),
    /// The call breaks a rule of the contract for callers. Nothing changed.
    #[error("the store was used against its contract: {0}")]
    Misuse(String),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (kind, message) = match &error {
            StoreError::TooLarge(_) => (
                ErrorKind::TooLarge,
                "the change is too large to store at once: make it in parts",
            ),
            StoreError::Unavailable(_) => (ErrorKind::Unavailable, "storage is unavailable, try again"),
            StoreError::OutcomeUnknown(_) => (
                ErrorKind::OutcomeUnknown,
                "storage failed while saving and the change may have been made: read before trying again",
            ),
            StoreError::Corrupt(_) => (ErrorKind::Internal, "stored data could not be read"),
            StoreError::Misuse(_) => (ErrorKind::Internal, "a rule of the storage was broken"),
        };
        Self::new(kind, message).because(error)
    }
}
