//! Mutations: one commit each, with the audit entry inside.

use serde::Serialize;
use uuid::Uuid;

use super::access::Access;
use super::written::Written;
use super::{AgentCfg, diff, schema};
use crate::error::{Error, ErrorKind};
use crate::model::{Action, Actor, Target, TargetType, Timestamp, WorkspaceId};
use crate::store::{Batch, Check, CommitError, Key, StoreError, Write};

/// How often a decision is made anew because another writer was faster. Every round lets at least
/// one writer through, so this bounds how many can stand before one.
const MAX_ROUNDS: usize = 2000;

/// A mutation in the making.
pub(super) struct Change<'a> {
    access: &'a Access,
    at: Timestamp,
    action: Action,
    target: Target,
    /// Which fields changed, as the audit entry tells it.
    changes: Vec<u8>,
    batch: Batch,
}

/// An [`AuditEntry`](crate::model::AuditEntry) without its changes.
#[derive(Serialize)]
struct EntryHead {
    id: Uuid,
    workspace_id: WorkspaceId,
    actor: Actor,
    action: Action,
    target: Target,
    created_at: Timestamp,
}

/// How an attempt at a mutation ended.
pub(super) enum Attempt<T> {
    /// It is done.
    Done(T),
    /// The state changed under it: decide anew.
    Raced,
}

/// What a commit gave.
pub(super) enum Applied {
    /// The numbers of the writes, in their order.
    Done(Vec<u64>),
    /// The state changed under it.
    Raced,
    /// A bounded counter would have left its bounds.
    Limit,
}

impl<'a> Change<'a> {
    pub(super) fn new(
        access: &'a Access,
        at: Timestamp,
        action: Action,
        kind: TargetType,
        id: impl Into<String>,
    ) -> Self {
        let target = Target { kind, id: id.into() };
        let batch = Batch {
            checks: vec![access.guard()],
            writes: Vec::new(),
        };
        Self {
            access,
            at,
            action,
            target,
            changes: b"{}".to_vec(),
            batch,
        }
    }

    pub(super) fn check(mut self, check: Check) -> Self {
        self.batch.checks.push(check);
        self
    }

    pub(super) fn write(mut self, write: Write) -> Self {
        self.batch.writes.push(write);
        self
    }

    pub(super) fn put<T: Serialize>(self, key: Key, value: &T) -> Result<Self, Error> {
        let value = schema::encode(value)?;
        Ok(self.write(Write::Put(key, value)))
    }

    /// Puts a record in place of one that was found, or of none, and tells the audit log in which fields they differ.
    pub(super) fn replace<T: Serialize>(mut self, key: Key, from: Option<&T>, to: &T) -> Result<Self, Error> {
        let (from, to) = (from.map(Written::of).transpose()?, Written::of(to)?);
        self.changes = diff::changes(from.as_ref(), Some(&to))?;
        Ok(self.write(Write::Put(key, to.into_text())))
    }

    /// Tells the audit log in which fields two states differ.
    pub(super) fn tell<T: Serialize>(mut self, from: Option<&T>, to: Option<&T>) -> Result<Self, Error> {
        let (from, to) = (from.map(Written::of).transpose()?, to.map(Written::of).transpose()?);
        self.changes = diff::changes(from.as_ref(), to.as_ref())?;
        Ok(self)
    }
}

/// An audit entry as it is stored.
fn entry(head: &EntryHead, changes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut text = Vec::with_capacity(512 + changes.len());
    serde_json::to_writer(&mut text, head).map_err(schema::not_written)?;
    // The changes are JSON already, and become its last field.
    text.pop();
    for part in [b",\"changes\":", changes, b"}"] {
        text.extend_from_slice(part);
    }
    Ok(text)
}

impl AgentCfg {
    /// Commits a mutation together with its audit entry.
    pub(super) async fn apply(&self, change: Change<'_>) -> Result<Applied, Error> {
        let Change {
            access,
            at,
            action,
            target,
            changes,
            mut batch,
        } = change;
        let workspace_id = access.workspace();
        let head = EntryHead {
            id: self.new_id(at)?,
            workspace_id,
            actor: access.actor(),
            action,
            target,
            created_at: at,
        };
        batch.writes.push(Write::Append {
            log: workspace_id,
            value: entry(&head, &changes)?,
        });
        match self.store().commit(batch).await {
            Ok(committed) => Ok(Applied::Done(committed.numbers)),
            Err(CommitError::Limit(_)) => Ok(Applied::Limit),
            Err(error) => lost(access, error).map(|Raced| Applied::Raced),
        }
    }

    /// Makes attempts until one is done or fails for a reason of its own.
    pub(super) async fn settle<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Attempt<T>, Error>>,
    {
        let mut rounds = Rounds::default();
        loop {
            if let Attempt::Done(value) = attempt().await? {
                return Ok(value);
            }
            rounds.lost().await?;
        }
    }
}

/// The rounds that a mutation has lost against other writers.
#[derive(Default)]
pub(super) struct Rounds(usize);

impl Rounds {
    /// Whether none was lost yet.
    pub(super) fn is_first(&self) -> bool {
        self.0 == 0
    }

    /// Counts a round that was lost, and lets others go on. Too many are an error.
    pub(super) async fn lost(&mut self) -> Result<(), Error> {
        self.0 += 1;
        if self.0 >= MAX_ROUNDS {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "too many writers want this record, try again",
            ));
        }
        tokio::task::yield_now().await;
        Ok(())
    }
}

/// A batch whose first check is the guard lost a race.
pub(super) struct Raced;

/// What the failure of such a batch means: a lost race, or an error.
pub(super) fn lost(access: &Access, error: CommitError) -> Result<Raced, Error> {
    match error {
        // An API key's record changes only by its revocation, so there is nothing to decide anew.
        CommitError::Conflict(0) if access.by_key() => Err(Error::new(ErrorKind::Unauthorized, "invalid credentials")),
        CommitError::Conflict(_) => Ok(Raced),
        error => Err(failed(error)),
    }
}

/// The error of a commit that has no checks to fail.
pub(super) fn failed(error: CommitError) -> Error {
    match error {
        CommitError::Store(error) => error.into(),
        other => StoreError::Unavailable(other.to_string()).into(),
    }
}
