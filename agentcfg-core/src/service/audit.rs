//! The audit log: what the mutations wrote, newest first.

use super::records::{self, Entries};
use super::{AgentCfg, Caller};
use crate::error::Error;
use crate::model::{AuditEntry, Permission, WorkspaceId};

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
        let access = self.access(caller, workspace, Permission::AuditLogRead).await?;
        let last = self.revision(&access).await?;
        if offset >= last {
            return Ok(Vec::new());
        }
        // Entries are numbered without gaps, so the offset says where to start.
        let after = records::audit_entry(access.workspace(), last - offset + 1);
        let entries = Entries::in_workspace(access.workspace()).after(&after).descending();
        self.scan(entries.limit(limit)).await?.into_values()
    }
}
