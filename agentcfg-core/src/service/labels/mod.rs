//! Labels: names that point at versions of agents, and are moved to release one.
//!
//! All labels of an agent are one record. The check of its version in the commit makes a move compare-and-set and
//! bounds their number. A version that a label points at is never removed, so the commit that moves a label to an older
//! version also checks that it is still there.

mod compare;
mod history;
mod moves;
mod promote;
mod restore;

pub use self::history::LabelHistory;
pub(super) use self::moves::ReleasedVersions;
use super::access::Access;
use super::agent_labels::Labels;
use super::agents::agent_key;
use super::change::Change;
use super::records::{self, Stored, StoredLabel};
use super::retry::Attempt;
use super::versions::is_version;
use super::{AgentCfg, Caller, not_found};
use crate::error::{Error, ErrorKind};
use crate::model::change_path;
use crate::model::{
    Action, AgentId, AgentLabel, Change as FieldChange, Changes, IdRef, Label, LabelTarget, Patch, Permission,
    StoredAgent, Success, TargetType, Timestamp, WorkspaceId,
};
use crate::validate::{IntoValid, Invalid, MAX_LABELS};

impl AgentCfg {
    /// Makes a label of an agent point at a version, and makes the label if there is none. A deactivated agent has
    /// labels too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a text that is no label and for `latest`, [`ErrorKind::Forbidden`] without
    /// `agents:release`, [`ErrorKind::NotFound`] for an unknown agent or version and where the agent lacks the label
    /// whose version is taken, [`ErrorKind::Precondition`] when the label does not point at
    /// [`LabelTarget::expected_version`], [`ErrorKind::PlanLimit`] when the agent has 20 labels already.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let label = service.set_label(&ada, Some(studio), "writer", "production", LabelTarget::new(1)).await?;
    /// assert_eq!(label.version, 1);
    /// // Compare and set: the label must not exist.
    /// let new = LabelTarget::new(1).expected_version(Patch::Null);
    /// assert!(service.set_label(&ada, Some(studio), "writer", "production", new).await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub async fn set_label(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        label: impl TryInto<Label, Error = Invalid>,
        target: impl IntoValid<LabelTarget>,
    ) -> Result<AgentLabel, Error> {
        let (agent_id, label, target) = (agent_id.into(), movable(label)?, target.into_valid()?);
        self.retry_lost_races(|| self.try_set_label(caller, workspace, agent_id, &label, &target))
            .await
    }

    async fn try_set_label(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: IdRef<'_, AgentId>,
        label: &Label,
        target: &LabelTarget,
    ) -> Result<Attempt<AgentLabel>, Error> {
        let access = self
            .access_default(caller, workspace, Permission::AgentsRelease)
            .await?;
        let (found, labels) = self.labels_of(&access, agent_id).await?;
        // What `latest` names is a decision on the agent's record.
        let is_latest = target.label.as_ref().is_some_and(Label::is_latest);
        let is_current = is_latest.then(|| found.unchanged());
        let agent = found.value;
        let agent_id = agent.agent.agent_id.clone();
        let current = agent.version();
        let version = match (target.version, &target.label) {
            (Some(version), _) => version,
            (None, Some(other)) => labels
                .version_of(other, current)
                .ok_or_else(|| no_label(&agent_id, other))?,
            (None, None) => return Err(Invalid::new("version or label", "is required").into()),
        };
        is_version(version, current, &agent_id)?;
        let present = labels.version(label);
        let is_expected = match &target.expected_version {
            Patch::Absent => true,
            Patch::Null => present.is_none(),
            Patch::Set(expected) => present == Some(*expected),
        };
        if !is_expected {
            let present = present.map_or("does not exist".to_owned(), |version| {
                format!("points at version {version}")
            });
            return Err(Error::new(
                ErrorKind::Precondition,
                format!("the label {label:?} of the agent {agent_id:?} {present}, which is not expected_version"),
            ));
        }
        if let Some(found) = labels.label(label).filter(|found| found.version == version) {
            return Ok(Attempt::Done(found.clone().shown(&agent_id, label)));
        }
        if present.is_none() && labels.count() >= MAX_LABELS {
            return Err(too_many(&agent_id));
        }
        let is_there = self.check_of_version(&agent, version).await?;
        let now = self.now();
        let stored = label_at(&access, version, now);
        let changes = Changes::from([moved(&agent_id, label, present, Some(version))]);
        let change = Change::new(&access, now, Action::LabelSet, TargetType::Agent, agent_id.as_str());
        let change = change.audit_changes(&changes)?.about_version(version);
        let checks = is_there.into_iter().chain(is_current);
        let change = change.extended(|transaction| labels.set(label, &stored).write(transaction.check_all(checks)))?;
        self.apply(change).await?.attempt(stored.shown(&agent_id, label))
    }

    /// Removes a label of an agent. The version that it points at stays.
    ///
    /// # Errors
    ///
    /// As [`Self::set_label`]; [`ErrorKind::NotFound`] also when the agent does not have the label.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.set_label(&ada, Some(studio), "writer", "staging", LabelTarget::new(1)).await?;
    /// service.remove_label(&ada, Some(studio), "writer", "staging").await?;
    /// assert!(service.get_version(&ada, Some(studio), "writer", "staging").await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub async fn remove_label(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        label: impl TryInto<Label, Error = Invalid>,
    ) -> Result<Success, Error> {
        let (agent_id, label) = (agent_id.into(), movable(label)?);
        self.retry_lost_races(|| async {
            let access = self
                .access_default(caller, workspace, Permission::AgentsRelease)
                .await?;
            let (agent, labels) = self.labels_of(&access, agent_id).await?;
            let agent_id = agent.value.agent.agent_id.as_str();
            let version = labels.version(&label).ok_or_else(|| no_label(agent_id, &label))?;
            let changes = Changes::from([moved(agent_id, &label, Some(version), None)]);
            let change = Change::new(&access, self.now(), Action::LabelRemoved, TargetType::Agent, agent_id);
            let change = change.audit_changes(&changes)?;
            let change = change.extended(|transaction| labels.without(&label).write(transaction))?;
            self.apply(change).await?.attempt(Success::OK)
        })
        .await
    }

    async fn labels_of(
        &self,
        access: &Access,
        agent_id: IdRef<'_, AgentId>,
    ) -> Result<(Stored<StoredAgent>, Labels), Error> {
        let agent_key = agent_key(access, agent_id)?;
        let key = records::labels(access.workspace(), agent_id.as_str());
        let (agent, found) = self.read((agent_key, key.clone())).await?;
        let agent = agent.ok_or_else(|| not_found("agent", agent_id.as_str()))?;
        Ok((agent, Labels::of(key, found)))
    }
}

/// Reads a label that is to be moved or removed.
fn movable(label: impl TryInto<Label, Error = Invalid>) -> Result<Label, Error> {
    let label = label.try_into()?;
    if label.is_latest() {
        let rule = "must not be latest, which is always the current version";
        return Err(Invalid::new("label", rule).into());
    }
    Ok(label)
}

fn label_at(access: &Access, version: u64, updated_at: Timestamp) -> StoredLabel {
    StoredLabel {
        version,
        updated_at,
        actor: access.actor(),
    }
}

/// The change of a label for the audit entry.
fn moved(agent_id: &str, label: &Label, from: Option<u64>, to: Option<u64>) -> (String, FieldChange) {
    let change = FieldChange {
        from: from.into(),
        to: to.into(),
    };
    (change_path::of_label(agent_id, label), change)
}

fn no_label(agent_id: &str, label: &Label) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("the agent {agent_id:?} has no label {label:?}"),
    )
}

fn too_many(agent_id: &AgentId) -> Error {
    Error::new(
        ErrorKind::PlanLimit,
        format!("the agent {agent_id:?} has {MAX_LABELS} labels, and more are not possible"),
    )
}
