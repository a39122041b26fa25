//! Restoring a label: it goes back to where it pointed at a revision, of all agents in one commit.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::super::agent_labels::Labels;
use super::super::change::Change;
use super::super::past::is_there;
use super::super::records::{self, EntityKey, Turn, VersionHead};
use super::super::retry::Attempt;
use super::super::{AgentCfg, Caller};
use super::moves::MovesSince;
use super::{label_at, moved, too_many};
use crate::error::{Error, ErrorKind};
use crate::model::{Action, Changes, LabelRestore, Permission, RestoredLabel, TargetType, WorkspaceId};
use crate::validate::{IntoValid, MAX_LABELS, MAX_PROMOTED};

impl AgentCfg {
    /// Puts a label of all agents back to where it was at a revision: moved, set again or removed, in one commit.
    /// Answers the labels that moved, those of deactivated agents too; where none did, nothing is recorded.
    ///
    /// With `dry_run` everything is decided and nothing is changed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for `latest` and for a revision that is not there yet, [`ErrorKind::Forbidden`] without
    /// `agents:release` (a dry run needs `agents:read`), [`ErrorKind::Precondition`] when the label has moved since
    /// [`LabelRestore::base`], [`ErrorKind::PlanLimit`] when more than 1,000 labels would move and for an agent with 20
    /// labels already.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let before = service.list_agents(&ada, studio, &Default::default()).await?.value.revision();
    /// service.set_label(&ada, Some(studio), "writer", "production", LabelTarget::new(1)).await?;
    /// let back = LabelRestore::new("production".parse()?, before);
    /// let restored = service.restore_label(&ada, studio, back, false).await?;
    /// assert_eq!((restored[0].version, restored[0].previous_version), (None, Some(1)));
    /// # Ok(()) }) }
    /// ```
    pub async fn restore_label(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        restore: impl IntoValid<LabelRestore>,
        dry_run: bool,
    ) -> Result<Vec<RestoredLabel>, Error> {
        let (service, caller) = (self.clone(), caller.clone());
        let restore = restore.into_valid()?.into_inner();
        let since = MovesSince::new(workspace, restore.label.clone(), restore.revision);
        // Further attempts read only what is new in the log.
        let shared = Arc::new((restore, Mutex::new(since)));
        self.retry_decision(workspace, move |turn| {
            let (service, caller, shared) = (service.clone(), caller.clone(), Arc::clone(&shared));
            async move {
                let (restore, since) = &*shared;
                let since = &mut *since.lock().await;
                service
                    .try_restore(&caller, workspace, restore, since, dry_run, &turn)
                    .await
            }
        })
        .await
    }

    async fn try_restore(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        restore: &LabelRestore,
        since: &mut MovesSince,
        dry_run: bool,
        turn: &Turn,
    ) -> Result<Attempt<Vec<RestoredLabel>>, Error> {
        let permission = Permission::AgentsRelease.unless_dry_run(dry_run);
        let access = self.access(caller, workspace, permission).await?;
        let (label, now) = (&restore.label, self.now());
        let last = self.read(records::revision(workspace)).await?;
        is_there(restore.revision, last)?;
        since.read_to(self, last).await?;
        if let Some(base) = restore.base {
            // Up to the entry that the decision is about, which may be later than `last`.
            self.require_unmoved(base, workspace, since.read(), &[label], access.limits())
                .await?;
        }
        let moved_since = || {
            let all = since.versions().iter();
            all.filter(|(agent_id, _)| access.limits().includes(agent_id))
        };
        let keys = moved_since().map(|(id, version)| {
            // There is no version 0.
            let head: EntityKey<VersionHead> = records::version(workspace, id, version.unwrap_or(0));
            (records::labels(workspace, id), head)
        });
        let found = self
            .read_moment((records::revision(workspace), keys.collect::<Vec<_>>()))
            .await?;
        let change = Change::new(
            &access,
            now,
            Action::LabelRestored,
            TargetType::Workspace,
            workspace.to_string(),
        );
        let (mut change, (head, found)) = change.decided_on(found);
        // The moves and the labels must be of one moment.
        if head != since.read() {
            return Ok(Attempt::Raced);
        }
        let (mut restored, mut changes) = (Vec::new(), Changes::new());
        for ((agent_id, version), (labels, there)) in moved_since().zip(found) {
            let labels = Labels::of(records::labels(workspace, agent_id), labels);
            let (version, previous_version) = (*version, labels.version(label));
            if version == previous_version {
                continue;
            }
            if let (Some(version), None) = (version, there) {
                return Err(self.version_is_removed(format_args!("version {version} of the agent {agent_id:?}")));
            }
            if previous_version.is_none() && labels.count() >= MAX_LABELS {
                return Err(too_many(agent_id));
            }
            changes.extend([moved(agent_id, label, previous_version, version)]);
            let labels = match version {
                Some(version) => labels.set(label, &label_at(&access, version, now)),
                None => labels.without(label),
            };
            change = change.extended(|transaction| labels.write(transaction))?;
            restored.push(RestoredLabel {
                agent_id: agent_id.clone(),
                label: label.clone(),
                version,
                previous_version,
            });
        }
        if restored.len() > MAX_PROMOTED {
            return Err(Error::new(
                ErrorKind::PlanLimit,
                format!(
                    "the label {label:?} of more than {MAX_PROMOTED} agents would move, and at most {MAX_PROMOTED} can"
                ),
            ));
        }
        if dry_run || restored.is_empty() {
            return Ok(Attempt::Done(restored));
        }
        let change = change.audit_changes(&changes)?;
        self.apply_in_turn(change, turn).await?.attempt(restored)
    }
}
