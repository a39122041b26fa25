//! Wake-ups for readers of the feed.
//!
//! A store that is in this process notifies its watchers after each commit. Of a store that other servers share, one
//! task of the service reads the heads of all watched logs in one read, and wakes the readers of those that have moved.
//! Commits of this service wake its own readers at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use std::future::pending;

use tokio::runtime::Handle;
use tokio::sync::broadcast;

use super::super::{AgentCfg, Caller, Inner};
use crate::model::WorkspaceId;
use crate::store::{Key, Kind, Notifier, Record, Watcher};

/// How often the heads of the watched logs are read. An event must reach the streams of other servers within a second,
/// the time of the read and of the event included.
const EVERY: Duration = Duration::from_millis(500);

/// How many closed sessions a watch may fall behind. A watch that missed one reads once without need.
pub(in crate::service) const CLOSED_SESSIONS: usize = 64;

/// Tells a watch when the browser session of its caller was closed, if it has one.
pub(super) struct SessionEnd(Option<(Arc<str>, broadcast::Receiver<Arc<str>>)>);

impl SessionEnd {
    /// Waits until the session may have been closed.
    pub(super) async fn closed(&mut self) {
        let Some((session, closed)) = &mut self.0 else {
            return pending().await;
        };
        while matches!(closed.recv().await, Ok(hash) if hash != *session) {}
    }
}

/// The watched logs of a store that does not notify.
#[derive(Default)]
pub(in crate::service) struct Heads {
    notifier: Notifier,
    is_read: AtomicBool,
}

impl AgentCfg {
    /// A watcher of the records of one kind in one workspace.
    pub(super) fn watcher(&self, workspace: WorkspaceId, kind: Kind) -> Watcher {
        if let Some(watcher) = self.store().watch(workspace, kind) {
            return watcher;
        }
        let heads = &self.inner.heads;
        let watcher = heads.notifier.watch(workspace, kind);
        if !heads.is_read.swap(true, Ordering::SeqCst) {
            match Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn(read_heads(Arc::downgrade(&self.inner)))),
                Err(_) => heads.is_read.store(false, Ordering::SeqCst),
            }
        }
        watcher
    }

    /// The signal for the closing of this caller's browser session by this service.
    pub(super) fn session_end(&self, caller: &Caller) -> SessionEnd {
        let hash = caller.browser_session();
        SessionEnd(hash.map(|hash| (Arc::clone(hash), self.inner.closed_sessions.subscribe())))
    }

    /// Wakes the readers of records that this service has committed to a store that does not notify.
    pub(in crate::service) fn notify(&self, touched: Vec<(WorkspaceId, Kind)>) {
        self.inner.heads.notifier.notify(touched);
    }

    /// Whether [`Self::notify`] would wake a reader.
    pub(in crate::service) fn is_watched(&self) -> bool {
        self.inner.heads.notifier.is_watched()
    }
}

/// Reads the heads of the watched logs until none is watched, or the service is dropped.
async fn read_heads(service: Weak<Inner>) {
    let mut seen: HashMap<Key, Option<Record>> = HashMap::new();
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(inner) = service.upgrade() else { return };
        let heads = &inner.heads;
        if !heads.notifier.is_watched() {
            heads.is_read.store(false, Ordering::SeqCst);
            // A watcher that registered just before found this task running and started none, so check again.
            if !heads.notifier.is_watched() || heads.is_read.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        let watched = heads.notifier.watched();
        let of_kind = |kind| watched.iter().filter(move |(_, found)| *found == kind);
        // Status reports are in no log, so their readers compare them each time.
        heads.notifier.notify(of_kind(Kind::Status).copied());
        let keys: Vec<Key> = of_kind(Kind::LogHead)
            .map(|(workspace, _)| Key::log_head(*workspace))
            .collect();
        let records = match inner.store.get(&keys).await {
            Ok(records) => records,
            Err(error) => {
                tracing::warn!(%error, "could not read the heads of the watched logs, trying again");
                continue;
            }
        };
        let read: HashMap<Key, Option<Record>> = keys.into_iter().zip(records).collect();
        let moved = of_kind(Kind::LogHead).filter(|(workspace, _)| {
            let key = Key::log_head(*workspace);
            // A reader that joined since the last read has read by itself; to wake it again is harmless.
            seen.get(&key) != read.get(&key)
        });
        heads.notifier.notify(moved.copied());
        seen = read;
    }
}
