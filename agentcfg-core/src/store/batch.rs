//! Batches, which change records atomically, and the results of their commits.

use super::{Key, Kind, Partition, StoreError};
use crate::model::WorkspaceId;

/// A condition of a batch on the current state.
///
/// ```
/// use agentcfg_core::store::{Batch, Check, Key, Kind, Write};
/// let key = Key::global("store", Kind::Meta, "name");
/// let compare_and_set = Batch {
///     checks: vec![Check::Version(key.clone(), 7)],
///     writes: vec![Write::Put(key, b"\"south\"".to_vec())],
/// };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// No record is stored under the key.
    Absent(Key),
    /// The record under the key has this version.
    Version(Key, u64),
}

/// One change of a batch. A batch names each key in at most one write; see [the contract of stores](super).
///
/// ```
/// use agentcfg_core::model::WorkspaceId;
/// use agentcfg_core::store::{Key, Kind, Write};
/// let workspace: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let counter = Key::in_workspace(workspace, Kind::Counter, "active_agents");
/// let one_more = Write::Add { counter, delta: 1, max: Some(25) };
/// let entry = Write::Append { log: workspace, value: b"{}".to_vec() };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Stores a value under a key, in place of any earlier one.
    Put(Key, Vec<u8>),
    /// Stores a JSON object in the partition of a workspace as [`Write::Put`] does, with one more field in front:
    /// `revision`, the number of the entry that this batch appends to that workspace's log.
    ///
    /// So a record knows the revision that it was written at, without a read of the log's head before. The object has
    /// at least one field, the kind is behind [`Kind::LogHead`], and the batch has the [`Write::Append`];
    /// [`with_revision`] makes the stored value.
    PutRevised(Key, Vec<u8>),
    /// Removes the record under a key, if there is one.
    Delete(Key),
    /// Adds to a counter that starts at 0. The batch fails with [`CommitError::Limit`] when the
    /// result would be greater than `max` with a positive `delta`, or less than 0. Additions commute: two batches
    /// that add to one counter do not conflict.
    Add {
        /// The counter's key.
        counter: Key,
        /// What to add; negative to take away.
        delta: i64,
        /// The greatest value that a positive `delta` may reach; `None` for no bound.
        max: Option<u64>,
    },
    /// Appends an entry to a workspace's log. The store numbers it: the entry's key is
    /// [`Key::log_entry`] and [`Key::log_head`] moves with it.
    Append {
        /// The workspace whose log grows.
        log: WorkspaceId,
        /// The entry.
        value: Vec<u8>,
    },
}

impl Check {
    /// The key of the condition.
    ///
    /// ```
    /// use agentcfg_core::store::{Check, Key, Kind};
    /// let name = Key::global("store", Kind::Meta, "name");
    /// assert_eq!(Check::Version(name.clone(), 7).key(), &name);
    /// ```
    pub fn key(&self) -> &Key {
        match self {
            Self::Absent(key) | Self::Version(key, _) => key,
        }
    }
}

impl Write {
    /// The key that the write names; the log's head for an [`Write::Append`].
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Write};
    /// let log = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// assert_eq!(Write::Append { log, value: b"{}".to_vec() }.key(), Key::log_head(log));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key(&self) -> Key {
        match self.key_or_log() {
            Ok(key) => key.clone(),
            Err(log) => Key::log_head(log),
        }
    }

    /// The key that the write names, or the log that it appends to.
    pub(super) fn key_or_log(&self) -> Result<&Key, WorkspaceId> {
        match self {
            Self::Put(key, _) | Self::PutRevised(key, _) | Self::Delete(key) | Self::Add { counter: key, .. } => {
                Ok(key)
            }
            Self::Append { log, .. } => Err(*log),
        }
    }
}

/// Checks and writes that happen together or not at all.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::store::{Batch, Key, Kind, MemoryStore, Store, Write};
/// let store = MemoryStore::new();
/// let name = Key::global("store", Kind::Meta, "name");
/// let batch = Batch { writes: vec![Write::Put(name, b"\"north\"".to_vec())], ..Batch::default() };
/// assert_eq!(store.commit(batch).await?.numbers.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The conditions.
    pub checks: Vec<Check>,
    /// The writes. The numbers in [`Committed::numbers`] are in their order.
    pub writes: Vec<Write>,
}

impl Batch {
    /// The bytes of the values of all writes.
    ///
    /// ```
    /// use agentcfg_core::store::{Batch, Key, Kind, Write};
    /// let name = Key::global("store", Kind::Meta, "name");
    /// let batch = Batch { writes: vec![Write::Put(name, b"\"north\"".to_vec())], ..Batch::default() };
    /// assert_eq!(batch.bytes(), 7);
    /// ```
    pub fn bytes(&self) -> u64 {
        let of = |write: &Write| match write {
            Write::Put(_, value) | Write::PutRevised(_, value) | Write::Append { value, .. } => value.len() as u64,
            Write::Delete(_) | Write::Add { .. } => 0,
        };
        self.writes.iter().map(of).sum()
    }

    /// Refuses a [`Write::PutRevised`] that breaks a rule for callers. An engine calls it before it applies a batch.
    ///
    /// # Errors
    ///
    /// [`StoreError::Misuse`] for a key outside a workspace or of a kind up to [`Kind::LogHead`], and for a batch that
    /// appends nothing to the log of the key's workspace.
    ///
    /// ```
    /// use agentcfg_core::store::{Batch, Key, Kind, Write};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let version = Key::in_workspace(workspace, Kind::AgentVersion, "writer 1");
    /// let batch = Batch { writes: vec![Write::PutRevised(version, b"{\"n\":1}".to_vec())], ..Batch::default() };
    /// assert!(batch.check_revised().is_err(), "nothing is appended");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_revised(&self) -> Result<(), StoreError> {
        for write in &self.writes {
            let Write::PutRevised(key, value) = write else { continue };
            let appends = |write: &Write| match (write, key.partition()) {
                (Write::Append { log, .. }, Partition::Workspace(workspace)) => log == workspace,
                _ => false,
            };
            if key.kind() <= Kind::LogHead || !self.writes.iter().any(appends) || !value.starts_with(b"{\"") {
                return Err(StoreError::Misuse(format!(
                    "{key:?} is put with a revision without an entry of its log, with a value that is no object, or as a \
                     kind that cannot have one"
                )));
            }
        }
        Ok(())
    }
}

/// The stored value of a [`Write::PutRevised`]: the object with the field `revision` in front.
///
/// ```
/// use agentcfg_core::store::with_revision;
/// assert_eq!(with_revision(7, br#"{"a":1}"#), br#"{"revision":7,"a":1}"#);
/// ```
pub fn with_revision(revision: u64, object: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(object.len() + 32);
    text.extend_from_slice(b"{\"revision\":");
    text.extend_from_slice(revision.to_string().as_bytes());
    text.push(b',');
    text.extend_from_slice(object.get(1..).unwrap_or_default());
    text
}

/// The result of a successful commit.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use agentcfg_core::store::{Batch, Key, Kind, MemoryStore, Store, Write};
/// # let store = MemoryStore::new();
/// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let counter = Key::in_workspace(workspace, Kind::Counter, "starts");
/// let batch = Batch { writes: vec![Write::Add { counter, delta: 1, max: None }], ..Batch::default() };
/// assert_eq!(store.commit(batch).await?.numbers, [1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// One number for each write: the new version of a `Put` or a `PutRevised`, 0 for a `Delete`, the new value of the
    /// counter of an `Add`, the number of the entry of an `Append`.
    pub numbers: Vec<u64>,
}

/// Why a commit changed nothing, or may have.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use agentcfg_core::store::{Batch, Check, CommitError, Key, Kind, MemoryStore, Store};
/// # let store = MemoryStore::new();
/// let key = Key::global("store", Kind::Meta, "name");
/// let batch = Batch { checks: vec![Check::Version(key, 7)], ..Batch::default() };
/// assert_eq!(store.commit(batch).await, Err(CommitError::Conflict(0)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The check with this index did not hold. Nothing changed: read the records and decide again.
    #[error("check {0} of the batch did not hold")]
    Conflict(usize),
    /// The `Add` at this index of the writes would have left its bounds. Nothing changed.
    #[error("write {0} of the batch would leave its bounds")]
    Limit(usize),
    /// The store itself failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
