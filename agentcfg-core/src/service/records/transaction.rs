//! Typed commits: checks and writes by their records, and an outcome with names.

use std::sync::Arc;

use serde::Serialize;

use super::codec::encode;
use super::entity::{Entity, EntityKey, NumberKey};
use crate::error::Error;
use crate::model::WorkspaceId;
use crate::service::AgentCfg;
use crate::store::{Batch, Check, CommitError, Hold, Write};

/// Checks and writes that happen together or not at all.
#[derive(Default)]
pub(in crate::service) struct Transaction {
    batch: Batch,
    /// The index of the write that puts the subject, whose version the caller needs.
    subject: Option<usize>,
    /// The index of the write that appends to the log.
    entry: Option<usize>,
}

/// The turn of an attempt: with a hold, the others who append to the workspace's log wait for its commit.
#[derive(Debug, Clone, Default)]
pub(in crate::service) struct Turn(Option<Arc<Hold>>);

impl Turn {
    /// The turn of the attempts under a hold, where the store has given one.
    pub(in crate::service) fn of(hold: Option<Hold>) -> Self {
        Self(hold.map(Arc::new))
    }

    pub(in crate::service) fn hold(&self) -> Option<&Hold> {
        self.0.as_deref()
    }
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

/// The numbers that a commit has given.
pub(in crate::service) struct Done {
    /// The version of the record that [`Transaction::put_subject`] put; 0, which no record has, when there was none.
    pub(in crate::service) version: u64,
    /// The number of the entry that [`Transaction::append`] appended; 0, which no entry has, when there was none.
    pub(in crate::service) revision: u64,
}

impl Transaction {
    /// Adds a condition.
    #[must_use]
    pub(in crate::service) fn check(mut self, check: Check) -> Self {
        self.batch.checks.push(check);
        self
    }

    /// Adds conditions.
    #[must_use]
    pub(in crate::service) fn check_all(mut self, checks: impl IntoIterator<Item = Check>) -> Self {
        self.batch.checks.extend(checks);
        self
    }

    /// Puts a record.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when the value cannot be encoded.
    pub(in crate::service) fn put<T: Entity + Serialize>(self, key: EntityKey<T>, value: &T) -> Result<Self, Error> {
        let value = encode(value)?;
        Ok(self.write(Write::Put(key.into(), value)))
    }

    /// Puts the subject, whose new version [`Done`] returns. Its value is encoded already.
    #[must_use]
    pub(in crate::service) fn put_subject<T: Entity>(mut self, key: EntityKey<T>, value: Vec<u8>) -> Self {
        self.subject = Some(self.batch.writes.len());
        self.write(Write::Put(key.into(), value))
    }

    /// Puts a record with the revision of this transaction as its first field. Its value is encoded already.
    #[must_use]
    pub(in crate::service) fn put_revised<T: Entity>(self, key: EntityKey<T>, value: Vec<u8>) -> Self {
        self.write(Write::PutRevised(key.into(), value))
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

    /// Whether nothing would be written.
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
    /// When storage fails.
    pub(in crate::service) async fn commit(&self, transaction: Transaction) -> Result<Outcome, Error> {
        self.commit_in_turn(transaction, &Turn::default()).await
    }

    /// As [`Self::commit`], before those who wait for this turn.
    ///
    /// # Errors
    ///
    /// As [`Self::commit`].
    pub(in crate::service) async fn commit_in_turn(
        &self,
        transaction: Transaction,
        turn: &Turn,
    ) -> Result<Outcome, Error> {
        let Transaction { batch, subject, entry } = transaction;
        // A store that notifies wakes the readers of the feed by itself.
        let touched = self.is_watched().then(|| batch.touched());
        let appended = self.inner.new_events.of(&batch);
        let committed = match turn.hold() {
            Some(hold) => self.store().commit_held(hold, batch).await,
            None => self.store().commit(batch).await,
        };
        let numbers = match committed {
            Ok(committed) => committed.numbers,
            Err(CommitError::Conflict(_)) => return Ok(Outcome::Raced),
            Err(CommitError::Limit(_)) => return Ok(Outcome::Limit),
            Err(CommitError::Store(error)) => return Err(error.into()),
        };
        if let Some(touched) = touched {
            self.notify(touched);
        }
        if let Some(appended) = appended {
            self.inner.new_events.note(appended);
        }
        let number = |write: Option<usize>| write.and_then(|write| numbers.get(write)).copied();
        Ok(Outcome::Done(Done {
            version: number(subject).unwrap_or_default(),
            revision: number(entry).unwrap_or_default(),
        }))
    }
}
