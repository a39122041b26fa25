//! Wake-ups for readers of a workspace: a counter and its waiters, without a payload.
//!
//! A reader keeps its position and reads on from there, so a wake-up only says that there may be something to read.
//! Wake-ups that come while a reader is busy are one wake-up to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::{Batch, Key, Kind, Partition};
use crate::model::WorkspaceId;
use crate::sync::lock;

/// The records of one kind in one workspace.
type Topic = (WorkspaceId, Kind);

/// The watchers of a store, by workspace and kind of record. Clones share everything.
///
/// A store notifies after a commit, so that a reader that is woken finds the commit.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::model::WorkspaceId;
/// use agentcfg_core::store::{Kind, Notifier};
/// let workspace: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let notifier = Notifier::new();
/// let mut watcher = notifier.watch(workspace, Kind::LogHead);
/// notifier.notify([(workspace, Kind::LogHead)]);
/// watcher.changed().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Notifier {
    shared: Arc<WatcherTable>,
}

#[derive(Debug, Default)]
struct WatcherTable {
    topics: Mutex<HashMap<Topic, watch::Sender<()>>>,
    /// The number of watchers, which a commit reads without a lock.
    watchers: AtomicUsize,
}

impl Notifier {
    /// Makes a notifier without watchers.
    ///
    /// ```
    /// assert!(!agentcfg_core::store::Notifier::new().is_watched());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// A watcher of the records of one kind in one workspace, for notifications after this call.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Kind, Notifier};
    /// let notifier = Notifier::new();
    /// let watcher = notifier.watch("018f2d7c-0000-7000-8000-000000000001".parse()?, Kind::LogHead);
    /// assert!(!watcher.has_changed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self, workspace: WorkspaceId, kind: Kind) -> Watcher {
        let topic = (workspace, kind);
        let mut topics = lock(&self.shared.topics);
        self.shared.watchers.fetch_add(1, Ordering::SeqCst);
        let sender = topics.entry(topic).or_insert_with(|| watch::Sender::new(()));
        Watcher {
            topic,
            notices: sender.subscribe(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Whether there is any watcher. This takes no lock.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Kind, Notifier};
    /// let notifier = Notifier::new();
    /// let watcher = notifier.watch("018f2d7c-0000-7000-8000-000000000001".parse()?, Kind::LogHead);
    /// assert!(notifier.is_watched());
    /// drop(watcher);
    /// assert!(!notifier.is_watched());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_watched(&self) -> bool {
        self.shared.watchers.load(Ordering::SeqCst) > 0
    }

    /// Wakes the watchers of these records.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Kind, Notifier};
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let notifier = Notifier::new();
    /// let watcher = notifier.watch(workspace, Kind::LogHead);
    /// notifier.notify([(workspace, Kind::Status)]);
    /// assert!(!watcher.has_changed());
    /// notifier.notify([(workspace, Kind::LogHead)]);
    /// assert!(watcher.has_changed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn notify(&self, changed: impl IntoIterator<Item = (WorkspaceId, Kind)>) {
        if !self.is_watched() {
            return;
        }
        // The waiters are woken without the lock: a woken task may drop its watcher, which takes it.
        let senders: Vec<watch::Sender<()>> = {
            let topics = lock(&self.shared.topics);
            let changed = changed.into_iter();
            changed.filter_map(|topic| topics.get(&topic).cloned()).collect()
        };
        for sender in senders {
            sender.send_replace(());
        }
    }

    /// Wakes every watcher, after something that may have changed anything.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Kind, Notifier};
    /// let notifier = Notifier::new();
    /// let watcher = notifier.watch("018f2d7c-0000-7000-8000-000000000001".parse()?, Kind::Status);
    /// notifier.notify_all();
    /// assert!(watcher.has_changed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn notify_all(&self) {
        self.notify(self.watched());
    }

    /// The topics that have watchers now.
    ///
    /// ```
    /// assert!(agentcfg_core::store::Notifier::new().watched().is_empty());
    /// ```
    pub fn watched(&self) -> Vec<(WorkspaceId, Kind)> {
        lock(&self.shared.topics).keys().copied().collect()
    }
}

/// A waiter for commits that touch the records of one kind in one workspace; see [`Notifier::watch`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::store::{Batch, Key, Kind, MemoryStore, Store, Write};
/// let store = MemoryStore::new();
/// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let mut watcher = store.watch(workspace, Kind::LogHead).ok_or("this store notifies")?;
/// let entry = Write::Append { log: workspace, value: b"{}".to_vec() };
/// store.commit(Batch { checks: vec![], writes: vec![entry] }).await?;
/// watcher.changed().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Watcher {
    topic: Topic,
    notices: watch::Receiver<()>,
    shared: Arc<WatcherTable>,
}

impl Watcher {
    /// Waits for a notification since the last call of this or of [`Self::mark_seen`].
    ///
    /// Dropping the future loses no notification.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Kind, Notifier};
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let notifier = Notifier::new();
    /// let mut watcher = notifier.watch(workspace, Kind::LogHead);
    /// notifier.notify_all();
    /// notifier.notify_all();
    /// watcher.changed().await;
    /// assert!(!watcher.has_changed(), "both were one wake-up");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn changed(&mut self) {
        if self.notices.changed().await.is_err() {
            // The sender lives as long as a watcher of its topic, so this cannot happen; a busy loop would be worse.
            std::future::pending::<()>().await;
        }
    }

    /// Forgets the notifications so far. A reader does this before it reads, so that a commit during the read wakes it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Kind, Notifier};
    /// let notifier = Notifier::new();
    /// let mut watcher = notifier.watch("018f2d7c-0000-7000-8000-000000000001".parse()?, Kind::Status);
    /// notifier.notify_all();
    /// watcher.mark_seen();
    /// assert!(!watcher.has_changed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn mark_seen(&mut self) {
        self.notices.mark_unchanged();
    }

    /// Whether there was a notification that was neither awaited nor marked.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Kind, Notifier};
    /// let watcher = Notifier::new().watch("018f2d7c-0000-7000-8000-000000000001".parse()?, Kind::Status);
    /// assert!(!watcher.has_changed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn has_changed(&self) -> bool {
        self.notices.has_changed().unwrap_or(true)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut topics = lock(&self.shared.topics);
        self.shared.watchers.fetch_sub(1, Ordering::SeqCst);
        // New watchers are made under the same lock, so a count of one is this watcher alone.
        if topics
            .get(&self.topic)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            topics.remove(&self.topic);
        }
    }
}

impl Batch {
    /// The workspaces and kinds that the batch writes, for [`Notifier::notify`]. An append writes the log's head.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Batch, Kind, Write};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let entry = Write::Append { log: workspace, value: b"{}".to_vec() };
    /// let batch = Batch { writes: vec![entry], ..Batch::default() };
    /// assert_eq!(batch.touched(), [(workspace, Kind::LogHead)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn touched(&self) -> Vec<(WorkspaceId, Kind)> {
        let of_key = |key: &Key| match key.partition() {
            Partition::Workspace(workspace) => Some((*workspace, key.kind())),
            Partition::Global(_) => None,
        };
        let writes = self.writes.iter();
        let touched = writes.filter_map(|write| match write.key_or_log() {
            Ok(key) => of_key(key),
            Err(log) => Some((log, Kind::LogHead)),
        });
        touched.collect()
    }
}
