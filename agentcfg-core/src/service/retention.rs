//! Retention: log entries and versions that are older than the settings keep them are removed.
//!
//! Entries go from the start of the log on, so the rest of the log has no gaps, and its first entry tells where it
//! begins. A version goes some time after another one has replaced it, unless a label points at it, or did at a time
//! that the log still tells of, so that the label can be put back. Long texts of versions are edits of those before
//! them, so versions go in the groups that begin with a whole one. And an entry of the log may name a version as the
//! place of its values, so versions stay until the entries of their changes are gone.

use std::fmt;

use super::AgentCfg;
use super::agent_labels::Labels;
use super::chunked_reads::{self, Chunks};
use super::labels::ReleasedVersions;
use super::records::{
    self, AgentSummary, Encoded, Entries, Outcome, Stored, StoredEntryHead, Transaction, VERSION_GROUP, VersionHead,
    version_group,
};
use crate::clock::{DAY, HOUR};
use crate::error::{Error, ErrorKind};
use crate::model::{Timestamp, WorkspaceId};

/// How much longer than entries the versions are kept that they name, in milliseconds.
const AFTER_ENTRIES: i64 = 2 * HOUR;

/// What [`AgentCfg::remove_old_history`] has removed.
///
/// ```
/// use agentcfg_core::service::RemovedHistory;
/// assert_eq!((RemovedHistory::default().entries, RemovedHistory::default().versions), (0, 0));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedHistory {
    /// Entries of audit logs.
    pub entries: u64,
    /// Versions of agents.
    pub versions: u64,
}

impl AgentCfg {
    /// Removes the audit entries and the versions of all workspaces that are older than
    /// [`Settings::audit_retention_days`](super::Settings::audit_retention_days) and
    /// [`Settings::version_retention_days`](super::Settings::version_retention_days) keep them, and returns how many.
    /// It also removes model calls of workspaces that make none any more; the others do so themselves.
    ///
    /// Call it now and then, as `agentcfg-server` does. Each commit removes a bounded number of records, and several
    /// processes may do it at the same time.
    ///
    /// # Errors
    ///
    /// When storage fails. What was removed until then stays removed.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let settings = Settings::default().audit_retention_days(365);
    /// let service = AgentCfg::builder(MemoryStore::new()).settings(settings)?.build();
    /// assert_eq!(service.remove_old_history().await?.entries, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn remove_old_history(&self) -> Result<RemovedHistory, Error> {
        let mut removed = RemovedHistory::default();
        let settings = self.settings();
        let oldest_entry = settings.audit_retention_days.map(|days| self.days_ago(days));
        // Another server may have removed entries just now, whose readers still look for the versions that they name.
        let oldest_version = oldest_entry.and_then(|oldest| {
            let days = settings.version_retention_days?;
            Some(self.days_ago(days).min(oldest.plus_millis(-AFTER_ENTRIES)))
        });
        let mut workspaces = Chunks::of(records::workspace_places());
        while let Some(piece) = workspaces.next(self).await? {
            for place in piece.into_keys() {
                let workspace = place.workspace()?;
                while !self.remove_old_calls(workspace).await? {}
                let Some(oldest_entry) = oldest_entry else { continue };
                // What the log has before this removal may be in the hands of a reader, with the versions that it
                // names.
                let first = self.first_entry(workspace).await?;
                removed.entries += self.remove_old_entries(workspace, oldest_entry).await?;
                if let Some(oldest) = oldest_version {
                    let horizon = Horizon { oldest, first };
                    removed.versions += self.remove_old_versions(workspace, horizon).await?;
                }
            }
        }
        Ok(removed)
    }

    /// The time this many days ago.
    pub(super) fn days_ago(&self, days: u32) -> Timestamp {
        self.now().plus_millis(-i64::from(days).saturating_mul(DAY))
    }

    /// The number of the first entry that a log has; where it has none, the number of the next one.
    pub(super) async fn first_entry(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        let first = Entries::<StoredEntryHead>::in_workspace(workspace).limit(1);
        let (found, head) = self.scan_with(first, records::revision(workspace)).await?;
        found.first_key().map_or(Ok(head + 1), |key| key.entry_number())
    }

    async fn remove_old_entries(&self, workspace: WorkspaceId, oldest: Timestamp) -> Result<u64, Error> {
        let mut removed = 0;
        let mut pieces = Chunks::of(Entries::<StoredEntryHead>::in_workspace(workspace));
        while let Some(piece) = pieces.next(self).await? {
            let read = piece.len();
            let mut transaction = Transaction::default();
            let mut old = 0;
            for entry in piece {
                if entry.value()?.created_at >= oldest {
                    break;
                }
                transaction = transaction.delete(entry.key().clone());
                old += 1;
            }
            if old > 0 {
                self.commit(transaction).await?;
                removed += old as u64;
            }
            if old < read {
                break;
            }
        }
        Ok(removed)
    }

    async fn remove_old_versions(&self, workspace: WorkspaceId, horizon: Horizon) -> Result<u64, Error> {
        let mut removed = 0;
        let mut released = ReleasedVersions::of(workspace);
        let mut agents = Chunks::of(Entries::<AgentSummary>::in_workspace(workspace));
        while let Some(piece) = agents.next(self).await? {
            let place =
                |agent: Encoded<AgentSummary>| Ok((agent.key().item().to_owned(), agent.value()?.history.versions));
            for (agent_id, current) in chunked_reads::decoded(piece, place).await? {
                let of_agent = (&*agent_id, current);
                removed += self
                    .remove_versions_of(workspace, of_agent, horizon, &mut released)
                    .await?;
            }
        }
        Ok(removed)
    }

    /// Removes the versions of an agent that were replaced before the horizon, group by group.
    async fn remove_versions_of(
        &self,
        workspace: WorkspaceId,
        (agent_id, current): (&str, u64),
        horizon: Horizon,
        released: &mut ReleasedVersions,
    ) -> Result<u64, Error> {
        let (mut removed, mut after) = (0, 0);
        while after + VERSION_GROUP < current {
            let after_key = records::version(workspace, agent_id, after);
            let next = Entries::<VersionHead>::in_workspace(workspace)
                .after(&after_key)
                .limit(1);
            let next = self.scan(next).await?.first_key();
            let Some(first) = next.and_then(|key| key.number_of(agent_id)) else {
                break;
            };
            let group = version_group(first);
            let replaced_by = group.end() + 1;
            let replacement = records::version(workspace, agent_id, replaced_by);
            let labels_key = records::labels(workspace, agent_id);
            let (replacement, labels): (Option<Stored<VersionHead>>, _) =
                self.read((replacement, labels_key.clone())).await?;
            let is_old = match replacement {
                Some(version) => horizon.is_after(&version.value),
                // It was removed before, when this group had a label.
                None => replaced_by <= current,
            };
            if !is_old {
                break;
            }
            let labels = Labels::of(labels_key, labels);
            if !labels.have_any_of(&group) {
                // Read after the labels, so that a move before that is in it; one after it makes the commit fail.
                released.read_on(self).await?;
            }
            if !labels.have_any_of(&group) && !released.have_any_of(agent_id, &group) {
                let mut transaction = Transaction::default().check(labels.unchanged());
                for number in group.clone() {
                    transaction = transaction.delete::<VersionHead>(records::version(workspace, agent_id, number));
                }
                // Where a label has moved meanwhile, the group stays until the next time.
                if let Outcome::Done(_) = self.commit(transaction).await? {
                    removed += group.end() - first + 1;
                }
            }
            after = *group.end();
        }
        Ok(removed)
    }

    /// The error of a read that needs a version which was removed.
    pub(super) fn version_is_removed(&self, what: impl fmt::Display) -> Error {
        let rule = match self.settings().version_retention_days {
            Some(days) => {
                let horizon = self.days_ago(days);
                format!("of the versions replaced before {horizon}, {days} days ago, only those with a label are kept")
            }
            None => "it was removed while version_retention_days was set".to_owned(),
        };
        Error::new(ErrorKind::Gone, format!("{what} is not kept any more: {rule}"))
    }

    /// The error of a version that was there when the label that points at it was read.
    pub(super) fn missing_version(&self) -> fn() -> Error {
        match self.settings().version_retention_days {
            None => records::missing,
            Some(_) => || {
                let moved = "a label has moved while it was read, and its version is removed: repeat the request";
                Error::new(ErrorKind::Unavailable, moved)
            },
        }
    }

    /// The error of a read of a log from before its first entry.
    pub(super) fn entries_are_removed(&self, what: impl fmt::Display, first: u64) -> Error {
        let rule = match self.settings().audit_retention_days {
            Some(days) => format!("its entries are kept for {days} days"),
            None => "earlier entries were removed while audit_retention_days was set".to_owned(),
        };
        let message = format!("{what} is from before revision {first}, where the log begins now: {rule}");
        Error::new(ErrorKind::Gone, message)
    }
}

/// Up to where versions may be removed.
#[derive(Clone, Copy)]
struct Horizon {
    /// The time since which a version must have been replaced to stay.
    oldest: Timestamp,
    /// The first entry of the log that may name versions.
    first: u64,
}

impl Horizon {
    /// Whether what this version has replaced may be removed.
    fn is_after(self, version: &VersionHead) -> bool {
        version.created_at < self.oldest && version.revision < self.first
    }
}
