//! Where lists are kept, and where those meet who found none that is current.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use quick_cache::Weighter;

use super::list::{AgentList, Whole};
use crate::model::WorkspaceId;
use crate::store::Stamp;

/// Lists that are kept ready, bounded by the memory that they take.
pub(in crate::service) struct Lists {
    kept: quick_cache::sync::Cache<WorkspaceId, Kept, BySize>,
    /// The desks that anybody is at, or that have a list which anybody holds.
    desks: Mutex<HashMap<WorkspaceId, Weak<Desk>>>,
}

/// A list with the memory that it took when it was put here: the cache wants a weight that stays the same.
#[derive(Clone)]
pub(in crate::service) struct Kept {
    list: Arc<Whole>,
    bytes: u64,
    /// How to know without a read that the list's revision is the one in the store.
    pub(in crate::service) stamp: Option<Stamp>,
}

impl Kept {
    pub(in crate::service) fn list(&self) -> AgentList {
        AgentList::new(Arc::clone(&self.list))
    }
}

/// What the table has room for at first; it grows with what comes.
const FIRST_LISTS: usize = 64;

#[derive(Clone)]
struct BySize;

impl Weighter<WorkspaceId, Kept> for BySize {
    fn weight(&self, _: &WorkspaceId, kept: &Kept) -> u64 {
        kept.bytes
    }
}

impl Lists {
    pub(in crate::service) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            kept: quick_cache::sync::Cache::with_weighter(FIRST_LISTS, bytes, BySize),
            desks: Mutex::default(),
        })
    }

    /// The list of a workspace that is kept, of whatever revision.
    pub(in crate::service) fn get(&self, workspace: WorkspaceId) -> Option<Kept> {
        self.kept.get(&workspace)
    }

    /// Keeps a list in place of an older one. The stamp is that of the workspace's revision, taken before it was
    /// read.
    pub(in crate::service) fn keep(&self, workspace: WorkspaceId, list: &AgentList, stamp: Option<Stamp>) {
        self.put(workspace, list.whole(), stamp);
    }

    /// The desk of a workspace.
    pub(in crate::service) fn desk(self: &Arc<Self>, workspace: WorkspaceId) -> Arc<Desk> {
        let mut desks = self.desks();
        let known = desks.get(&workspace).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let desk = Arc::new(Desk {
                workspace,
                lists: Arc::downgrade(self),
                failures: AtomicU64::new(0),
                turn: tokio::sync::Mutex::default(),
            });
            desks.insert(workspace, Arc::downgrade(&desk));
            desk
        })
    }

    fn desks(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Weak<Desk>>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, workspace: WorkspaceId, list: &Arc<Whole>, stamp: Option<Stamp>) {
        let kept = Kept {
            list: Arc::clone(list),
            bytes: list.bytes() as u64,
            stamp,
        };
        self.kept.insert(workspace, kept);
    }

    /// What is kept of a workspace, if it is this list.
    fn kept(&self, workspace: WorkspaceId, list: &Arc<Whole>) -> Option<Kept> {
        self.kept.peek(&workspace).filter(|kept| Arc::ptr_eq(&kept.list, list))
    }
}

/// Where the list of one workspace is made by one at a time. It is there as long as anybody is at it or holds a list
/// that was made at it.
#[derive(Debug)]
pub(in crate::service) struct Desk {
    workspace: WorkspaceId,
    lists: Weak<Lists>,
    failures: AtomicU64,
    /// Whoever holds it makes a list. Within is the last one that was made, if anybody still has it: also one that is
    /// too large to be kept.
    turn: tokio::sync::Mutex<Last>,
}

/// The last list that was made at a desk, as long as anybody has it.
#[derive(Debug, Default)]
pub(in crate::service) struct Last(Weak<Whole>);

impl Last {
    /// The list, unless it is older than this revision.
    pub(in crate::service) fn since(&self, revision: u64) -> Option<AgentList> {
        let list = self.0.upgrade().filter(|list| list.revision >= revision)?;
        Some(AgentList::new(list))
    }

    pub(in crate::service) fn set(&mut self, list: &AgentList) {
        self.0 = Arc::downgrade(list.whole());
    }
}

impl Desk {
    /// Waits for the turn to make a list. Who leaves while waiting or making one lets the next go on.
    pub(in crate::service) async fn turn(&self) -> tokio::sync::MutexGuard<'_, Last> {
        self.turn.lock().await
    }

    /// How many attempts failed so far.
    pub(in crate::service) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(in crate::service) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether this list is the one that is kept.
    pub(super) fn keeps(&self, list: &Arc<Whole>) -> bool {
        self.lists
            .upgrade()
            .is_some_and(|lists| lists.kept(self.workspace, list).is_some())
    }

    /// Puts a list that grew in its own place.
    pub(super) fn weigh_again(&self, list: &Arc<Whole>) {
        if let Some(lists) = self.lists.upgrade()
            && let Some(kept) = lists.kept(self.workspace, list)
        {
            lists.put(self.workspace, list, kept.stamp);
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let Some(lists) = self.lists.upgrade() else { return };
        let mut desks = lists.desks();
        // Somebody may have put up a new desk meanwhile.
        if desks.get(&self.workspace).is_some_and(|desk| desk.strong_count() == 0) {
            desks.remove(&self.workspace);
        }
    }
}

impl std::fmt::Debug for Lists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lists").finish_non_exhaustive()
    }
}
