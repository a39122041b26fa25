//! The workspaces with new events for webhooks, so that the sender need not wait for its next tick.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::model::{WebhookId, WorkspaceId};
use crate::store::{Batch, Kind, Write};
use crate::sync::lock;

/// The events that commits of this service report to its webhook sender. The tick finds the rest: commits of other
/// servers, and commits with an unknown outcome.
#[derive(Debug, Default)]
pub(in crate::service) struct NewEvents {
    /// Whether there is a sender. A commit without one takes no lock.
    is_followed: AtomicBool,
    workspaces: Mutex<Workspaces>,
    noted: Notify,
}

#[derive(Debug, Default)]
struct Workspaces {
    /// The enabled webhooks of each workspace that has any, as the last tick found them; `None` where they may have
    /// changed since.
    with_webhooks: HashMap<WorkspaceId, Option<Vec<WebhookId>>>,
    /// The workspaces with events that the sender has not read.
    changed: HashSet<WorkspaceId>,
}

/// A log entry that a commit appends.
#[derive(Debug, Clone, Copy)]
pub(in crate::service) struct Appended {
    log: WorkspaceId,
    /// Whether the commit writes a webhook too.
    is_of_webhook: bool,
}

impl NewEvents {
    /// Starts to note commits.
    pub(super) fn follow(&self) {
        self.is_followed.store(true, Ordering::Relaxed);
    }

    /// The note for a batch, for [`Self::note`] once it is committed.
    pub(in crate::service) fn of(&self, batch: &Batch) -> Option<Appended> {
        if !self.is_followed.load(Ordering::Relaxed) {
            return None;
        }
        let log = batch.writes.iter().find_map(|write| match write {
            Write::Append { log, .. } => Some(*log),
            _ => None,
        })?;
        let is_of_webhook = batch
            .writes
            .iter()
            .any(|write| matches!(write, Write::Put(key, _) if key.kind() == Kind::Webhook));
        Some(Appended { log, is_of_webhook })
    }

    /// Notes a committed entry.
    pub(in crate::service) fn note(&self, appended: Appended) {
        let mut workspaces = lock(&self.workspaces);
        if appended.is_of_webhook {
            workspaces.with_webhooks.insert(appended.log, None);
        }
        if workspaces.with_webhooks.contains_key(&appended.log) && workspaces.changed.insert(appended.log) {
            self.noted.notify_one();
        }
    }

    /// Notes that the sender must read a workspace again.
    pub(super) fn note_again(&self, workspace: WorkspaceId) {
        if lock(&self.workspaces).changed.insert(workspace) {
            self.noted.notify_one();
        }
    }

    /// Waits until a workspace is noted.
    pub(super) async fn noted(&self) {
        while lock(&self.workspaces).changed.is_empty() {
            self.noted.notified().await;
        }
    }

    /// Takes noted workspaces, each with its enabled webhooks where they are known.
    pub(super) fn take(&self, most: usize) -> Vec<(WorkspaceId, Option<Vec<WebhookId>>)> {
        let Workspaces { with_webhooks, changed } = &mut *lock(&self.workspaces);
        let taken: Vec<WorkspaceId> = changed.iter().take(most).copied().collect();
        changed.retain(|workspace| !taken.contains(workspace));
        let taken = taken.into_iter();
        taken
            .map(|workspace| (workspace, with_webhooks.get(&workspace).cloned().flatten()))
            .collect()
    }

    /// Clears the notes at the begin of a tick, which reads all workspaces.
    pub(super) fn begin_tick(&self) {
        lock(&self.workspaces).changed.clear();
    }

    /// Stores the enabled webhooks that a tick has found.
    pub(super) fn end_tick(&self, found: HashMap<WorkspaceId, Vec<WebhookId>>) {
        let Workspaces { with_webhooks, changed } = &mut *lock(&self.workspaces);
        *with_webhooks = found
            .into_iter()
            .map(|(workspace, ids)| (workspace, Some(ids)))
            .collect();
        // A webhook may have been created after the tick had passed its workspace.
        with_webhooks.extend(changed.iter().map(|workspace| (*workspace, None)));
    }
}
