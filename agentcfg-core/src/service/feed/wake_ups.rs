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
use crate::model::{UserId, WorkspaceId};
use crate::store::{Key, Kind, Notifier, Record, Watcher};

/// How often the heads of the watched logs are read. An event must reach the streams of other servers within a second,
/// the time of the read and of the event included.
const EVERY: Duration = Duration::from_millis(500);

/// How many ended entries a watch may fall behind. A watch that missed one reads once without need.
pub(in crate::service) const ENDED_ENTRIES: usize = 64;

/// What callers have entered by, and has ended without an entry in the log of a workspace.
#[derive(Debug, Clone)]
pub(in crate::service) enum EndedEntry {
    /// The browser session with this hash was closed.
    Session(Arc<str>),
    /// An operator has removed the user, whom a group may have let in.
    User(UserId),
}

/// Tells a watch when the entry of its caller, a user, has ended.
pub(super) struct EntryEnd(Option<(UserId, Option<Arc<str>>, broadcast::Receiver<EndedEntry>)>);

impl EntryEnd {
    /// Waits until the entry may have ended.
    pub(super) async fn ended(&mut self) {
        let Some((user, session, ended)) = &mut self.0 else {
            return pending().await;
        };
        loop {
            match ended.recv().await {
                Ok(EndedEntry::Session(hash)) if session.as_ref() != Some(&hash) => {}
                Ok(EndedEntry::User(removed)) if removed != *user => {}
                _ => return,
            }
        }
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

    /// The signal that this service has closed this caller's browser session, or removed the user.
    pub(super) fn entry_end(&self, caller: &Caller) -> EntryEnd {
        let user = caller.user_id().ok().cloned();
        let session = caller.browser_session().cloned();
        EntryEnd(user.map(|user| (user, session, self.inner.ended_entries.subscribe())))
    }

    /// Wakes the watches whose callers have entered by this.
    pub(in crate::service) fn entry_ended(&self, ended: EndedEntry) {
        // An error only means that no watch listens.
        let _ = self.inner.ended_entries.send(ended);
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
