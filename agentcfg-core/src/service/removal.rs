//! The end of a workspace: its deletion, and the removal of all that it held.
//!
//! A deletion is one commit: the workspace's record goes, and a [`StoredRemoval`] says that the rest is to follow. Then
//! all memberships are removed, and after them all API keys and webhooks: without a member, no commit can add one. Only
//! then is the deletion answered. What is left is removed in the background, in pieces that are commits of their own,
//! so that a removal goes on after a crash where it stopped. Each piece deletes what it found, which does no harm when
//! another server has deleted it already. The [`StoredRemoval`] is deleted last.

use super::chunked_reads;
use super::records::{self, Entries, StoredRemoval};
use super::retry::Attempt;
use super::{AgentCfg, Caller, no_member};
use crate::error::{Error, ErrorKind};
use crate::model::{Permission, Success, WorkspaceId};
use crate::store::{Batch, CommitError, Kind, Partition, PartitionKind, Scan, Write};
use crate::validate::Invalid;

impl AgentCfg {
    /// Deletes a workspace with all that it holds, for good.
    ///
    /// When this returns, on every server, its API keys are refused and its members are members no more. The records
    /// are removed after that by a task on the caller's runtime; [`AgentCfg::remove_deleted_workspaces`] resumes a
    /// removal that was cut off. No audit entry is written, because the audit log is removed too; a line of the log of
    /// the process says who deleted which workspace.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `workspace:manage` and for an API key, [`ErrorKind::Invalid`] when `confirm` is
    /// not the name of the workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let name = service.list_workspaces(&ada).await?[0].workspace.name.clone();
    /// service.delete_workspace(&ada, studio, &name).await?;
    /// assert!(service.list_workspaces(&ada).await?.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub async fn delete_workspace(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        confirm: &str,
    ) -> Result<Success, Error> {
        caller.user_id()?;
        self.retry_lost_races(|| self.try_delete_workspace(caller, workspace, confirm))
            .await?;
        let revoked = self.revoke_all(workspace).await;
        let service = self.clone();
        self.in_background(async move {
            if let Err(error) = service.remove_deleted_workspaces().await {
                tracing::warn!(?error, %workspace, "could not remove all records of a deleted workspace, trying again later");
            }
        });
        // The deletion is committed, so an error that says that nothing was changed would be wrong.
        let not_all =
            "the workspace is deleted, but some of its credentials may be valid for a while yet; repeat the request";
        revoked.map_err(|error| Error::new(ErrorKind::OutcomeUnknown, not_all).because(error))?;
        Ok(Success::OK)
    }

    async fn try_delete_workspace(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        confirm: &str,
    ) -> Result<Attempt<()>, Error> {
        let access = self.access(caller, workspace, Permission::WorkspaceManage).await?;
        let marker = records::removal(access.workspace());
        let (found, begun) = self
            .read((records::workspace(access.workspace()), marker.clone()))
            .await?;
        let name = match (&found, &begun) {
            (Some(found), _) => found.value.name.clone(),
            // A deletion that failed halfway is repeated.
            (None, Some(begun)) => begun.value.name.clone(),
            (None, None) => return Err(no_member()),
        };
        if confirm != name {
            return Err(Invalid::new("confirm", "must be the exact name of the workspace").into());
        }
        let Some(found) = found else {
            return Ok(Attempt::Done(()));
        };
        let stored = StoredRemoval {
            name,
            deleted_at: self.now(),
        };
        let transaction = access
            .transaction()
            .check(found.unchanged())
            .delete(found.key)
            .delete(records::workspace_place(workspace))
            .put(marker, &stored)?;
        let attempt = self.commit(transaction).await?.attempt(())?;
        if matches!(attempt, Attempt::Done(())) {
            let user = access.actor().id;
            tracing::warn!(%workspace, name = stored.name, user, "a workspace was deleted, its records are being removed");
        }
        Ok(attempt)
    }

    /// Removes what deleted workspaces have left in the store, and returns how many removals this call has finished.
    ///
    /// [`AgentCfg::delete_workspace`] starts this. Call it at the start of a process and now and then, as
    /// `agentcfg-server` does, so that a removal which a crash or an outage has cut off goes on. Several processes may
    /// do it at the same time.
    ///
    /// # Errors
    ///
    /// When storage fails. What was removed until then stays removed.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// assert_eq!(service.remove_deleted_workspaces().await?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn remove_deleted_workspaces(&self) -> Result<u64, Error> {
        let _turn = self.inner.removing.lock().await;
        let mut failure = None;
        let mut finished = 0;
        let removals = self.scan(Entries::<StoredRemoval>::of(records::removals())).await?;
        for removal in removals.into_keys() {
            // One that fails does not hold up the others.
            match self.remove_workspace(removal.workspace()?).await {
                Ok(()) => finished += 1,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(finished), Err)
    }

    async fn remove_workspace(&self, workspace: WorkspaceId) -> Result<(), Error> {
        self.revoke_all(workspace).await?;
        let kinds = Kind::ALL.into_iter();
        for kind in kinds.filter(|kind| kind.partition_kind() == PartitionKind::Workspace) {
            self.remove_kind(workspace, kind).await?;
        }
        let marker = records::removal(workspace).into();
        self.store().end_removal(workspace, marker).await?;
        tracing::info!(%workspace, "all records of a deleted workspace are removed");
        Ok(())
    }

    /// Removes all memberships, then all API keys, and then the webhooks, so that no further event is sent.
    async fn revoke_all(&self, workspace: WorkspaceId) -> Result<(), Error> {
        for kind in [Kind::Member, Kind::WorkspaceApiKey, Kind::Webhook, Kind::WebhookState] {
            self.remove_kind(workspace, kind).await?;
        }
        Ok(())
    }

    /// Removes all records of one kind, and the records outside the workspace's partition that belong to them.
    async fn remove_kind(&self, workspace: WorkspaceId, kind: Kind) -> Result<(), Error> {
        let scan = Scan {
            limit: chunked_reads::RECORDS,
            max_bytes: chunked_reads::BYTES,
            ..Scan::all(Partition::Workspace(workspace), kind)
        };
        loop {
            let found = self.store().scan(&scan).await?.entries;
            if found.is_empty() {
                return Ok(());
            }
            let keys = found.into_iter().flat_map(|(key, _)| {
                let mut keys = key.linked();
                keys.push(key);
                keys
            });
            let batch = Batch {
                checks: Vec::new(),
                writes: keys.map(Write::Delete).collect(),
            };
            match self.store().commit(batch).await {
                Ok(_) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
                Err(refused) => {
                    return Err(Error::new(ErrorKind::Internal, "a deletion was refused").because(refused));
                }
            }
        }
    }
}
