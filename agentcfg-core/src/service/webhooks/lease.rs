//! The lease of a webhook: among all servers, one sends at a time.

use crate::service::records::{Stored, WebhookState};

/// The state of a webhook as the sender has seen it, for the decision whether a session may take the lease.
pub(super) struct LeaseSeen {
    pub(super) version: u64,
}

impl LeaseSeen {
    /// How long a lease lasts without a commit of its holder, in milliseconds. Each process measures it by its own
    /// monotonic clock from the moment at which it first saw the state, so clocks that differ do no harm.
    pub(super) const LEASE: i64 = 20_000;

    /// Whether the lease may be taken: it is free, or it is the one whose end was awaited.
    pub(super) fn may_take(&self, state: &Stored<WebhookState>, holder: &str) -> bool {
        match state.value.lease.as_deref() {
            None => true,
            Some(other) => other == holder || state.version == self.version,
        }
    }
}
