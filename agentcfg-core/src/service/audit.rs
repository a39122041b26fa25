//! The audit log: what the mutations wrote, newest first.

use super::access::Access;
use super::past::missing;
use super::records::{self, Entries, StoredEntry, StoredEntryHead};
use super::{AgentCfg, Caller};
use crate::error::Error;
use crate::model::{AuditEntry, AuditFilter, Permission, Timestamp, WorkspaceId};

/// The number of entries in a list that names no limit.
const DEFAULT_LIMIT: u32 = 100;

/// How many entries are read at once. Entries that a filter does not select are dropped before the next ones are read.
const PAGE: usize = 256;

/// How far the times of entries may be out of order, in milliseconds: clocks of servers differ, and one may be set back. A
/// search by time reads entries of one day more at either end.
const DISORDER: i64 = 24 * 60 * 60 * 1000;

impl AgentCfg {
    /// The entries of a workspace's audit log, newest first: at most `limit` after skipping `offset`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `audit_log:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// for entry in service.audit_log(&ada, studio, 0, 100).await? {
    ///     println!("{}: {} did {} to {}", entry.created_at, entry.actor.id, entry.action, entry.target.id);
    /// }
    /// # assert_eq!(service.audit_log(&ada, studio, 0, 1).await?[0].action, Action::AgentCreated);
    /// # Ok(()) }) }
    /// ```
    pub async fn audit_log(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, Error> {
        let filter = AuditFilter {
            offset,
            limit: Some(u32::try_from(limit).unwrap_or(u32::MAX)),
            ..AuditFilter::default()
        };
        self.search_audit_log(caller, workspace, &filter).await
    }

    /// The entries of a workspace's audit log that a filter selects, newest first.
    ///
    /// The log is read in pages from its end, or from where the filter's revision or time says, until there are enough
    /// entries. An entry that the filter does not select is never in memory for longer than its page.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `audit_log:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let of_writer = AuditFilter { target_id: Some("writer".into()), ..AuditFilter::default() };
    /// let entries = service.search_audit_log(&ada, studio, &of_writer).await?;
    /// assert_eq!((entries.len(), entries[0].revision), (1, 2));
    /// # Ok(()) }) }
    /// ```
    pub async fn search_audit_log(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditEntry>, Error> {
        let access = self.access(caller, workspace, Permission::AuditLogRead).await?;
        let limit = usize::try_from(filter.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
        let mut last = self.revision(&access).await?;
        if let Some(before) = filter.before {
            last = last.min(before.saturating_sub(1));
        }
        let mut skip = filter.offset;
        if !filter.selects_some() {
            // Entries are numbered without gaps, so the offset says where to start.
            last = last.saturating_sub(skip);
            skip = 0;
        }
        if let Some(until) = filter.until {
            last = self.last_entry_by(&access, last, until.plus_millis(DISORDER)).await?;
        }
        let mut selected = Vec::new();
        while last > 0 && selected.len() < limit {
            let after = records::audit_entry::<StoredEntryHead>(access.workspace(), last + 1);
            let entries = Entries::in_workspace(access.workspace()).after(&after).descending();
            let page = match filter.selects_some() {
                true => PAGE,
                false => PAGE.min(limit - selected.len()),
            };
            let found = self.scan(entries.limit(page)).await?;
            if found.is_empty() {
                break;
            }
            for entry in found {
                last = entry.key().entry_number()? - 1;
                let head = entry.value()?;
                if filter
                    .since
                    .is_some_and(|since| head.created_at < since.plus_millis(-DISORDER))
                {
                    return Ok(selected);
                }
                if !filter.selects(&head) {
                    continue;
                }
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                selected.push(entry.value_as::<StoredEntry>()?.shown(last + 1));
                if selected.len() == limit {
                    break;
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(selected)
    }

    /// The number of the last entry up to `last` that was made by a moment, as far as times are in order.
    async fn last_entry_by(&self, access: &Access, last: u64, moment: Timestamp) -> Result<u64, Error> {
        let (mut low, mut high) = (0, last + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let key = records::audit_entry::<StoredEntryHead>(access.workspace(), middle);
            let entry = self.read(key).await?.ok_or_else(missing)?;
            match entry.value.created_at <= moment {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(low)
    }
}

impl AuditFilter {
    /// Whether the filter selects by what an entry holds.
    fn selects_some(&self) -> bool {
        self.actor.is_some()
            || self.action.is_some()
            || self.target_type.is_some()
            || self.target_id.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }

    fn selects(&self, entry: &StoredEntryHead) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted == text);
        is(&self.actor, &entry.actor.id)
            && self
                .action
                .as_ref()
                .is_none_or(|wanted| is_action(wanted, &entry.action))
            && is(&self.target_type, &entry.target.kind)
            && is(&self.target_id, &entry.target.id)
            && self.since.is_none_or(|since| entry.created_at >= since)
            && self.until.is_none_or(|until| entry.created_at < until)
    }
}

/// Whether an action is the one that is wanted, or one of the family that is, such as `agent.*`.
fn is_action(wanted: &str, action: &str) -> bool {
    match wanted.strip_suffix(".*") {
        Some(family) => action.split_once('.').is_some_and(|(found, _)| found == family),
        None => wanted == action,
    }
}

#[cfg(test)]
mod tests {
    use super::is_action;

    #[test]
    fn an_action_is_wanted_exactly_or_by_its_family() {
        for wanted in ["agent.created", "agent.*"] {
            assert!(is_action(wanted, "agent.created"), "{wanted}");
        }
        for wanted in [
            "agent",
            "agent.",
            "agent.c*",
            "*",
            ".*",
            "agents.*",
            "agent.created.*",
            "agent.created ",
        ] {
            assert!(!is_action(wanted, "agent.created"), "{wanted}");
        }
    }
}
