//! What the sender remembers of each webhook, and the order in which webhooks get sessions.

use std::collections::HashMap;
use std::hash::Hash;

use super::lease::LeaseSeen;
use super::session::End;
use super::session_permits::Account;
use crate::model::{Timestamp, WebhookId, WorkspaceId};
use crate::service::records::{Stored, WebhookState};

/// The pause after a failed session, in milliseconds.
const REST: i64 = 10_000;

/// How long a webhook with the maximum of pending events reads no further ones, in milliseconds, unless an attempt is
/// due before.
const FULL: i64 = 10_000;

/// The sender's memory of a webhook, so that an idle one costs no more than the read of its version.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WebhookMemory {
    /// The version of the state that the other fields come from.
    pub(super) version: u64,
    /// The last revision up to which there was nothing to send.
    pub(super) position: u64,
    next_at: Option<Timestamp>,
    /// Whether the receiver fails or is slow.
    pub(super) is_late: bool,
    /// Whether another process holds the lease.
    is_leased: bool,
    /// When this version was first seen, by the monotonic clock.
    since: i64,
    /// The time before which no session begins, by the monotonic clock.
    not_before: i64,
    /// The time before which no session begins for new events alone, by the monotonic clock.
    reads_after: i64,
    /// When the last session began, by the monotonic clock.
    pub(super) began_at: Option<i64>,
    /// The head of the log when the last session began.
    pub(super) began_head: u64,
    pub(super) is_active: bool,
    /// Whether the log has grown since the session began. The session may have ended without reading the new entries.
    pub(super) has_more: bool,
}

/// A webhook with something to send.
pub(super) struct DueWebhook {
    /// See [`WebhookMemory::began_at`].
    pub(super) began_at: Option<i64>,
    /// The head of the log.
    pub(super) head: u64,
    pub(super) workspace: WorkspaceId,
    pub(super) id: WebhookId,
    pub(super) is_late: bool,
    /// Who it is accounted to; found once the webhook is due.
    pub(super) account: Account,
}

/// The order in which webhooks get sessions. Accounts alternate, and so do the workspaces of each, so that one with
/// thousands of slow receivers delays no other. Within a workspace, the webhook whose last session began first comes
/// first, so that none starves. Late webhooks have sessions of their own
/// ([`SessionPermits`](super::session_permits::SessionPermits)), so they are ordered apart.
pub(super) fn in_turn(mut due: Vec<DueWebhook>) -> Vec<DueWebhook> {
    due.sort_by_key(|due| due.began_at);
    let due = alternating(due, |due| (due.workspace, due.is_late));
    alternating(due, |due| (due.account.clone(), due.is_late))
}

/// Takes the first of each group, then the second of each, and so on.
fn alternating<K: Eq + Hash>(due: Vec<DueWebhook>, group: impl Fn(&DueWebhook) -> K) -> Vec<DueWebhook> {
    let mut counts: HashMap<K, usize> = HashMap::new();
    let mut ranked: Vec<(usize, DueWebhook)> = Vec::with_capacity(due.len());
    for due in due {
        let count = counts.entry(group(&due)).or_default();
        ranked.push((*count, due));
        *count += 1;
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, due)| due).collect()
}

impl WebhookMemory {
    /// Stores what a read of the state found.
    pub(super) fn read(&mut self, state: &Stored<WebhookState>, holder: &str, steady: i64) {
        *self = Self {
            version: state.version,
            position: state.value.position,
            next_at: state.value.next_at(),
            is_late: state.value.is_late(),
            is_leased: state.value.lease.as_deref().is_some_and(|other| other != holder),
            since: steady,
            not_before: self.not_before,
            reads_after: i64::MIN,
            began_at: self.began_at,
            began_head: self.began_head,
            is_active: false,
            has_more: false,
        };
    }

    /// Whether no other process holds the lease.
    pub(super) fn is_free(&self, steady: i64, is_shared: bool) -> bool {
        !self.is_leased || !is_shared || steady - self.since >= LeaseSeen::LEASE
    }

    /// Whether a session should begin.
    pub(super) fn is_due(&self, head: u64, now: Timestamp, steady: i64, is_shared: bool) -> bool {
        let has_new = head > self.position && steady >= self.reads_after;
        let has_work = has_new || self.next_at.is_some_and(|next| next <= now);
        !self.is_active && self.is_free(steady, is_shared) && has_work && steady >= self.not_before
    }

    /// Stores the result of a session.
    pub(super) fn end(&mut self, end: Option<&End>, steady: i64) {
        self.is_active = false;
        match end {
            Some(End::Nothing(position)) => self.position = *position,
            // Wait for the next attempt, or until another version of the record is stored.
            Some(End::Full) => self.reads_after = steady + FULL,
            // The session has written the state, so it must be read again.
            Some(End::Done) => self.version = 0,
            None => {
                self.version = 0;
                self.not_before = steady + REST;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn due(account: &str, workspace: u128, id: u128, began_at: Option<i64>) -> DueWebhook {
        DueWebhook {
            began_at,
            head: 1,
            workspace: WorkspaceId::new(Uuid::from_u128(workspace)),
            id: WebhookId::new(Uuid::from_u128(id)),
            is_late: false,
            account: Some(account.parse().unwrap()),
        }
    }

    fn order(due: Vec<DueWebhook>) -> Vec<u128> {
        in_turn(due).iter().map(|due| due.id.as_uuid().as_u128()).collect()
    }

    #[test]
    fn workspaces_alternate_and_the_longest_wait_is_first() {
        // The workspace 1 has many, the workspace 2 one whose turn was last, and the workspace 3 a new one.
        let all = vec![
            due("ada", 1, 10, Some(50)),
            due("ada", 1, 11, Some(10)),
            due("ada", 1, 12, Some(30)),
            due("ada", 2, 20, Some(90)),
            due("ada", 3, 30, None),
        ];
        assert_eq!(order(all), [30, 11, 20, 12, 10]);
        // Two late ones of the workspace 1 have waited longest, and take no rank from its other one.
        let late = |id| DueWebhook {
            is_late: true,
            ..due("ada", 1, id, Some(1))
        };
        let all = vec![
            late(10),
            late(11),
            due("ada", 1, 12, Some(5)),
            due("ada", 2, 20, Some(90)),
            due("ada", 2, 21, Some(91)),
        ];
        assert_eq!(order(all), [10, 12, 20, 11, 21]);
    }

    #[test]
    fn an_account_with_many_workspaces_delays_no_other() {
        let mut all: Vec<_> = (1..=5).map(|id| due("ada", id, id, Some(1))).collect();
        all.push(due("grace", 9, 90, Some(9)));
        all.push(due("grace", 9, 91, Some(10)));
        assert_eq!(order(all), [1, 90, 2, 91, 3, 4, 5]);
    }
}
