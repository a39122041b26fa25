//! Live status in the feed: compared once for all readers of a workspace.
//!
//! The readers of a workspace share a feed. The reader that is woken first reads what has changed in the table of the
//! statuses, gives a number to each entry that changed, and publishes it; each reader remembers the last number that it
//! has seen. Readers that waited while the table was read do not read it again. So neither a report nor a reader costs
//! more where there are more agents. The feed also knows when the next entry grows old, so that no agent needs a timer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::error::Error;
use crate::model::{AgentId, Permission, StatusEvent, WorkspaceId};
use crate::service::access::Access;
use crate::service::single_flight::SingleFlight;
use crate::service::status::{Delta, Statuses, TablePosition};
use crate::service::weak_map::WeakMap;
use crate::service::{AgentCfg, Caller};
use crate::store::{Kind, Watcher};

/// The shortest time in milliseconds between two entries for reports that change their time alone.
const REPORTED_EVERY: i64 = 10_000;

/// The pause of a reader between two reads for reports. Reports that arrive meanwhile share one read.
const READ_EVERY: Duration = Duration::from_millis(100);

/// The feeds of the workspaces whose status is watched.
#[derive(Default)]
pub(in crate::service) struct StatusFeeds(WeakMap<WorkspaceId, StatusFeed>);

/// The status list of one workspace as it was last published.
struct StatusFeed {
    workspace: WorkspaceId,
    state: SingleFlight<PublishedStatuses>,
}

struct PublishedStatuses {
    log: Watcher,
    reports: Watcher,
    /// The table that was read, and the position in its changes.
    read: Option<(Arc<Statuses>, TablePosition)>,
    /// The last published entry of each row.
    shown: Vec<Arc<PublishedEntry>>,
    /// The rows by the number of their last entry.
    rows: BTreeMap<u64, usize>,
    /// The rows whose last report changed its time alone, by the time at which they are published again.
    held_back: BTreeSet<(i64, usize)>,
    /// The number of the last entry that was published.
    last: u64,
    /// When an entry changes without a commit, on the monotonic clock.
    due: Option<i64>,
    is_read: bool,
}

/// A published entry.
struct PublishedEntry {
    number: u64,
    /// When it was published, on the monotonic clock.
    at: i64,
    event: Arc<StatusEvent>,
}

/// One reader of a feed.
pub(super) struct StatusReader {
    feed: Arc<StatusFeed>,
    /// The number of the last entry that was read.
    seen: u64,
    /// The number of the last entry of the last read. [`Self::keep`] stores it as seen once all of the read has
    /// succeeded.
    read: u64,
    reports: Watcher,
    /// Whether a report arrived since the last read.
    is_reported: bool,
    /// The time of the last read, while the pause after it lasts.
    read_at: Option<Instant>,
    pause: Option<Pin<Box<Sleep>>>,
    due: Option<i64>,
}

impl StatusFeeds {
    fn of(&self, service: &AgentCfg, workspace: WorkspaceId) -> Arc<StatusFeed> {
        self.0.get_or_insert_with(workspace, || StatusFeed {
            workspace,
            state: SingleFlight::new(PublishedStatuses {
                log: service.watcher(workspace, Kind::LogHead),
                reports: service.watcher(workspace, Kind::Status),
                read: None,
                shown: Vec::new(),
                rows: BTreeMap::new(),
                held_back: BTreeSet::new(),
                last: 0,
                due: None,
                is_read: false,
            }),
        })
    }
}

impl StatusReader {
    pub(super) fn new(service: &AgentCfg, workspace: WorkspaceId) -> Self {
        Self {
            feed: service.inner.status_feeds.of(service, workspace),
            seen: 0,
            read: 0,
            reports: service.watcher(workspace, Kind::Status),
            is_reported: false,
            read_at: None,
            pause: None,
            due: None,
        }
    }

    /// The entries that changed since the last read, in the order of the list.
    pub(super) async fn read(&mut self, service: &AgentCfg, caller: &Caller) -> Result<Vec<Arc<StatusEvent>>, Error> {
        self.reports.mark_seen();
        self.is_reported = false;
        self.read_at = Some(Instant::now());
        self.pause = None;
        // After the report was marked as seen: a read of the table that begins from now on has it.
        let begun = self.feed.state.begun();
        let access = service
            .access(caller, self.feed.workspace, Permission::AgentsRead)
            .await?;
        let mut state = self.feed.state.lead().await;
        let now = service.inner.clock.steady_millis();
        let is_new_enough = state.is_read && state.is_newer_than(begun);
        if !is_new_enough && state.may_have_changed(now) {
            let attempt = state.begin();
            let refreshed = state.refresh(service, &access, now).await;
            state.end(attempt, refreshed.is_ok());
            refreshed?;
        }
        let mut unseen: Vec<usize> = state.rows.range(self.seen + 1..).map(|(_, row)| *row).collect();
        unseen.sort_unstable();
        let events = unseen.into_iter().map(|row| &state.shown[row].event);
        let events = events.filter(|event| access.limits().includes(&event.agent_id));
        let events = events.cloned().collect();
        self.read = state.last;
        self.due = state.due;
        Ok(events)
    }

    /// Marks the entries of the last read as seen.
    pub(super) fn keep(&mut self) {
        self.seen = self.read;
    }

    /// Waits for a report, or for the moment at which an entry changes without one.
    pub(super) async fn changed(&mut self, service: &AgentCfg) {
        let left = self.due.map(|due| {
            let left = due.saturating_sub(service.inner.clock.steady_millis());
            Duration::from_millis(left.try_into().unwrap_or_default())
        });
        match left {
            None => self.reported().await,
            Some(left) => tokio::select! {
                () = self.reported() => {}
                () = sleep(left) => {}
            },
        }
    }

    /// Waits for a report. Dropping the future loses none.
    async fn reported(&mut self) {
        if !self.is_reported {
            self.reports.changed().await;
            self.is_reported = true;
        }
        if let Some(read_at) = self.read_at {
            let pause = || Box::pin(sleep_until(read_at + READ_EVERY));
            self.pause.get_or_insert_with(pause).await;
            self.read_at = None;
            self.pause = None;
        }
    }
}

impl Delta {
    /// Notes the statuses for the history.
    fn note(&self, service: &AgentCfg, workspace: WorkspaceId) {
        match self {
            Self::All(events) => service.note_statuses(workspace, events),
            Self::Rows(rows) => {
                for (_, event) in rows {
                    service.note_statuses(workspace, std::slice::from_ref(event));
                }
            }
        }
    }
}

impl PublishedStatuses {
    /// Whether the status list may differ from the one that was read.
    fn may_have_changed(&self, now: i64) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        !self.is_read || is_due || self.log.has_changed() || self.reports.has_changed()
    }

    /// Reads the status list, and publishes the entries that have changed.
    async fn refresh(&mut self, service: &AgentCfg, access: &Access, now: i64) -> Result<(), Error> {
        self.log.mark_seen();
        self.reports.mark_seen();
        // Until the read has succeeded, the list is not known.
        self.is_read = false;
        let statuses = match &self.read {
            Some((statuses, _)) => Arc::clone(statuses),
            None => service.statuses(access),
        };
        let table = statuses.current(service, access).await?;
        let Some(table) = &table.table else { return Ok(()) };
        let (delta, position) = table.since(self.read.as_ref().map(|(_, position)| *position));
        delta.note(service, access.workspace());
        match delta {
            Delta::All(events) => self.show_all(events, now),
            Delta::Rows(events) => {
                for (row, event) in events {
                    self.show(row, event, now);
                }
            }
        }
        while let Some((_, row)) = self.held_back.first().copied().filter(|(at, _)| *at <= now) {
            self.held_back.pop_first();
            self.show(row, table.event(row), now);
        }
        self.read = Some((Arc::clone(&statuses), position));
        let held_back = self.held_back.first().map(|(at, _)| *at);
        self.due = table.ages_at().into_iter().chain(held_back).min();
        self.is_read = true;
        Ok(())
    }

    /// Publishes the entries of a new list, as far as they differ.
    fn show_all(&mut self, events: Vec<StatusEvent>, now: i64) {
        let before = std::mem::take(&mut self.shown);
        let before: HashMap<&AgentId, &Arc<PublishedEntry>> =
            before.iter().map(|shown| (&shown.event.agent_id, shown)).collect();
        self.rows.clear();
        self.held_back.clear();
        for (row, event) in events.into_iter().enumerate() {
            match before.get(&event.agent_id) {
                Some(kept) => {
                    self.shown.push(Arc::clone(kept));
                    self.rows.insert(kept.number, row);
                    self.show(row, event, now);
                }
                None => {
                    let shown = self.numbered(event, now);
                    self.rows.insert(shown.number, row);
                    self.shown.push(shown);
                }
            }
        }
    }

    /// Publishes the entry of a row if it has changed. An entry of which only the time has changed may be held back.
    fn show(&mut self, row: usize, event: StatusEvent, now: i64) {
        let before = &self.shown[row];
        if *before.event == event {
            return;
        }
        let next = before.at + REPORTED_EVERY;
        if is_same_but_for_its_time(&before.event, &event) && now < next {
            self.held_back.insert((next, row));
            return;
        }
        self.held_back.remove(&(next, row));
        self.rows.remove(&before.number);
        let shown = self.numbered(event, now);
        self.rows.insert(shown.number, row);
        self.shown[row] = shown;
    }

    fn numbered(&mut self, event: StatusEvent, now: i64) -> Arc<PublishedEntry> {
        self.last += 1;
        Arc::new(PublishedEntry {
            number: self.last,
            at: now,
            event: Arc::new(event),
        })
    }
}

fn is_same_but_for_its_time(a: &StatusEvent, b: &StatusEvent) -> bool {
    a.agent_id == b.agent_id
        && a.display_name == b.display_name
        && a.status == b.status
        && a.current_task_id == b.current_task_id
        && a.current_task_title == b.current_task_title
}
