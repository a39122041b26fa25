//! One table of statuses for all readers of a workspace.
//!
//! A read first looks whether the published texts are those of now, which takes no read of the store where the store tracks
//! changes. If they are not, one reader brings the table up to date, and the others wait for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::super::AgentCfg;
use super::super::access::Access;
use super::super::blocking::blocking;
use super::super::lists::LONG;
use super::super::records::{self, Entries, StoredStatus};
use super::list::{StatusList, Texts};
use super::table::Table;
use crate::error::{Error, ErrorKind};
use crate::model::{Cursor, WorkspaceId};
use crate::store::{Changed, Kind, Tracker};

/// When more than one of so many reports have changed, all are scanned.
const SCANNED_FROM: usize = 4;

/// A table of so many rows is made on the blocking pool. It takes about a millisecond.
const LONG_TABLE: usize = 4096;

/// After so many failures of other reads, a waiting one fails too: where each failure is a timeout, one after the other would
/// take too long.
const PATIENCE: u64 = 2;

/// The statuses of one workspace.
pub(in crate::service) struct Statuses {
    workspace: WorkspaceId,
    /// The changes since the last read; `None` on a store that cannot tell.
    tracker: Option<Tracker>,
    published: RwLock<Option<Published>>,
    /// How many times bringing the table up to date has begun.
    scans: AtomicU64,
    failures: AtomicU64,
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
pub(in crate::service) struct State {
    /// `None` until all was read, and again after a read has failed.
    pub(in crate::service) table: Option<Table>,
    /// The number of the last time that it has ended.
    scanned: u64,
    /// The memory that was counted for the table last.
    bytes: u64,
}

/// What most readers need.
#[derive(Clone)]
struct Published {
    texts: Arc<Texts>,
    cursor: Cursor,
    /// The time of the clock for which it holds: from the first moment to before the second.
    holds: (i64, i64),
}

impl Statuses {
    pub(in crate::service) fn new(workspace: WorkspaceId, tracker: Option<Tracker>) -> Self {
        Self {
            workspace,
            tracker,
            published: RwLock::default(),
            scans: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            state: tokio::sync::Mutex::default(),
        }
    }

    /// The published list, if it is that of now.
    fn published(&self, agents: Cursor, now: i64) -> Option<StatusList> {
        // The tracker first: who takes its changes withdraws the list before.
        if self.tracker.as_ref()?.has_changed() {
            return None;
        }
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        let (from, to) = published.holds;
        let is_current = published.cursor == agents && (from..to).contains(&now);
        is_current.then(|| StatusList::new(published.texts))
    }

    fn publish(&self, published: Option<Published>) {
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = published;
    }

    /// What has changed since the last call of this.
    fn take_changes(&self) -> Changed {
        match &self.tracker {
            None => Changed::All,
            Some(tracker) if tracker.has_changed() => {
                self.publish(None);
                tracker.take()
            }
            Some(_) => Changed::Items(Vec::new()),
        }
    }
}

impl std::fmt::Debug for Statuses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statuses").finish_non_exhaustive()
    }
}

impl AgentCfg {
    /// The statuses of a workspace, which requests share.
    pub(in crate::service) fn statuses(&self, access: &Access) -> Arc<Statuses> {
        let workspace = access.workspace();
        let make = || Statuses::new(workspace, self.store().track(workspace, Kind::Status));
        self.inner.lists.statuses(workspace, make)
    }

    /// The status list as text.
    pub(in crate::service) async fn shared_status_list(&self, access: &Access) -> Result<StatusList, Error> {
        let agents = self.agent_list(access).await?;
        let statuses = self.statuses(access);
        if let Some(list) = statuses.published(agents.cursor(), self.now().unix_millis()) {
            return Ok(list);
        }
        // Less frequent. Boxed, so that the future of the fast path stays small.
        Box::pin(self.new_status_list(access, &statuses)).await
    }

    async fn new_status_list(&self, access: &Access, statuses: &Arc<Statuses>) -> Result<StatusList, Error> {
        let mut state = statuses.current(self, access).await?;
        let Some(table) = state.table.take() else {
            return Err(lost());
        };
        let is_long = table.unwritten_bytes() >= LONG;
        let (texts, table) = blocking_if(is_long, move || {
            let mut table = table;
            (table.texts(), table)
        })
        .await?;
        let texts = texts?;
        statuses.publish(Some(Published {
            texts: Arc::clone(&texts),
            cursor: table.cursor(),
            holds: table.holds(),
        }));
        let bytes = table.bytes() as u64;
        state.table = Some(table);
        // A weight in the cache must not change, so the table is inserted again when it has grown or shrunk.
        if bytes.abs_diff(state.bytes) > state.bytes / 8 || !self.inner.lists.has_statuses(statuses.workspace) {
            state.bytes = bytes;
            self.inner.lists.keep_statuses(statuses.workspace, statuses, bytes);
        }
        Ok(StatusList::new(texts))
    }
}

impl Statuses {
    /// The table, brought up to date.
    pub(in crate::service) async fn current(
        &self,
        service: &AgentCfg,
        access: &Access,
    ) -> Result<tokio::sync::MutexGuard<'_, State>, Error> {
        let (begun, failures) = (self.scans.load(Ordering::SeqCst), self.failures.load(Ordering::SeqCst));
        let mut state = self.state.lock().await;
        if self.failures.load(Ordering::SeqCst) - failures >= PATIENCE {
            return Err(Error::new(ErrorKind::Unavailable, "storage is unavailable, try again"));
        }
        // Without a tracker all is scanned. A scan that has begun after this read did is new enough.
        if self.tracker.is_some() || state.scanned <= begun || state.table.is_none() {
            let table = state.table.take();
            let scan = self.scans.fetch_add(1, Ordering::SeqCst) + 1;
            // A revision that was read before the scan is too old for the readers that share it.
            access.take_revision();
            let refreshed = self.refreshed(service, access, table, scan).await;
            if refreshed.is_err() {
                self.failures.fetch_add(1, Ordering::SeqCst);
            }
            state.table = Some(refreshed?);
            state.scanned = scan;
        }
        if let Some(table) = &mut state.table {
            table.at(service.now().unix_millis());
        }
        Ok(state)
    }

    /// Applies what has changed. When that fails or is cancelled, the table is lost, and the next read makes another.
    async fn refreshed(
        &self,
        service: &AgentCfg,
        access: &Access,
        table: Option<Table>,
        generation: u64,
    ) -> Result<Table, Error> {
        // Before the reads, which see these changes.
        let changed = self.take_changes();
        let agents = service.agent_list(access).await?;
        let (mut table, changed) = match (table, changed) {
            (Some(table), Changed::Items(items)) if table.cursor() == agents.cursor() => (table, Some(items)),
            (Some(table), Changed::All) if table.cursor() == agents.cursor() => (table, None),
            (older, changed) => {
                let (is_long, is_new) = (agents.len() >= LONG_TABLE, older.is_none());
                let ttl = i64::from(service.settings().status_ttl_seconds) * 1000;
                let (table, unknown) =
                    blocking_if(is_long, move || Table::new(&agents, ttl, older, generation)).await?;
                let changed = match changed {
                    Changed::Items(items) if !is_new => Some([items, unknown].concat()),
                    Changed::Items(_) | Changed::All => None,
                };
                (table, changed)
            }
        };
        match changed.filter(|items| items.len() <= table.len().max(SCANNED_FROM) / SCANNED_FROM) {
            Some(items) if items.is_empty() => Ok(table),
            Some(items) => {
                let keys = items.iter().map(|item| records::status(self.workspace, item).encoded());
                let found = service.read(keys.collect::<Vec<_>>()).await?;
                for (item, record) in items.iter().zip(&found) {
                    table.set(item, record.as_ref())?;
                }
                Ok(table)
            }
            None => {
                let entries = Entries::<StoredStatus>::in_workspace(self.workspace);
                let found = service.scan(entries).await?;
                let is_long = found.bytes() >= LONG;
                blocking_if(is_long, move || table.set_all(found.into_iter()).map(|()| table)).await?
            }
        }
    }
}

/// Runs a computation in place, or on the blocking pool when it is long.
async fn blocking_if<T: Send + 'static>(is_long: bool, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    match is_long {
        true => blocking(work).await,
        false => Ok(work()),
    }
}

/// No read leaves the state without a table.
fn lost() -> Error {
    Error::new(ErrorKind::Internal, "the table of the statuses was lost")
}
