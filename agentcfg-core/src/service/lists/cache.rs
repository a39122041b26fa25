//! The cache of lists and of status tables, and the single-flight of a list: one request at a time reads it.

use std::sync::{Arc, Weak};

use quick_cache::{Weighter, sync};

use super::super::single_flight::{Leader, SingleFlight};
use super::super::status::Statuses;
use super::super::weak_map::WeakMap;
use super::super::weighted_cache::weighted_cache;
use super::list_text::{ListCache, ListText, Whole};
use crate::model::{AgentState, Label, WorkspaceId};
use crate::store::{Stamp, Stamps};

/// The cached lists and tables, bounded by the total memory that they take.
pub(in crate::service) struct Cache {
    held: sync::Cache<CacheKey, Held, BySize>,
    readings: WeakMap<ListOf, Reading>,
    /// The tables that are in the cache or in use.
    statuses: WeakMap<WorkspaceId, Statuses>,
}

/// Which list of a workspace it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::service) enum Listed {
    /// The agents in this state.
    Agents(AgentState),
    /// The versions that this label points at.
    Released(Label),
    /// What this label points at, or each label, also of deactivated agents.
    Labels(Option<Label>),
    /// The current version of each active agent.
    Versions,
}

/// The key of a list.
pub(in crate::service) type ListOf = (WorkspaceId, Listed);

/// The key of an entry of the cache.
#[derive(Clone, PartialEq, Eq, Hash)]
enum CacheKey {
    List(ListOf),
    Statuses(WorkspaceId),
}

/// An entry of the cache. Its weight is the memory that it took at its insertion, since a weight must not change.
#[derive(Clone)]
enum Held {
    List(Cached),
    Statuses { shared: Arc<Statuses>, bytes: u64 },
}

/// A cached list.
#[derive(Clone)]
struct Cached {
    list: Arc<Whole>,
    bytes: u64,
    /// The validity token: it tells without a read whether the list's revision is the current one.
    stamp: Option<Stamp>,
}

/// The initial capacity of the table; it grows on demand.
const FIRST_LISTS: usize = 64;

#[derive(Clone)]
struct BySize;

impl Weighter<CacheKey, Held> for BySize {
    fn weight(&self, _: &CacheKey, held: &Held) -> u64 {
        match held {
            Held::List(cached) => cached.bytes,
            Held::Statuses { bytes, .. } => *bytes,
        }
    }
}

impl Cache {
    pub(in crate::service) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            held: weighted_cache(FIRST_LISTS, bytes, BySize),
            readings: WeakMap::default(),
            statuses: WeakMap::default(),
        })
    }

    /// The cached list, if its stamp says that it is current.
    pub(in crate::service) fn current(&self, of: &ListOf, stamps: &Stamps) -> Option<ListText> {
        let cached = self.held(of)?;
        let is_current = cached.stamp.is_some_and(|stamp| stamps.is_current(stamp));
        is_current.then(|| ListText::new(cached.list))
    }

    /// The cached list if it has this revision, whatever its stamp says.
    pub(in crate::service) fn at_revision(&self, of: &ListOf, revision: u64) -> Option<ListText> {
        let list = ListText::new(self.held(of)?.list);
        (list.revision() == revision).then_some(list)
    }

    fn held(&self, of: &ListOf) -> Option<Cached> {
        match self.held.get(&CacheKey::List(of.clone()))? {
            Held::List(cached) => Some(cached),
            Held::Statuses { .. } => None,
        }
    }

    /// Inserts a list, in place of an older one. The stamp is that of the workspace's revision and was taken before the
    /// list was read.
    pub(in crate::service) fn keep(&self, of: &ListOf, list: &ListText, stamp: Option<Stamp>) {
        self.put(of, list.whole(), stamp);
    }

    /// The running single-flight of a list, or a new one.
    pub(in crate::service) fn reading(self: &Arc<Self>, of: &ListOf) -> Arc<Reading> {
        self.readings.get_or_insert_with(of.clone(), || Reading {
            of: of.clone(),
            cache: Arc::downgrade(self),
            last: SingleFlight::default(),
        })
    }

    /// The cached entry, if it holds this list.
    fn cached(&self, of: &ListOf, list: &Arc<Whole>) -> Option<Cached> {
        match self.held.peek(&CacheKey::List(of.clone()))? {
            Held::List(cached) => Some(cached).filter(|cached| Arc::ptr_eq(&cached.list, list)),
            Held::Statuses { .. } => None,
        }
    }

    /// Inserts a list that has grown again, with its new weight.
    fn update_size(&self, of: &ListOf, list: &Arc<Whole>) {
        if let Some(cached) = self.cached(of, list) {
            self.put(of, list, cached.stamp);
        }
    }

    fn put(&self, of: &ListOf, list: &Arc<Whole>, stamp: Option<Stamp>) {
        let cached = Cached {
            list: Arc::clone(list),
            bytes: list.bytes() as u64,
            stamp,
        };
        self.held.insert(CacheKey::List(of.clone()), Held::List(cached));
    }

    /// The table of a workspace: the one in the cache or in use, or a new one.
    pub(in crate::service) fn statuses(&self, of: WorkspaceId, make: impl FnOnce() -> Statuses) -> Arc<Statuses> {
        if let Some(Held::Statuses { shared, .. }) = self.held.get(&CacheKey::Statuses(of)) {
            return shared;
        }
        self.statuses.get_or_insert_with(of, make)
    }

    /// Whether the table of a workspace is in the cache.
    pub(in crate::service) fn has_statuses(&self, of: WorkspaceId) -> bool {
        self.held.contains_key(&CacheKey::Statuses(of))
    }

    /// Inserts a table with its weight.
    pub(in crate::service) fn keep_statuses(&self, of: WorkspaceId, shared: &Arc<Statuses>, bytes: u64) {
        let shared = Arc::clone(shared);
        self.held
            .insert(CacheKey::Statuses(of), Held::Statuses { shared, bytes });
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

/// The single-flight of one list. It exists while a request waits for it, or holds a list that it has read.
#[derive(Debug)]
pub(in crate::service) struct Reading {
    of: ListOf,
    cache: Weak<Cache>,
    last: SingleFlight<Last>,
}

/// The last list that was read, while a request holds it. It may be too large for the cache.
#[derive(Debug, Default)]
pub(in crate::service) struct Last(Weak<Whole>);

impl Last {
    /// The list, if it is not older than this revision.
    pub(in crate::service) fn since(&self, revision: u64) -> Option<ListText> {
        let list = self.0.upgrade().filter(|list| list.cursor.revision() >= revision)?;
        Some(ListText::new(list))
    }

    pub(in crate::service) fn set(&mut self, list: &ListText) {
        self.0 = Arc::downgrade(list.whole());
    }
}

impl Reading {
    /// Waits until this request may read the list.
    pub(in crate::service) async fn lead(&self) -> Leader<'_, Last> {
        self.last.lead().await
    }
}

impl ListCache for Reading {
    fn has(&self, list: &Arc<Whole>) -> bool {
        self.cache
            .upgrade()
            .is_some_and(|cache| cache.cached(&self.of, list).is_some())
    }

    fn update_size(&self, list: &Arc<Whole>) {
        if let Some(cache) = self.cache.upgrade() {
            cache.update_size(&self.of, list);
        }
    }
}
