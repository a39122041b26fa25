//! The cache of lists and of tables of statuses, and the single-flights that read lists.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use quick_cache::Weighter;

use super::list::{AgentList, Whole};
use super::single_flight::SingleFlight;
use crate::model::{AgentState, WorkspaceId};
use crate::service::status::Statuses;
use crate::store::Stamp;

/// The cached lists and tables, bounded by the memory that they take together.
pub(in crate::service) struct Lists {
    cache: quick_cache::sync::Cache<Place, Held, BySize>,
    flights: Mutex<HashMap<ListOf, Weak<SingleFlight>>>,
    /// The tables that are in the cache or in use.
    statuses: Mutex<HashMap<WorkspaceId, Weak<Statuses>>>,
}

/// Which list: those agents of this workspace that are in this state.
pub(in crate::service) type ListOf = (WorkspaceId, AgentState);

/// What an entry of the cache is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    List(ListOf),
    Statuses(WorkspaceId),
}

/// An entry of the cache. Its weight is the memory that it took when it was inserted, and must not change.
#[derive(Clone)]
enum Held {
    List(Cached),
    Statuses { shared: Arc<Statuses>, bytes: u64 },
}

/// A cached list.
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

impl Weighter<Place, Held> for BySize {
    fn weight(&self, _: &Place, held: &Held) -> u64 {
        match held {
            Held::List(cached) => cached.bytes,
            Held::Statuses { bytes, .. } => *bytes,
        }
    }
}

impl Lists {
    pub(in crate::service) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            cache: quick_cache::sync::Cache::with_weighter(FIRST_LISTS, bytes, BySize),
            flights: Mutex::default(),
            statuses: Mutex::default(),
        })
    }

    /// The cached list, of any revision.
    pub(in crate::service) fn get(&self, of: ListOf) -> Option<Cached> {
        match self.cache.get(&Place::List(of))? {
            Held::List(cached) => Some(cached),
            Held::Statuses { .. } => None,
        }
    }

    /// Inserts a list, in place of an older one. The stamp is that of the workspace's revision, taken before it was
    /// read.
    pub(in crate::service) fn keep(&self, of: ListOf, list: &AgentList, stamp: Option<Stamp>) {
        self.put(of, list.whole(), stamp);
    }

    /// The reading of a list that is under way, or a new one.
    pub(in crate::service) fn flight(self: &Arc<Self>, of: ListOf) -> Arc<SingleFlight> {
        let mut flights = self.flights();
        let known = flights.get(&of).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let flight = Arc::new(SingleFlight::new(of, Arc::downgrade(self)));
            flights.insert(of, Arc::downgrade(&flight));
            flight
        })
    }

    /// Removes a reading that has ended, unless a new one has begun meanwhile.
    pub(super) fn remove_flight(&self, of: ListOf) {
        let mut flights = self.flights();
        if flights.get(&of).is_some_and(|flight| flight.strong_count() == 0) {
            flights.remove(&of);
        }
    }

    /// The cached entry, if it is this list.
    pub(super) fn cached(&self, of: ListOf, list: &Arc<Whole>) -> Option<Cached> {
        match self.cache.peek(&Place::List(of))? {
            Held::List(cached) => Some(cached).filter(|cached| Arc::ptr_eq(&cached.list, list)),
            Held::Statuses { .. } => None,
        }
    }

    /// Inserts a list that grew again, with its new weight.
    pub(super) fn update_size(&self, of: ListOf, list: &Arc<Whole>) {
        if let Some(cached) = self.cached(of, list) {
            self.put(of, list, cached.stamp);
        }
    }

    fn put(&self, of: ListOf, list: &Arc<Whole>, stamp: Option<Stamp>) {
        let cached = Cached {
            list: Arc::clone(list),
            bytes: list.bytes() as u64,
            stamp,
        };
        self.cache.insert(Place::List(of), Held::List(cached));
    }

    /// The table of a workspace that is in the cache or in use, or a new one.
    pub(in crate::service) fn statuses(&self, of: WorkspaceId, make: impl FnOnce() -> Statuses) -> Arc<Statuses> {
        if let Some(Held::Statuses { shared, .. }) = self.cache.get(&Place::Statuses(of)) {
            return shared;
        }
        let mut tables = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tables.get(&of).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            tables.retain(|_, table| table.strong_count() > 0);
            let made = Arc::new(make());
            tables.insert(of, Arc::downgrade(&made));
            made
        })
    }

    /// Whether the table of a workspace is in the cache.
    pub(in crate::service) fn has_statuses(&self, of: WorkspaceId) -> bool {
        self.cache.contains_key(&Place::Statuses(of))
    }

    /// Inserts a table that takes so much memory.
    pub(in crate::service) fn keep_statuses(&self, of: WorkspaceId, shared: &Arc<Statuses>, bytes: u64) {
        let shared = Arc::clone(shared);
        self.cache.insert(Place::Statuses(of), Held::Statuses { shared, bytes });
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<ListOf, Weak<SingleFlight>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Lists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lists").finish_non_exhaustive()
    }
}
