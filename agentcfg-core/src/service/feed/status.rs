//! Live status in the feed: compared once for all readers of a workspace.
//!
//! The readers of a workspace share a board. The reader that is woken first reads the status list, gives a number to each
//! entry that changed, and publishes it; each reader remembers the last number that it has seen. The board also knows when the
//! next entry grows old, so that no agent needs a timer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::error::Error;
use crate::model::{AgentId, Permission, StatusEvent, WorkspaceId};
use crate::service::access::Access;
use crate::service::{AgentCfg, Caller};
use crate::store::{Kind, Watcher};

/// A report that moves its time alone is shown at most once in so many milliseconds.
const REPORTED_EVERY: i64 = 10_000;

/// The boards of the workspaces whose status is watched.
#[derive(Default)]
pub(in crate::service) struct Boards(Mutex<HashMap<WorkspaceId, Weak<Board>>>);

/// The status list of one workspace as it was last published.
struct Board {
    workspace: WorkspaceId,
    state: tokio::sync::Mutex<State>,
}

struct State {
    log: Watcher,
    reports: Watcher,
    shown: Vec<Arc<Shown>>,
    /// The number of the last entry that was published.
    last: u64,
    /// When an entry will change without a commit, in milliseconds since the Unix epoch.
    due: Option<i64>,
    is_read: bool,
}

/// A published entry.
struct Shown {
    number: u64,
    /// When it was published, in milliseconds since the Unix epoch.
    at: i64,
    event: Arc<StatusEvent>,
}

/// One reader of a board.
pub(super) struct StatusReader {
    board: Arc<Board>,
    /// The number of the last entry that was read.
    seen: u64,
    reports: Watcher,
    due: Option<i64>,
}

impl Boards {
    fn of(&self, service: &AgentCfg, workspace: WorkspaceId) -> Arc<Board> {
        let mut boards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(board) = boards.get(&workspace).and_then(Weak::upgrade) {
            return board;
        }
        boards.retain(|_, board| board.strong_count() > 0);
        let board = Arc::new(Board {
            workspace,
            state: tokio::sync::Mutex::new(State {
                log: service.watcher(workspace, Kind::LogHead),
                reports: service.watcher(workspace, Kind::Status),
                shown: Vec::new(),
                last: 0,
                due: None,
                is_read: false,
            }),
        });
        boards.insert(workspace, Arc::downgrade(&board));
        board
    }
}

impl StatusReader {
    pub(super) fn new(service: &AgentCfg, workspace: WorkspaceId) -> Self {
        Self {
            board: service.inner.boards.of(service, workspace),
            seen: 0,
            reports: service.watcher(workspace, Kind::Status),
            due: None,
        }
    }

    /// The entries that changed since the last read, in the order of the list.
    pub(super) async fn read(&mut self, service: &AgentCfg, caller: &Caller) -> Result<Vec<Arc<StatusEvent>>, Error> {
        self.reports.mark_seen();
        let access = service
            .access(caller, self.board.workspace, Permission::AgentsRead)
            .await?;
        let mut state = self.board.state.lock().await;
        state.refresh(service, &access).await?;
        let unseen = state.shown.iter().filter(|shown| shown.number > self.seen);
        let events = unseen.map(|shown| Arc::clone(&shown.event)).collect();
        self.seen = state.last;
        self.due = state.due;
        Ok(events)
    }

    /// Waits for a report, or for the moment at which an entry changes without one.
    pub(super) async fn changed(&mut self, service: &AgentCfg) {
        let left = self.due.map(|due| {
            let left = due.saturating_sub(service.now().unix_millis());
            Duration::from_millis(left.try_into().unwrap_or_default())
        });
        match left {
            None => self.reports.changed().await,
            Some(left) => tokio::select! {
                () = self.reports.changed() => {}
                () = tokio::time::sleep(left) => {}
            },
        }
    }
}

impl State {
    /// Reads the status list if it may have changed, and publishes the entries that have.
    async fn refresh(&mut self, service: &AgentCfg, access: &Access) -> Result<(), Error> {
        let now = service.now().unix_millis();
        let is_due = self.due.is_some_and(|due| due <= now);
        if self.is_read && !is_due && !self.log.has_changed() && !self.reports.has_changed() {
            return Ok(());
        }
        self.log.mark_seen();
        self.reports.mark_seen();
        // Until the read has succeeded, the list is not known.
        self.is_read = false;
        let found = service.status_events(access).await?;
        let before: HashMap<&AgentId, &Arc<Shown>> =
            self.shown.iter().map(|shown| (&shown.event.agent_id, shown)).collect();
        let mut due = found.ages_at;
        let mut last = self.last;
        let mut shown = Vec::with_capacity(found.events.len());
        for event in found.events {
            let kept = before.get(&event.agent_id).filter(|shown| {
                let moves_its_time = is_same_but_for_its_time(&shown.event, &event);
                moves_its_time && (shown.event.reported_at == event.reported_at || now < shown.at + REPORTED_EVERY)
            });
            match kept {
                Some(kept) => {
                    if kept.event.reported_at != event.reported_at {
                        let next = kept.at + REPORTED_EVERY;
                        due = Some(due.map_or(next, |due| due.min(next)));
                    }
                    shown.push(Arc::clone(kept));
                }
                None => {
                    last += 1;
                    shown.push(Arc::new(Shown {
                        number: last,
                        at: now,
                        event: Arc::new(event),
                    }));
                }
            }
        }
        (self.shown, self.last, self.due, self.is_read) = (shown, last, due, true);
        Ok(())
    }
}

fn is_same_but_for_its_time(a: &StatusEvent, b: &StatusEvent) -> bool {
    a.agent_id == b.agent_id
        && a.display_name == b.display_name
        && a.status == b.status
        && a.current_task_id == b.current_task_id
        && a.current_task_title == b.current_task_title
}
