//! Typed commits: checks and writes by their records, and an outcome with names.

use serde::Serialize;

use super::codec::encode;
use super::entity::{Entity, EntityKey, NumberKey};
use crate::error::{Error, ErrorKind};
use crate::model::WorkspaceId;
use crate::service::AgentCfg;
use crate::service::access::Access;
use crate::store::{Batch, Check, CommitError, Write};

/// Checks and writes that happen together or not at all.
#[derive(Default)]
pub(in crate::service) struct Transaction {
    batch: Batch,
    /// Whether the first check is the guard of an access, and the meaning of its failure.
    guard: Option<Guard>,
    /// The index of the write that puts the subject, whose version the caller needs.
    subject: Option<usize>,
    /// The index of the write that appends to the log.
    entry: Option<usize>,
}

/// The basis of the decision for a transaction.
#[derive(Clone, Copy)]
enum Guard {
    /// An API key. Its record changes only by its revocation, so there is nothing to decide again.
    Credential,
    /// A membership or another record. The decision can be made again on its new state.
    State,
}

/// The outcome of a commit that did not fail.
pub(in crate::service) enum Outcome {
    /// Everything was committed.
    Done(Done),
    /// A check did not hold: the state has changed since it was read. Nothing was written.
    Raced,
    /// A counter would have left its bounds. Nothing was written.
    Limit,
}

/// The result of a commit.
pub(in crate::service) struct Done {
    /// The version of the record that [`Transaction::put_subject`] put; 0, which no record has, when there was none.
    pub(in crate::service) version: u64,
    /// The number of the entry that [`Transaction::append`] appended; 0, which no entry has, when there was none.
    pub(in crate::service) revision: u64,
}

impl Transaction {
    /// A transaction that is committed only if the basis of this access has not changed.
    pub(in crate::service) fn guarded_by(access: &Access) -> Self {
        let guard = if access.by_key() {
            Guard::Credential
        } else {
            Guard::State
        };
        Self {
            guard: Some(guard),
            ..Self::default().check(access.guard())
        }
    }

    /// Adds a condition.
    #[must_use]
    pub(in crate::service) fn check(mut self, check: Check) -> Self {
        self.batch.checks.push(check);
        self
    }

    /// Puts a record.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when the value cannot be encoded.
    pub(in crate::service) fn put<T: Entity + Serialize>(self, key: EntityKey<T>, value: &T) -> Result<Self, Error> {
        let value = encode(value)?;
        Ok(self.write(Write::Put(key.into(), value)))
    }

    /// Puts the subject, the record whose version the caller needs. Its value is encoded already.
    #[must_use]
    pub(in crate::service) fn put_subject<T: Entity>(mut self, key: EntityKey<T>, value: Vec<u8>) -> Self {
        self.subject = Some(self.batch.writes.len());
        self.write(Write::Put(key.into(), value))
    }

    /// Removes a record, if there is one.
    #[must_use]
    pub(in crate::service) fn delete<T: Entity>(self, key: EntityKey<T>) -> Self {
        self.write(Write::Delete(key.into()))
    }

    /// Adds to a counter, within `max` when `delta` is positive, and never below zero.
    #[must_use]
    pub(in crate::service) fn add(self, counter: NumberKey, delta: i64, max: Option<u64>) -> Self {
        let counter = counter.into();
        self.write(Write::Add { counter, delta, max })
    }

    /// Appends an entry to a workspace's log. Its value is encoded already.
    #[must_use]
    pub(in crate::service) fn append(mut self, log: WorkspaceId, value: Vec<u8>) -> Self {
        self.entry = Some(self.batch.writes.len());
        self.write(Write::Append { log, value })
    }

    /// Whether there is nothing to write.
    pub(in crate::service) fn is_empty(&self) -> bool {
        self.batch.writes.is_empty()
    }

    fn write(mut self, write: Write) -> Self {
        self.batch.writes.push(write);
        self
    }
}

impl AgentCfg {
    /// Commits a transaction.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`] when the API key that the decision rests on was revoked meanwhile; else when storage
    /// fails.
    pub(in crate::service) async fn commit(&self, transaction: Transaction) -> Result<Outcome, Error> {
        let Transaction {
            batch,
            guard,
            subject,
            entry,
        } = transaction;
        let numbers = match self.store().commit(batch).await {
            Ok(committed) => committed.numbers,
            Err(CommitError::Conflict(0)) if matches!(guard, Some(Guard::Credential)) => {
                return Err(Error::new(ErrorKind::Unauthorized, "invalid credentials"));
            }
            Err(CommitError::Conflict(_)) => return Ok(Outcome::Raced),
            Err(CommitError::Limit(_)) => return Ok(Outcome::Limit),
            Err(CommitError::Store(error)) => return Err(error.into()),
        };
        let number = |write: Option<usize>| write.and_then(|write| numbers.get(write)).copied();
        Ok(Outcome::Done(Done {
            version: number(subject).unwrap_or_default(),
            revision: number(entry).unwrap_or_default(),
        }))
    }
}
