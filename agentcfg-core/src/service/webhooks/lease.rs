//! The lease of a webhook: one sender at a time, over several servers.

use crate::service::records::{Stored, WebhookState};

/// The state of a webhook as the sender has seen it, for the decision whether a session may take the lease.
pub(super) struct LeaseSeen {
    pub(super) version: u64,
}

impl LeaseSeen {
    /// How long a lease is kept without a commit of its holder, in milliseconds. Each process measures it on its own steady
    /// clock from the moment at which it first saw the state, so clocks that differ do no harm.
    pub(super) const LEASE: i64 = 20_000;

    /// Whether the lease in this state may be taken: it is free, or the one that has been waited for.
    pub(super) fn may_take(&self, state: &Stored<WebhookState>, holder: &str) -> bool {
        match state.value.lease.as_deref() {
            None => true,
            Some(other) => other == holder || state.version == self.version,
        }
    }
}
