//! Which calls a reader of usage selects, and may see.

use super::HOUR;
use crate::error::{Error, ErrorKind};
use crate::model::{Permission, Timestamp, UsageFilter};
use crate::service::access::Access;
use crate::service::records::CallGroup;
use crate::validate::Invalid;

const DAYS: i64 = 30;

/// The selection of a query. Everything that narrows what a caller sees is in [`Self::has`].
pub(super) struct Selection {
    /// Hours since the Unix epoch: from the first one on, and before the second one.
    pub(super) from: i64,
    pub(super) to: i64,
    agent_id: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    key: Option<String>,
    label: Option<String>,
}

impl Selection {
    /// The selection of a filter.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) for the filter `key` without `audit_log:read`, and
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) where the time ends before it begins.
    pub(super) fn of(access: &Access, filter: &UsageFilter, now: Timestamp) -> Result<Self, Error> {
        if filter.key.is_some() {
            require_audit(access, "the filter key")?;
        }
        let hour = |at: Timestamp| at.unix_millis().div_euclid(HOUR);
        let to = filter.to.map_or(hour(now) + 1, hour);
        let from = filter.from.map_or(to - DAYS * 24, hour);
        if from > to {
            return Err(Invalid::new("from", "must not be after to").into());
        }
        Ok(Self {
            from,
            to,
            agent_id: filter.agent_id.clone(),
            model: filter.model.clone(),
            provider: filter.provider.clone(),
            key: filter.key.clone(),
            label: filter.label.clone(),
        })
    }

    /// Whether calls of this group are selected.
    pub(super) fn has(&self, group: &CallGroup) -> bool {
        let is =
            |wanted: &Option<String>, found: Option<&str>| wanted.as_deref().is_none_or(|wanted| found == Some(wanted));
        is(&self.agent_id, Some(&group.agent_id))
            && is(&self.model, group.model.as_deref())
            && is(&self.provider, Some(group.provider.as_str()))
            && is(&self.key, group.key.as_deref())
            && is(&self.label, group.label.as_deref())
    }
}

/// Refuses what shows who called without the permission for it.
pub(super) fn require_audit(access: &Access, what: &str) -> Result<(), Error> {
    access.require(Permission::AuditLogRead).map_err(|error| {
        let message = format!("{what} shows who called: {error}");
        Error::new(ErrorKind::Forbidden, message)
    })
}
