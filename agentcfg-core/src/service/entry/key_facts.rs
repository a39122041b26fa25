//! What a request needs to know of an API key's record.

use crate::model::{Permission, PermissionSet, Scope, Timestamp, WorkspaceId};
use crate::service::Settings;
use crate::service::records::StoredApiKey;
use crate::store::{Stamp, Store};

/// The fields of an API key's record, at one version, that a request needs. A revoked key has none.
#[derive(Clone, Copy)]
pub(in crate::service) struct KeyFacts {
    pub(in crate::service) version: u64,
    pub(in crate::service) workspace_id: WorkspaceId,
    pub(in crate::service) permissions: PermissionSet,
    pub(in crate::service) rate_limit: u32,
    pub(in crate::service) scope: Scope,
    /// In milliseconds since the Unix epoch, the greatest number for never; an `Option` would take twice the memory.
    expires_at: i64,
    /// The validity token: it tells without a read whether the record has changed.
    stamp: Option<Stamp>,
}

impl KeyFacts {
    /// The facts of a record that is not revoked. The stamp was taken before the record was read.
    pub(in crate::service) fn of(
        stored: &StoredApiKey,
        version: u64,
        stamp: Option<Stamp>,
        settings: &Settings,
    ) -> Self {
        let mut permissions = stored.scope.permissions();
        if stored.scope == Scope::Write && !settings.write_scope_configures_agents {
            permissions = permissions.without(Permission::AgentsConfigure);
        }
        Self {
            version,
            workspace_id: stored.workspace_id,
            permissions,
            rate_limit: stored.rate_limit,
            scope: stored.scope,
            expires_at: stored.expires_at.map_or(i64::MAX, Timestamp::unix_millis),
            stamp,
        }
    }

    /// The same facts of the same version, which was read again after this stamp was taken.
    pub(super) fn with_stamp(self, stamp: Option<Stamp>) -> Self {
        Self { stamp, ..self }
    }

    /// Whether a read would find the same record.
    pub(in crate::service) fn are_current(&self, store: &dyn Store) -> bool {
        self.stamp.is_some_and(|stamp| store.is_current(stamp))
    }

    /// When the key expires, if it does.
    pub(in crate::service) fn expires_at(&self) -> Option<Timestamp> {
        (self.expires_at != i64::MAX).then(|| Timestamp::from_unix_millis(self.expires_at))
    }

    /// Whether the key has expired. For keys without an expiry the clock is not read.
    pub(in crate::service) fn are_expired(&self, now: impl FnOnce() -> Timestamp) -> bool {
        self.expires_at != i64::MAX && now().unix_millis() >= self.expires_at
    }
}
