//! Tracking of changed records, for readers that keep what they derived from all records of a kind in a workspace.
//!
//! A [`Stamp`](super::Stamp) tells that one record is unchanged. A reader of all records of a kind needs more: after a
//! change it must know which of them to read again. The store keeps the items that were changed, in a set of bounded
//! length.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::{Batch, Key, Kind, Partition};
use crate::model::WorkspaceId;
use crate::sync::lock;

/// With more changed items than this, a scan takes about as long as reading them one by one.
const MAX_ITEMS: usize = 16_384;

/// The records of one kind in one workspace.
type Topic = (WorkspaceId, Kind);

/// The trackers of a store. Clones share everything.
///
/// A store [notes](Self::note) what a commit wrote after the commit took effect and before it is answered.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::store::{Changed, Key, Kind, Trackers};
/// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let trackers = Trackers::new();
/// let tracker = trackers.track(workspace, Kind::Status).ok_or("reports are tracked")?;
/// tracker.take();
/// trackers.note(&[Key::in_workspace(workspace, Kind::Status, "writer")]);
/// assert_eq!(tracker.take(), Changed::Items(vec!["writer".into()]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Trackers {
    shared: Arc<TrackerTable>,
}

#[derive(Debug, Default)]
struct TrackerTable {
    topics: Mutex<HashMap<Topic, Vec<Weak<Tracked>>>>,
    /// The number of trackers, which a commit reads without a lock.
    count: AtomicUsize,
}

#[derive(Debug)]
struct Tracked {
    /// Whether `changed` is not empty.
    is_changed: AtomicBool,
    changed: Mutex<PendingChanges>,
}

#[derive(Debug)]
enum PendingChanges {
    Items(HashSet<Box<str>>),
    All,
}

/// The changes since the last [`Tracker::take`].
///
/// ```
/// use agentcfg_core::store::Changed;
/// assert_ne!(Changed::All, Changed::Items(Vec::new()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// The records of these items, in any order.
    Items(Vec<Box<str>>),
    /// Any of the records: the tracker is new, too many have changed, or the store had a failure.
    All,
}

impl Trackers {
    /// Makes an empty set of trackers.
    ///
    /// ```
    /// let trackers = agentcfg_core::store::Trackers::new();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// A tracker of the records of one kind in a workspace; `None` for a kind that is not [tracked](Kind::is_tracked).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Kind, Trackers};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// assert!(Trackers::new().track(workspace, Kind::Agent).is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn track(&self, workspace: WorkspaceId, kind: Kind) -> Option<Tracker> {
        if !kind.is_tracked() {
            return None;
        }
        let topic = (workspace, kind);
        let tracked = Arc::new(Tracked {
            is_changed: AtomicBool::new(true),
            changed: Mutex::new(PendingChanges::All),
        });
        let mut topics = lock(&self.shared.topics);
        self.shared.count.fetch_add(1, Ordering::SeqCst);
        topics.entry(topic).or_default().push(Arc::downgrade(&tracked));
        Some(Tracker {
            topic,
            tracked,
            shared: Arc::clone(&self.shared),
        })
    }

    /// Tells the trackers that a commit has changed the records of these keys.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Key, Kind, Trackers};
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// // Without a tracker this does nothing.
    /// Trackers::new().note(&[Key::in_workspace(workspace, Kind::Status, "writer")]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn note(&self, keys: &[Key]) {
        if keys.is_empty() || self.shared.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let topics = lock(&self.shared.topics);
        for key in keys {
            let Partition::Workspace(workspace) = key.partition() else {
                continue;
            };
            let trackers = topics.get(&(*workspace, key.kind())).into_iter().flatten();
            for tracked in trackers.filter_map(Weak::upgrade) {
                tracked.add(key.item());
            }
        }
    }

    /// Tells all trackers that anything may have changed, such as after a commit whose outcome is unknown.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Changed, Kind, Trackers};
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let trackers = Trackers::new();
    /// let tracker = trackers.track(workspace, Kind::Status).ok_or("reports are tracked")?;
    /// tracker.take();
    /// trackers.note_all();
    /// assert_eq!(tracker.take(), Changed::All);
    /// # Ok(())
    /// # }
    /// ```
    pub fn note_all(&self) {
        let topics = lock(&self.shared.topics);
        for tracked in topics.values().flatten().filter_map(Weak::upgrade) {
            tracked.add_all();
        }
    }
}

impl Tracked {
    fn add(&self, item: &str) {
        let mut changed = lock(&self.changed);
        if let PendingChanges::Items(items) = &mut *changed {
            if items.len() < MAX_ITEMS {
                items.insert(item.into());
            } else if !items.contains(item) {
                *changed = PendingChanges::All;
            }
        }
        self.is_changed.store(true, Ordering::SeqCst);
    }

    fn add_all(&self) {
        *lock(&self.changed) = PendingChanges::All;
        self.is_changed.store(true, Ordering::SeqCst);
    }
}

/// The changes of the records of one kind in one workspace; see [`Store::track`](super::Store::track).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::store::{Batch, Changed, Key, Kind, MemoryStore, Store, Write};
/// let store = MemoryStore::new();
/// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let tracker = store.track(workspace, Kind::Status).ok_or("this store tracks reports")?;
/// assert_eq!(tracker.take(), Changed::All, "nothing was read yet");
/// let report = Write::Put(Key::in_workspace(workspace, Kind::Status, "writer"), b"{}".to_vec());
/// store.commit(Batch { checks: vec![], writes: vec![report] }).await?;
/// assert_eq!(tracker.take(), Changed::Items(vec!["writer".into()]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Tracker {
    topic: Topic,
    tracked: Arc<Tracked>,
    shared: Arc<TrackerTable>,
}

impl Tracker {
    /// Whether anything has changed since the last [`Self::take`]. This takes no lock.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Kind, Trackers};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let tracker = Trackers::new().track(workspace, Kind::Status).ok_or("reports are tracked")?;
    /// assert!(tracker.has_changed());
    /// tracker.take();
    /// assert!(!tracker.has_changed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn has_changed(&self) -> bool {
        self.tracked.is_changed.load(Ordering::SeqCst)
    }

    /// What has changed since the last call of this. A read that starts after it sees the changes.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Changed, Kind, Trackers};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let tracker = Trackers::new().track(workspace, Kind::Status).ok_or("reports are tracked")?;
    /// assert_eq!(tracker.take(), Changed::All);
    /// assert_eq!(tracker.take(), Changed::Items(vec![]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn take(&self) -> Changed {
        let mut changed = lock(&self.tracked.changed);
        self.tracked.is_changed.store(false, Ordering::SeqCst);
        match std::mem::replace(&mut *changed, PendingChanges::Items(HashSet::new())) {
            PendingChanges::Items(items) => Changed::Items(items.into_iter().collect()),
            PendingChanges::All => Changed::All,
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let mut topics = lock(&self.shared.topics);
        self.shared.count.fetch_sub(1, Ordering::SeqCst);
        if let Some(trackers) = topics.get_mut(&self.topic) {
            trackers.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(&self.tracked)));
            if trackers.is_empty() {
                topics.remove(&self.topic);
            }
        }
    }
}

impl Batch {
    /// The keys of the records that the batch writes and that can be [tracked](Kind::is_tracked), for
    /// [`Trackers::note`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Batch, Key, Kind, Write};
    /// let report = Key::in_workspace("018f2d7c-0000-7000-8000-000000000001".parse()?, Kind::Status, "writer");
    /// let batch = Batch { writes: vec![Write::Delete(report.clone())], ..Batch::default() };
    /// assert_eq!(batch.tracked(), [report]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tracked(&self) -> Vec<Key> {
        let keys = self.writes.iter().filter_map(|write| write.key_or_log().ok());
        keys.filter(|key| key.kind().is_tracked()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(item: &str) -> Key {
        Key::in_workspace(WorkspaceId::new(uuid::Uuid::from_u128(1)), Kind::Status, item)
    }

    fn tracker(trackers: &Trackers) -> Tracker {
        let tracker = trackers.track(WorkspaceId::new(uuid::Uuid::from_u128(1)), Kind::Status);
        tracker.unwrap()
    }

    #[test]
    fn each_tracker_has_its_own_changes() {
        let trackers = Trackers::new();
        let (one, two) = (tracker(&trackers), tracker(&trackers));
        assert_eq!((one.take(), two.take()), (Changed::All, Changed::All));
        trackers.note(&[report("a"), report("a")]);
        assert_eq!(one.take(), Changed::Items(vec!["a".into()]));
        assert_eq!(one.take(), Changed::Items(vec![]));
        drop(one);
        assert!(two.has_changed());
        assert_eq!(two.take(), Changed::Items(vec!["a".into()]));
        drop(two);
        assert!(lock(&trackers.shared.topics).is_empty());
    }

    #[test]
    fn too_many_changes_are_all() {
        let trackers = Trackers::new();
        let tracker = tracker(&trackers);
        tracker.take();
        let keys: Vec<Key> = (0..MAX_ITEMS).map(|i| report(&format!("a{i}"))).collect();
        trackers.note(&keys);
        trackers.note(&keys[..1]);
        assert!(matches!(tracker.take(), Changed::Items(items) if items.len() == MAX_ITEMS));
        trackers.note(&keys);
        trackers.note(&[report("one-more")]);
        assert_eq!(tracker.take(), Changed::All);
    }
}
