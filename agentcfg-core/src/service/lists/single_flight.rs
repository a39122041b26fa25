//! The single-flight of a list: one request reads it at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::list::{AgentList, Whole};
use super::{ListOf, Lists};

/// The reading of one list, which one request does for all concurrent ones. It exists while a request waits for
/// it, or holds a list that it read.
#[derive(Debug)]
pub(in crate::service) struct SingleFlight {
    of: ListOf,
    lists: Weak<Lists>,
    failures: AtomicU64,
    /// The request that holds the lock reads.
    lead: tokio::sync::Mutex<Last>,
}

/// The last list that was read, as long as a request holds it: also one that is too large for the cache.
#[derive(Debug, Default)]
pub(in crate::service) struct Last(Weak<Whole>);

impl Last {
    /// The list, unless it is older than this revision.
    pub(in crate::service) fn since(&self, revision: u64) -> Option<AgentList> {
        let list = self.0.upgrade().filter(|list| list.cursor.revision() >= revision)?;
        Some(AgentList::new(list))
    }

    pub(in crate::service) fn set(&mut self, list: &AgentList) {
        self.0 = Arc::downgrade(list.whole());
    }
}

impl SingleFlight {
    pub(super) fn new(of: ListOf, lists: Weak<Lists>) -> Self {
        Self {
            of,
            lists,
            failures: AtomicU64::new(0),
            lead: tokio::sync::Mutex::default(),
        }
    }

    /// Waits until this request may read. If a request is cancelled while it waits or reads, the next one goes on.
    pub(in crate::service) async fn lead(&self) -> tokio::sync::MutexGuard<'_, Last> {
        self.lead.lock().await
    }

    /// How many attempts failed so far.
    pub(in crate::service) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(in crate::service) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether this list is in the cache.
    pub(super) fn is_cached(&self, list: &Arc<Whole>) -> bool {
        self.lists
            .upgrade()
            .is_some_and(|lists| lists.cached(self.of, list).is_some())
    }

    /// Tells the cache that a list takes more memory now.
    pub(super) fn update_size(&self, list: &Arc<Whole>) {
        if let Some(lists) = self.lists.upgrade() {
            lists.update_size(self.of, list);
        }
    }
}

impl Drop for SingleFlight {
    fn drop(&mut self) {
        if let Some(lists) = self.lists.upgrade() {
            lists.remove_flight(self.of);
        }
    }
}
