//! Classification of etcd's errors: what a failed call proves.

use agentcfg_core::error::causes;
use agentcfg_core::store::{OtherFormat, StoreError};
use tonic::{Code, ConnectError as NoConnection, Status};

/// Why a store could not be opened on a cluster.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_etcd::{ConnectError, EtcdOptions, EtcdStore};
/// let refused = EtcdStore::connect(&EtcdOptions::new("ftp://node-1")).await;
/// assert!(matches!(refused, Err(ConnectError::Options(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An address or another option is invalid.
    #[error("{0}")]
    Options(String),
    /// No member of the cluster answers, or the cluster rejects this user.
    #[error("cannot reach the etcd cluster: {0}")]
    Unreachable(String),
    /// The cluster refuses transactions or requests of the size that the store needs.
    #[error("the etcd cluster has a limit that is too low: {0}")]
    TooSmall(String),
    /// The database of the cluster is full, and opening the store takes a change.
    #[error("the database of the etcd cluster is full: {0}")]
    Full(String),
    /// The records have another format. They were not changed: run the build that made them.
    #[error("the records in the etcd cluster were {0}")]
    OtherFormat(OtherFormat),
    /// What is stored under the prefix is not a store.
    #[error("the etcd cluster cannot be used: {0}")]
    Unusable(String),
}

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallFailure {
    /// The member did not execute the call. Another member may.
    NotExecuted(String),
    /// The cluster refused the call without executing it.
    Refused(Refusal),
    /// The call may have been executed.
    Unknown(String),
}

/// A refusal, which proves that nothing changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The revision to read is compacted.
    Compacted,
    /// The lease of a put does not exist.
    NoLease,
    /// The token of the user is unknown or has expired.
    TokenExpired,
    /// The request or the transaction is larger than the cluster allows.
    TooLarge(String),
    /// The user has no right to the keys.
    NoPermission(String),
    /// The member belongs to another cluster than the one that the store was opened on.
    OtherCluster,
    /// Any other.
    Other(String),
}

impl CallFailure {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::NotExecuted(why) | Self::Unknown(why) => why,
            Self::Refused(refusal) => refusal.into_text(),
        }
    }

    /// The error of a read. A read changes nothing, so that it can always be repeated.
    pub(super) fn of_read(self) -> StoreError {
        match self {
            Self::NotExecuted(why) | Self::Unknown(why) => StoreError::Unavailable(why),
            Self::Refused(refusal) => refusal.into_error(),
        }
    }
}

impl Refusal {
    pub(super) fn into_error(self) -> StoreError {
        StoreError::Unavailable(self.into_text())
    }

    pub(super) fn into_text(self) -> String {
        match self {
            Self::Compacted => "the cluster compacts faster than the store can read".to_owned(),
            Self::NoLease => "the lease of this process has expired".to_owned(),
            Self::TokenExpired => "the cluster does not accept the token of this user".to_owned(),
            Self::OtherCluster => {
                "the etcd cluster is another one than at the start, such as one restored from a snapshot: restart this process"
                    .to_owned()
            }
            Self::TooLarge(why) | Self::NoPermission(why) | Self::Other(why) => why,
        }
    }
}

/// Whether this text says that the database of the cluster is full.
pub(super) fn is_out_of_space(text: &str) -> bool {
    text.contains("database space exceeded") || text.contains("NOSPACE")
}

/// Whether this text says that the member knows no leader.
pub(super) fn has_no_leader(text: &str) -> bool {
    text.contains("etcdserver: no leader")
}

/// Classifies the status of a call. Everything that is not known to prove that nothing happened is unknown.
pub(super) fn classify(status: &Status) -> CallFailure {
    let text = describe(status);
    if has_no_connection(status) || has_no_leader(&text) {
        return CallFailure::NotExecuted(text);
    }
    match status.code() {
        Code::OutOfRange if text.contains("compacted") => CallFailure::Refused(Refusal::Compacted),
        Code::NotFound if text.contains("lease not found") => CallFailure::Refused(Refusal::NoLease),
        Code::Unauthenticated => CallFailure::Refused(Refusal::TokenExpired),
        // The revision of the permissions has moved on: a new token has the current one.
        Code::InvalidArgument if text.contains("revision of auth store is old") => {
            CallFailure::Refused(Refusal::TokenExpired)
        }
        Code::InvalidArgument if text.contains("too many operations") || text.contains("too large") => {
            CallFailure::Refused(Refusal::TooLarge(text))
        }
        Code::ResourceExhausted if text.contains("larger than max") => CallFailure::Refused(Refusal::TooLarge(text)),
        Code::ResourceExhausted if text.contains("too many requests") => CallFailure::NotExecuted(text),
        // A put that fills the database up is executed, and answered with this error all the same.
        Code::ResourceExhausted if is_out_of_space(&text) => CallFailure::Unknown(text),
        Code::PermissionDenied => CallFailure::Refused(Refusal::NoPermission(text)),
        Code::InvalidArgument | Code::Unimplemented | Code::FailedPrecondition => {
            CallFailure::Refused(Refusal::Other(text))
        }
        _ => CallFailure::Unknown(text),
    }
}

/// Whether the call failed because there was no connection that it could be sent on.
fn has_no_connection(status: &Status) -> bool {
    causes(status).any(|cause| cause.is::<NoConnection>())
}

/// The message of a status with its causes.
fn describe(status: &Status) -> String {
    let mut text = status.message().to_owned();
    for cause in causes(status).skip(1) {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_refusal_proves_that_nothing_happened() {
        let of = |code, text: &str| classify(&Status::new(code, text));
        for (code, text) in [
            (Code::Unavailable, "etcdserver: request timed out"),
            (Code::Unavailable, "etcdserver: leader changed"),
            (Code::Unknown, "h2 protocol error"),
            (Code::DeadlineExceeded, "context deadline exceeded"),
            (Code::Internal, "stream closed"),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
        ] {
            assert!(matches!(of(code, text), CallFailure::Unknown(_)), "{text}");
        }
        assert!(matches!(
            of(Code::Unavailable, "etcdserver: no leader"),
            CallFailure::NotExecuted(_)
        ));
        assert!(matches!(
            of(Code::InvalidArgument, "etcdserver: too many operations in txn request"),
            CallFailure::Refused(Refusal::TooLarge(_))
        ));
        assert_eq!(
            of(
                Code::OutOfRange,
                "etcdserver: mvcc: required revision has been compacted"
            ),
            CallFailure::Refused(Refusal::Compacted)
        );
        assert_eq!(
            of(Code::Unauthenticated, "etcdserver: invalid auth token"),
            CallFailure::Refused(Refusal::TokenExpired)
        );
    }
}
