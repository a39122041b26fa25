//! Mutations: one commit each, with the audit entry inside.

use std::future::Future;

use serde::Serialize;
use serde_json::{Map, Value};

use super::AgentCfg;
use super::access::Access;
use super::schema;
use crate::error::{Error, ErrorKind};
use crate::model::{Action, AuditEntry, Change as FieldChange, Changes, Target, TargetType, Timestamp};
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
    changes: Changes,
    batch: Batch,
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
            changes: Changes::new(),
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

    /// Which fields changed, for the audit log.
    pub(super) fn changes(mut self, changes: Changes) -> Self {
        self.changes = changes;
        self
    }
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
        let entry = AuditEntry {
            id: self.new_id(at)?,
            workspace_id,
            actor: access.actor(),
            action,
            target,
            created_at: at,
            changes,
        };
        batch.writes.push(Write::Append {
            log: workspace_id,
            value: schema::encode(&entry)?,
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
        for _ in 0..MAX_ROUNDS {
            if let Attempt::Done(value) = attempt().await? {
                return Ok(value);
            }
            tokio::task::yield_now().await;
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            "too many writers want this record, try again",
        ))
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

/// The fields in which two records differ; a record that is not there has none. What identifies a
/// record and the times of its changes are not among them: the entry itself says those.
pub(super) fn changes<T: Serialize>(from: Option<&T>, to: Option<&T>) -> Result<Changes, Error> {
    const LEFT_OUT: [&str; 7] = [
        "id",
        "workspace_id",
        "agent_id",
        "user_id",
        "created_at",
        "updated_at",
        "hash",
    ];
    let fields = |record: Option<&T>| -> Result<Map<String, Value>, Error> {
        let value = record
            .map(serde_json::to_value)
            .transpose()
            .map_err(|error| Error::new(ErrorKind::Internal, "the audit entry could not be written").because(error))?;
        Ok(match value {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        })
    };
    let (mut from, to) = (fields(from)?, fields(to)?);
    let mut changes = Changes::new();
    for (name, to) in to {
        let from = from.remove(&name).unwrap_or_default();
        if from != to {
            changes.insert(name, FieldChange { from, to });
        }
    }
    // What is left is no longer there.
    let gone = from.into_iter().filter(|(_, value)| !value.is_null());
    changes.extend(gone.map(|(name, from)| (name, FieldChange { from, to: Value::Null })));
    changes.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    Ok(changes)
}
