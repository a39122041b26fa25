//! The audit log: what the mutations wrote, newest first.

use super::{AgentCfg, Caller, schema};
use crate::error::Error;
use crate::model::{AuditEntry, Permission, WorkspaceId};
use crate::store::{Direction, Key, Kind, Partition, Scan};

impl AgentCfg {
    /// The entries of a workspace's audit log, newest first: at most `limit` after skipping `offset`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `audit_log:read`.
    pub async fn audit_log(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, Error> {
        let access = self.access(caller, workspace, Permission::AuditLogRead).await?;
        let head = Key::log_head(access.workspace());
        let last = self.revision(&access, &head).await?;
        if offset >= last {
            return Ok(Vec::new());
        }
        // Entries are numbered without gaps, so the offset says where to start.
        let after = Key::log_entry(access.workspace(), last - offset + 1);
        let scan = Scan {
            after: Some(after.item().into()),
            direction: Direction::Descending,
            limit,
            ..Scan::all(Partition::Workspace(access.workspace()), Kind::LogEntry)
        };
        let entries = self.store().scan(&scan).await?.entries;
        entries
            .iter()
            .map(|(key, record)| schema::decode(key, record))
            .collect()
    }
}
