//! What the database's errors mean for the caller.

use deadpool_postgres::PoolError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::super::StoreError;
use super::options::describe;

/// Why a store could not be opened on a database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL or another option makes no sense.
    #[error("{0}")]
    Options(String),
    /// The database does not answer, or does not let this user in.
    #[error("cannot reach the database: {0}")]
    Unreachable(String),
    /// A newer release made the tables. They were left as they are: run that release.
    #[error("the database has format {found}, this release reads up to {supported}")]
    TooNew {
        /// The format of the tables.
        found: u32,
        /// The newest format that this release reads.
        supported: u32,
    },
    /// The tables cannot be made or are not the store's.
    #[error("the database cannot be used: {0}")]
    Unusable(String),
}

/// What an error in the answer to a step of a commit calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A check or a bound did not hold, as of then.
    Refused,
    /// Another transaction was in the way; the same again may succeed.
    Contended,
    /// The database cannot do it now.
    Failed,
}

/// Sorts an error that ended a transaction before its commit.
pub(super) fn verdict(error: &Error) -> Verdict {
    const REFUSED: [SqlState; 2] = [SqlState::DIVISION_BY_ZERO, SqlState::CHECK_VIOLATION];
    const CONTENDED: [SqlState; 3] = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::UNIQUE_VIOLATION,
    ];
    match error.code() {
        Some(code) if REFUSED.contains(code) => Verdict::Refused,
        Some(code) if CONTENDED.contains(code) => Verdict::Contended,
        _ => Verdict::Failed,
    }
}

/// Whether the answer to a commit says for certain that nothing happened.
pub(super) fn rolled_back(error: &Error) -> bool {
    [
        Some(&SqlState::T_R_SERIALIZATION_FAILURE),
        Some(&SqlState::T_R_DEADLOCK_DETECTED),
    ]
    .contains(&error.code())
}

/// Whether the connection, and likely each other one, is of no more use: it broke, or its server no
/// longer takes writes.
pub(super) fn is_lost(error: &Error) -> bool {
    match error.code() {
        None => true,
        Some(code) => {
            *code == SqlState::READ_ONLY_SQL_TRANSACTION
                || ["08", "57"].contains(&&code.code()[..2]) && *code != SqlState::QUERY_CANCELED
        }
    }
}

/// An error after which nothing has changed.
pub(super) fn unavailable(error: &Error) -> StoreError {
    StoreError::Unavailable(describe(error))
}

/// No connection could be had.
pub(super) fn no_connection(error: PoolError) -> StoreError {
    StoreError::Unavailable(match error {
        PoolError::Backend(error) => format!("cannot connect to the database: {}", describe(&error)),
        PoolError::Timeout(_) => "no connection to the database became free in time".to_owned(),
        other => other.to_string(),
    })
}
