//! Classification of the database's errors.

use agentcfg_core::store::{OtherFormat, StoreError};
use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What is said of an operation whose time is over.
pub(super) const NO_ANSWER: &str = "the database did not answer in time";

/// Why a store could not be opened on a database.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_postgres::{ConnectError, PostgresOptions, PostgresStore};
/// let refused = PostgresStore::connect(&PostgresOptions::new("mysql://db/agentcfg")).await;
/// assert!(matches!(refused, Err(ConnectError::Options(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL or another option is invalid.
    #[error("{0}")]
    Options(String),
    /// The database does not answer, or rejects this user.
    #[error("cannot reach the database: {0}")]
    Unreachable(String),
    /// The tables have another format. They were not changed: run the build that made them.
    #[error("the tables of the database were {0}")]
    OtherFormat(OtherFormat),
    /// The tables cannot be created, or are not those of a store.
    #[error("the database cannot be used: {0}")]
    Unusable(String),
}

/// The consequence of an error that a step of a commit returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorVerdict {
    /// A check or a bound did not hold at that time.
    Refused,
    /// The transaction lost against a concurrent one; a retry may succeed.
    Contended,
    /// A key that was taken for new has a row.
    Duplicate,
    /// The database does not take a value of the statement.
    BadValue,
    /// The database cannot run the statement now.
    Failed,
}

/// Classifies an error that aborted a transaction before its commit.
pub(super) fn verdict(error: &Error) -> ErrorVerdict {
    const REFUSED: [SqlState; 2] = [SqlState::DIVISION_BY_ZERO, SqlState::CHECK_VIOLATION];
    const CONTENDED: [SqlState; 2] = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    match error.code() {
        Some(code) if REFUSED.contains(code) => ErrorVerdict::Refused,
        Some(code) if CONTENDED.contains(code) => ErrorVerdict::Contended,
        Some(code) if *code == SqlState::UNIQUE_VIOLATION => ErrorVerdict::Duplicate,
        // The class of data exceptions, and that of broken constraints.
        Some(code) if ["22", "23"].contains(&&code.code()[..2]) => ErrorVerdict::BadValue,
        _ => ErrorVerdict::Failed,
    }
}

/// Whether this answer to a `COMMIT` proves that the transaction was rolled back.
pub(super) fn rolled_back(error: &Error) -> bool {
    [
        Some(&SqlState::T_R_SERIALIZATION_FAILURE),
        Some(&SqlState::T_R_DEADLOCK_DETECTED),
    ]
    .contains(&error.code())
}

/// Whether the connection, and probably every pooled one, is unusable: it broke, or its server no
/// longer accepts writes.
pub(super) fn is_lost(error: &Error) -> bool {
    match error.code() {
        None => true,
        Some(code) => {
            *code == SqlState::READ_ONLY_SQL_TRANSACTION
                || ["08", "57"].contains(&&code.code()[..2]) && *code != SqlState::QUERY_CANCELED
        }
    }
}

/// Converts an error after which nothing has changed.
pub(super) fn unavailable(error: &Error) -> StoreError {
    StoreError::Unavailable(describe(error))
}

/// As [`unavailable`], for `map_err`.
pub(super) fn failed(error: Error) -> StoreError {
    unavailable(&error)
}

/// Converts an error of the pool: there was no connection, so nothing has changed.
pub(super) fn no_connection(error: PoolError) -> StoreError {
    StoreError::Unavailable(why_no_connection(&error))
}

/// Why the pool has no connection.
pub(super) fn why_no_connection(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => format!("cannot connect to the database: {}", describe(error)),
        PoolError::Timeout(TimeoutType::Wait) => "no connection to the database became free in time".to_owned(),
        PoolError::Timeout(_) => NO_ANSWER.to_owned(),
        other => other.to_string(),
    }
}

/// Formats a driver error with its cause; neither contains the password.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    let text = match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    // The session is another one than that which prepared the statement.
    let of_other_session = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];
    match error.code().is_some_and(|code| of_other_session.contains(code)) {
        true => format!("{text} (behind a pooler in transaction mode set database_statements to unnamed)"),
        false => text,
    }
}
