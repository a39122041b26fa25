//! Which calls a reader of usage selects, and may see.

use crate::clock::HOUR;
use crate::error::{Error, ErrorKind};
use crate::model::{Permission, Timestamp, UsageCallFilter, UsageFilter};
use crate::service::access::Access;
use crate::service::key_limits::KeyLimits;
use crate::service::records::CallGroup;
use crate::validate::Invalid;

const DAYS: i64 = 30;

/// The selection of a query of sums.
pub(super) struct Selection {
    /// Hours since the Unix epoch: from the first one on, and before the second one.
    pub(super) from: i64,
    pub(super) to: i64,
    /// Which of the calls in this time.
    pub(super) calls: Calls,
}

/// Which calls a caller asked for and may see. Everything that narrows what a caller sees is in [`Self::has`], for sums
/// and for single calls.
pub(super) struct Calls {
    agent_id: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    key: Option<String>,
    label: Option<String>,
    status: Option<u32>,
    limits: KeyLimits,
}

impl Selection {
    /// The selection of a filter.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) for the filter `key` without `audit_log:read`, and
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) where the time ends before it begins.
    pub(super) fn of(access: &Access, filter: &UsageFilter, now: Timestamp) -> Result<Self, Error> {
        let calls = Calls {
            agent_id: filter.agent_id.clone(),
            model: filter.model.clone(),
            provider: filter.provider.clone(),
            key: filter.key.clone(),
            label: filter.label.clone(),
            status: None,
            limits: access.limits().clone(),
        };
        let calls = calls.allowed(access)?;
        let hour = |at: Timestamp| at.unix_millis().div_euclid(HOUR);
        let to = filter.to.map_or(hour(now) + 1, hour);
        let from = filter.from.map_or(to - DAYS * 24, hour);
        if from > to {
            let rule = match filter.to {
                Some(_) => "must not be after to",
                None => "must not be in the future",
            };
            return Err(Invalid::new("from", rule).into());
        }
        Ok(Self { from, to, calls })
    }
}

impl Calls {
    /// The selection of a list of single calls.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) for the filter `key` without `audit_log:read`.
    pub(super) fn of(access: &Access, filter: &UsageCallFilter) -> Result<Self, Error> {
        let calls = Self {
            agent_id: filter.agent_id.clone(),
            model: filter.model.clone(),
            provider: None,
            key: filter.key.clone(),
            label: None,
            status: filter.status,
            limits: access.limits().clone(),
        };
        calls.allowed(access)
    }

    fn allowed(self, access: &Access) -> Result<Self, Error> {
        if self.key.is_some() {
            require_audit(access, "the filter key")?;
        }
        if let Some(agent_id) = &self.agent_id {
            self.limits.require_agent(agent_id)?;
        }
        Ok(self)
    }

    /// Whether calls of this group are selected.
    pub(super) fn has(&self, group: &CallGroup) -> bool {
        let is =
            |wanted: &Option<String>, found: Option<&str>| wanted.as_deref().is_none_or(|wanted| found == Some(wanted));
        self.limits.includes(&group.agent_id)
            && is(&self.agent_id, Some(&group.agent_id))
            && is(&self.model, group.model.as_deref())
            && is(&self.provider, Some(group.provider.as_str()))
            && is(&self.key, group.key.as_deref())
            && is(&self.label, group.label.as_deref())
            && self.status.is_none_or(|status| status == u32::from(group.status))
    }
}

/// Refuses what shows who called without the permission for it.
pub(super) fn require_audit(access: &Access, what: &str) -> Result<(), Error> {
    access.require(Permission::AuditLogRead).map_err(|error| {
        let message = format!("{what} shows who called: {error}");
        Error::new(ErrorKind::Forbidden, message)
    })
}
