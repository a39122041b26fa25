//! The methods of a store. Their guarantees are in the text of the module `store`.

use async_trait::async_trait;

use super::{
    Batch, Changes, CommitError, Committed, Hold, Key, Kind, Marks, Partition, Position, Record, Scan, Scanned, Stamp,
    StoreError, Tracker, Watcher, Write,
};
use crate::model::WorkspaceId;

/// A storage engine, or a wrapper of one, with the guarantees in the [module's text](super).
///
/// A wrapper names the store that it wraps in [`Self::inner`], and writes only what it changes:
///
/// ```
/// use agentcfg_core::store::{Batch, CommitError, Committed, Key, Kind, MemoryStore, Record, Scan, Scanned, Store, StoreError};
///
/// /// A store that prints each commit.
/// struct Traced<S>(S);
///
/// #[async_trait::async_trait]
/// impl<S: Store> Store for Traced<S> {
///     fn inner(&self) -> Option<&dyn Store> {
///         Some(&self.0)
///     }
///
///     async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
///         self.0.get(keys).await
///     }
///
///     async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
///         self.0.scan(scan).await
///     }
///
///     async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
///         println!("{batch:?}");
///         self.0.commit(batch).await
///     }
/// }
///
/// let store = Traced(MemoryStore::new());
/// // Stamps, watchers and trackers are those of the store inside.
/// assert!(store.stamp(&Key::global("store", Kind::Meta, "name")).is_some_and(|stamp| store.is_current(stamp)));
/// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// assert!(store.watch(workspace, Kind::LogHead).is_some() && store.track(workspace, Kind::Status).is_some());
/// let service = agentcfg_core::AgentCfg::builder(store).build();
/// # Ok::<(), agentcfg_core::model::InvalidId>(())
/// ```
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The store that this one wraps; `None` for an engine of its own.
    ///
    /// Each method with a default body goes to that store, past the methods of the wrapper. So a wrapper loses none of
    /// its guarantees, nor those of methods that later releases add. One that changes what reads find, or when,
    /// overrides [`Self::stamp`], [`Self::is_current`] and [`Self::marks`] too, and one that changes commits
    /// [`Self::commit_held`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agentcfg_core::store::{MemoryStore, Store};
    /// assert!(MemoryStore::new().inner().is_none());
    /// assert!(Arc::new(MemoryStore::new()).inner().is_some());
    /// ```
    fn inner(&self) -> Option<&dyn Store>;

    /// Reads records by their keys, in the order of the keys, in one snapshot.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Key, Kind, MemoryStore, Store};
    /// let store = MemoryStore::new();
    /// let found = store.get(&[Key::global("store", Kind::Meta, "name")]).await?;
    /// assert_eq!(found, [None]);
    /// # Ok(())
    /// # }
    /// ```
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError>;

    /// Reads the records of one kind in one partition, in order, in one snapshot.
    ///
    /// # Errors
    ///
    /// As [`Store::get`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Kind, MemoryStore, Partition, Scan, Store};
    /// let store = MemoryStore::new();
    /// let found = store.scan(&Scan::all(Partition::Global("ada".into()), Kind::Membership)).await?;
    /// assert!(found.entries.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError>;

    /// Reads the records of one kind in one partition that have changed since a position, in one snapshot; without a
    /// position, all of them.
    ///
    /// The default of an engine reads all of them each time.
    ///
    /// # Errors
    ///
    /// As [`Store::get`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Kind, MemoryStore, Partition, Store};
    /// let (store, partition) = (MemoryStore::new(), Partition::Global("store".into()));
    /// let first = store.changed_since(&partition, Kind::Meta, None).await?;
    /// let since = store.changed_since(&partition, Kind::Meta, first.position).await?;
    /// assert!(since.entries.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    async fn changed_since(
        &self,
        partition: &Partition,
        kind: Kind,
        position: Option<Position>,
    ) -> Result<Changes, StoreError> {
        if let Some(inner) = self.inner() {
            return inner.changed_since(partition, kind, position).await;
        }
        let found = self.scan(&Scan::all(partition.clone(), kind)).await?.entries;
        Ok(Changes {
            is_all: true,
            entries: found.into_iter().map(|(key, record)| (key, Some(record))).collect(),
            position: None,
        })
    }

    /// Checks and writes a batch: all of it or nothing, durable on `Ok`.
    ///
    /// # Errors
    ///
    /// [`CommitError::Conflict`] for the first check that does not hold; else [`CommitError::Limit`]
    /// for the first counter that would leave its bounds; else what the engine answered, such as
    /// [`StoreError::TooLarge`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Batch, Check, CommitError, Key, Kind, MemoryStore, Store, Write};
    /// let store = MemoryStore::new();
    /// let key = Key::global("store", Kind::Meta, "name");
    /// let create = Batch {
    ///     checks: vec![Check::Absent(key.clone())],
    ///     writes: vec![Write::Put(key, b"\"north\"".to_vec())],
    /// };
    /// store.commit(create.clone()).await?;
    /// assert_eq!(store.commit(create).await, Err(CommitError::Conflict(0)));
    /// # Ok(())
    /// # }
    /// ```
    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError>;

    /// Lets other batches that append to a log wait, for a decision that loses its races; see guarantee 11. Others that
    /// want to hold it wait too, in the order of their calls. `None` where this store cannot do that.
    ///
    /// The caller reads after this call, and commits by [`Self::commit_held`] soon: any other batch of it would wait
    /// for itself.
    ///
    /// The default of an engine gives none, so that the decision is repeated until it is the first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] when the storage does not answer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Batch, MemoryStore, Store, Write};
    /// let store = MemoryStore::new();
    /// let log = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let batch = Batch { writes: vec![Write::Append { log, value: b"{}".to_vec() }], ..Batch::default() };
    /// let hold = store.hold(log).await?.ok_or("this store gives holds")?;
    /// store.commit_held(&hold, batch.clone()).await?;
    /// drop(hold);
    /// store.commit(batch).await?;
    /// # Ok(())
    /// # }
    /// ```
    async fn hold(&self, log: WorkspaceId) -> Result<Option<Hold>, StoreError> {
        match self.inner() {
            Some(inner) => inner.hold(log).await,
            None => Ok(None),
        }
    }

    /// Commits a batch as [`Self::commit`] does, before those that wait for this hold.
    ///
    /// # Errors
    ///
    /// As [`Self::commit`].
    async fn commit_held(&self, hold: &Hold, batch: Batch) -> Result<Committed, CommitError> {
        match self.inner() {
            Some(inner) => inner.commit_held(hold, batch).await,
            None => self.commit(batch).await,
        }
    }

    /// A stamp for a record that is read after this call; `None` when this store gives none, or not now.
    ///
    /// The default of an engine gives none, so that the service reads each time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Key, Kind, MemoryStore, Store};
    /// let store = MemoryStore::new();
    /// let key = Key::global("store", Kind::Meta, "name");
    /// // The stamp comes first: a change between the two ends it.
    /// let stamp = store.stamp(&key);
    /// let record = store.get(&[key]).await?;
    /// # Ok(())
    /// # }
    /// ```
    fn stamp(&self, key: &Key) -> Option<Stamp> {
        self.inner()?.stamp(key)
    }

    /// Whether a record that was read after this stamp was taken is the one that a read would find now. This must be
    /// far cheaper than a read, and never wait.
    ///
    /// The default of an engine compares with [`Self::marks`]. Without them it answers false, which is always correct.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Batch, Key, Kind, MemoryStore, Store, Write};
    /// # let store = MemoryStore::new();
    /// # let key = Key::global("store", Kind::Meta, "name");
    /// let stamp = store.stamp(&key).ok_or("this store gives stamps")?;
    /// assert!(store.is_current(stamp));
    /// store.commit(Batch { checks: vec![], writes: vec![Write::Put(key, b"1".to_vec())] }).await?;
    /// assert!(!store.is_current(stamp));
    /// # Ok(())
    /// # }
    /// ```
    fn is_current(&self, stamp: Stamp) -> bool {
        match self.inner() {
            Some(inner) => inner.is_current(stamp),
            None => self.marks().is_some_and(|marks| marks.is_current(stamp)),
        }
    }

    /// The numbers that the store's stamps are compared with, where they are in the memory of this process. The service
    /// then compares them itself, as each request does a few times.
    ///
    /// The default of an engine gives none: [`Self::is_current`] is called in their place.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind, MemoryStore, Store};
    /// let store = MemoryStore::new();
    /// let stamp = store.stamp(&Key::global("store", Kind::Meta, "name")).ok_or("this store gives stamps")?;
    /// assert!(store.marks().is_some_and(|marks| marks.is_current(stamp)));
    /// # Ok::<(), &str>(())
    /// ```
    fn marks(&self) -> Option<&Marks> {
        self.inner()?.marks()
    }

    /// A watcher of the records of one kind in one workspace; `None` when this store cannot tell what others commit.
    ///
    /// The default of an engine gives none, so that the service reads the heads of the watched logs periodically.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Kind, MemoryStore, Store};
    /// let store = MemoryStore::new();
    /// let watcher = store.watch("018f2d7c-0000-7000-8000-000000000001".parse()?, Kind::LogHead);
    /// assert!(watcher.is_some());
    /// # Ok(())
    /// # }
    /// ```
    fn watch(&self, workspace: WorkspaceId, kind: Kind) -> Option<Watcher> {
        self.inner()?.watch(workspace, kind)
    }

    /// A tracker of the records of one kind in a workspace; `None` for a kind that this store does not track, and where
    /// other processes write too. Then the service asks for the [changes](Self::changed_since) at each read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Kind, MemoryStore, Store};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// assert!(MemoryStore::new().track(workspace, Kind::Status).is_some());
    /// # Ok(())
    /// # }
    /// ```
    fn track(&self, workspace: WorkspaceId, kind: Kind) -> Option<Tracker> {
        self.inner()?.track(workspace, kind)
    }

    /// Whether the store can serve now. The default of an engine reads a key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] when it cannot.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{MemoryStore, Store};
    /// MemoryStore::new().ready().await?;
    /// # Ok(())
    /// # }
    /// ```
    async fn ready(&self) -> Result<(), StoreError> {
        match self.inner() {
            Some(inner) => inner.ready().await,
            None => self.get(&[Key::global("store", Kind::Meta, "ready")]).await.map(drop),
        }
    }

    /// Whether other processes may use the store too, so that each call is a round trip over a network.
    ///
    /// A service on a shared store reads what a request is likely to need together with the record of its API key, and
    /// counts the request at the same time. On another it takes its process to be the only one that writes: streams may
    /// repeat an event that the store has lost in a failover, and its webhook sender may take the lease of a sender
    /// that is at work. The default of an engine is `false`.
    ///
    /// ```
    /// use agentcfg_core::store::{MemoryStore, Store};
    /// assert!(!MemoryStore::new().is_shared());
    /// ```
    fn is_shared(&self) -> bool {
        self.inner().is_some_and(Store::is_shared)
    }

    /// Ends the use of the store by this process: what was committed is durable, and what it holds of the system, such
    /// as a locked file, is free. Calls after it may fail. The default of an engine does nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use agentcfg_core::store::{MemoryStore, Store};
    /// MemoryStore::new().shutdown().await;
    /// # }
    /// ```
    async fn shutdown(&self) {
        if let Some(inner) = self.inner() {
            inner.shutdown().await;
        }
    }

    /// Why the store refuses commits now while it may serve reads, such as a full disk; `None` when nothing is known
    /// that would make a commit fail. This must be cheap. The text is for logs.
    ///
    /// The default of an engine answers `None`, which suits one that learns of it only when a commit fails.
    ///
    /// ```
    /// use agentcfg_core::store::{MemoryStore, Store};
    /// assert_eq!(MemoryStore::new().read_only(), None);
    /// ```
    fn read_only(&self) -> Option<String> {
        self.inner()?.read_only()
    }

    /// Ends the removal of a workspace whose records are deleted: removes all that the store keeps of deleted records
    /// under keys that name the workspace, and last of all the record `marker`, which names it too.
    ///
    /// No commit names any of these keys again, so that guarantee 5 has nothing to hold for. A call that failed is
    /// repeated; until one has succeeded, `marker` stays. The default of an engine deletes `marker` and suits one that
    /// keeps nothing of a deleted record.
    ///
    /// # Errors
    ///
    /// As [`Store::commit`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::model::WorkspaceId;
    /// # use agentcfg_core::store::{Batch, Key, Kind, MemoryStore, Store, Write};
    /// # let store = MemoryStore::new();
    /// # let workspace: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let marker = Key::global("removals", Kind::Removal, workspace.to_string());
    /// store.commit(Batch { checks: vec![], writes: vec![Write::Put(marker.clone(), b"{}".to_vec())] }).await?;
    /// store.end_removal(workspace, marker.clone()).await?;
    /// assert_eq!(store.get(&[marker]).await?, [None]);
    /// # Ok(())
    /// # }
    /// ```
    async fn end_removal(&self, workspace: WorkspaceId, marker: Key) -> Result<(), StoreError> {
        if let Some(inner) = self.inner() {
            return inner.end_removal(workspace, marker).await;
        }
        let batch = Batch {
            checks: Vec::new(),
            writes: vec![Write::Delete(marker)],
        };
        match self.commit(batch).await {
            Ok(_) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
            Err(refused) => Err(StoreError::Misuse(format!("a deletion was refused: {refused}"))),
        }
    }
}
