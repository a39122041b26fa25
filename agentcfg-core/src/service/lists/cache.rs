//! The cache of lists, and the single-flights that read them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use quick_cache::Weighter;

use super::list::{AgentList, Whole};
use super::single_flight::SingleFlight;
use crate::model::WorkspaceId;
use crate::store::Stamp;

/// The cached lists, bounded by the memory that they take.
pub(in crate::service) struct Lists {
    cache: quick_cache::sync::Cache<WorkspaceId, Cached, BySize>,
    flights: Mutex<HashMap<WorkspaceId, Weak<SingleFlight>>>,
}

/// A list with the memory that it took when it was inserted: the weight of a cache entry must not change.
#[derive(Clone)]
pub(in crate::service) struct Cached {
    list: Arc<Whole>,
    bytes: u64,
    /// The validity token: it tells without a read whether the list's revision is the current one.
    pub(in crate::service) stamp: Option<Stamp>,
}

impl Cached {
    pub(in crate::service) fn list(&self) -> AgentList {
        AgentList::new(Arc::clone(&self.list))
    }
}

/// The initial capacity of the table; it grows on demand.
const FIRST_LISTS: usize = 64;

#[derive(Clone)]
struct BySize;

impl Weighter<WorkspaceId, Cached> for BySize {
    fn weight(&self, _: &WorkspaceId, cached: &Cached) -> u64 {
        cached.bytes
    }
}

impl Lists {
    pub(in crate::service) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            cache: quick_cache::sync::Cache::with_weighter(FIRST_LISTS, bytes, BySize),
            flights: Mutex::default(),
        })
    }

    /// The cached list of a workspace, of any revision.
    pub(in crate::service) fn get(&self, workspace: WorkspaceId) -> Option<Cached> {
        self.cache.get(&workspace)
    }

    /// Inserts a list, in place of an older one. The stamp is that of the workspace's revision, taken before it was
    /// read.
    pub(in crate::service) fn keep(&self, workspace: WorkspaceId, list: &AgentList, stamp: Option<Stamp>) {
        self.put(workspace, list.whole(), stamp);
    }

    /// The reading of a workspace's list that is under way, or a new one.
    pub(in crate::service) fn flight(self: &Arc<Self>, workspace: WorkspaceId) -> Arc<SingleFlight> {
        let mut flights = self.flights();
        let known = flights.get(&workspace).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let flight = Arc::new(SingleFlight::new(workspace, Arc::downgrade(self)));
            flights.insert(workspace, Arc::downgrade(&flight));
            flight
        })
    }

    /// Removes a reading that has ended, unless a new one has begun meanwhile.
    pub(super) fn remove_flight(&self, workspace: WorkspaceId) {
        let mut flights = self.flights();
        if flights.get(&workspace).is_some_and(|flight| flight.strong_count() == 0) {
            flights.remove(&workspace);
        }
    }

    /// The cached entry of a workspace, if it is this list.
    pub(super) fn cached(&self, workspace: WorkspaceId, list: &Arc<Whole>) -> Option<Cached> {
        self.cache
            .peek(&workspace)
            .filter(|cached| Arc::ptr_eq(&cached.list, list))
    }

    /// Inserts a list that grew again, with its new weight.
    pub(super) fn update_size(&self, workspace: WorkspaceId, list: &Arc<Whole>) {
        if let Some(cached) = self.cached(workspace, list) {
            self.put(workspace, list, cached.stamp);
        }
    }

    fn put(&self, workspace: WorkspaceId, list: &Arc<Whole>, stamp: Option<Stamp>) {
        let cached = Cached {
            list: Arc::clone(list),
            bytes: list.bytes() as u64,
            stamp,
        };
        self.cache.insert(workspace, cached);
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Weak<SingleFlight>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Lists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lists").finish_non_exhaustive()
    }
}
