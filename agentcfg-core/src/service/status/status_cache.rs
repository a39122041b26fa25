//! One table of statuses for all readers of a workspace.
//!
//! A read first looks whether the published texts are those of now, which takes no read of the store where the store
//! tracks changes. If they are not, one reader brings the table up to date, and the others wait for it.

use std::sync::{Arc, RwLock};

use super::super::AgentCfg;
use super::super::access::Access;
use super::super::blocking::{LONG, blocking_if};
use super::super::records::{self, StoredStatus};
use super::super::single_flight::{Leader, SingleFlight};
use super::status_list::{StatusList, Texts};
use super::status_table::Table;
use crate::error::{Error, ErrorKind};
use crate::model::{Cursor, WorkspaceId};
use crate::store::{Changed, Kind, Position, Tracker};
use crate::sync::{read_lock, write_lock};

/// The share of changed reports from which all reports are scanned: one in this many.
const SCANNED_FROM: usize = 4;

/// The number of rows from which a table is made on the blocking pool. That takes about a millisecond.
const LONG_TABLE: usize = 4096;

/// The statuses of one workspace.
pub(in crate::service) struct Statuses {
    workspace: WorkspaceId,
    /// The changes since the last read; `None` on a store that does not track them.
    tracker: Option<Tracker>,
    published: RwLock<Option<Published>>,
    state: SingleFlight<SharedStatuses>,
}

#[derive(Default)]
pub(in crate::service) struct SharedStatuses {
    /// `None` until all was read, and again after a read has failed.
    pub(in crate::service) table: Option<Table>,
    /// The position of the changes that the table has, on a store without a tracker.
    position: Option<Position>,
    /// The memory that the cache counts for the table.
    bytes: u64,
}

/// The published list, which most readers need alone.
#[derive(Clone)]
struct Published {
    texts: Arc<Texts>,
    cursor: Cursor,
    /// When it ends to be valid without a change, on the monotonic clock.
    ends_at: i64,
}

impl Statuses {
    pub(in crate::service) fn new(workspace: WorkspaceId, tracker: Option<Tracker>) -> Self {
        Self {
            workspace,
            tracker,
            published: RwLock::default(),
            state: SingleFlight::default(),
        }
    }

    /// The published list, if it is still valid.
    fn published(&self, agents: Cursor, steady_millis: i64) -> Option<StatusList> {
        // The tracker is asked first: a reader that takes its changes withdraws the list before.
        if self.tracker.as_ref()?.has_changed() {
            return None;
        }
        let published = read_lock(&self.published).clone()?;
        let is_current = published.cursor == agents && steady_millis < published.ends_at;
        is_current.then(|| StatusList::new(published.texts))
    }

    fn publish(&self, published: Option<Published>) {
        *write_lock(&self.published) = published;
    }

    /// The tracked changes since the last call; `None` on a store without a tracker.
    fn take_tracked(&self) -> Option<Changed> {
        let tracker = self.tracker.as_ref()?;
        if !tracker.has_changed() {
            return Some(Changed::Items(Vec::new()));
        }
        self.publish(None);
        Some(tracker.take())
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
        self.inner.cache.statuses(workspace, make)
    }

    /// The status list as text.
    pub(in crate::service) async fn shared_status_list(&self, access: &Access) -> Result<StatusList, Error> {
        let agents = self.agent_list(access).await?;
        let statuses = self.statuses(access);
        if let Some(list) = statuses.published(agents.cursor(), self.inner.clock.steady_millis()) {
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
            ends_at: table.ages_at().unwrap_or(i64::MAX),
        }));
        state.table = Some(table);
        statuses.keep(self, &mut state);
        Ok(StatusList::new(texts))
    }
}

impl Statuses {
    /// The table, brought up to date.
    pub(in crate::service) async fn current(
        self: &Arc<Self>,
        service: &AgentCfg,
        access: &Access,
    ) -> Result<Leader<'_, SharedStatuses>, Error> {
        let begun = self.state.begun();
        let mut state = self.state.lead().await;
        if state.is_failing() {
            return Err(Error::new(ErrorKind::Unavailable, "storage is unavailable, try again"));
        }
        // Without a tracker the store is asked. An answer to a question that was asked after this read began is new
        // enough.
        if self.tracker.is_some() || !state.is_newer_than(begun) || state.table.is_none() {
            let older = state.table.take().map(|table| (table, state.position));
            let scan = state.begin();
            // A revision that was read before the scan is too old for the readers that share it.
            access.take_revision();
            let refreshed = self.refreshed(service, access, older, scan).await;
            state.end(scan, refreshed.is_ok());
            let (table, position) = refreshed?;
            (state.table, state.position) = (Some(table), position);
        }
        if let Some(table) = &mut state.table {
            table.at(service.moment());
        }
        if !service.inner.cache.has_statuses(self.workspace) {
            self.keep(service, &mut state);
        }
        Ok(state)
    }

    /// Keeps the table in the cache. A weight there must not change, so it is inserted again when it has grown or
    /// shrunk.
    fn keep(self: &Arc<Self>, service: &AgentCfg, state: &mut SharedStatuses) {
        let cache = &service.inner.cache;
        let bytes = state.table.as_ref().map_or(0, Table::bytes) as u64;
        if bytes.abs_diff(state.bytes) > state.bytes / 8 || !cache.has_statuses(self.workspace) {
            state.bytes = bytes;
            cache.keep_statuses(self.workspace, self, bytes);
        }
    }

    /// Applies the changes. If that fails or is cancelled, the table is lost, and the next read makes a new one.
    async fn refreshed(
        &self,
        service: &AgentCfg,
        access: &Access,
        older: Option<(Table, Option<Position>)>,
        generation: u64,
    ) -> Result<(Table, Option<Position>), Error> {
        // Taken before the reads, which therefore see these changes.
        let tracked = self.take_tracked();
        let agents = service.agent_list(access).await?;
        let (older, position) = older.map_or((None, None), |(table, position)| (Some(table), position));
        let is_new = older.is_none();
        let (mut table, mut items) = match older {
            Some(table) if table.cursor() == agents.cursor() => (table, Vec::new()),
            older => {
                let ttl = service.status_ttl();
                let is_long = agents.len() >= LONG_TABLE;
                blocking_if(is_long, move || Table::new(&agents, ttl, older, generation)).await?
            }
        };
        let is_tracked = tracked.is_some();
        let knows_rest = match tracked {
            Some(Changed::Items(changed)) => {
                items.extend(changed);
                true
            }
            Some(Changed::All) => false,
            None => position.is_some(),
        };
        let reads_items = !is_new && knows_rest && items.len() <= table.len().max(SCANNED_FROM) / SCANNED_FROM;
        if reads_items && !items.is_empty() {
            let keys = items.iter().map(|item| records::status(self.workspace, item).encoded());
            let found = service.read(keys.collect::<Vec<_>>()).await?;
            for (item, record) in items.iter().zip(&found) {
                table.set(item, record.as_ref())?;
            }
        }
        if reads_items && is_tracked {
            return Ok((table, None));
        }
        let since = position.filter(|_| reads_items);
        let changed = service.changed_since::<StoredStatus>(self.workspace, since).await?;
        let (position, is_long) = (changed.position, changed.bytes() >= LONG);
        let table = blocking_if(is_long, move || table.apply(changed).map(|()| table)).await??;
        Ok((table, position))
    }
}

/// The error of a state without a table, which no read leaves.
fn lost() -> Error {
    Error::new(ErrorKind::Internal, "the table of the statuses was lost")
}
