//! Promotion: a label of several agents moves to where another one points, in one commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::agent_labels::Labels;
use super::super::change::Change;
use super::super::past::PastAgent;
use super::super::records::{self, EntityKey, Stored, StoredLabels, Turn};
use super::super::retry::Attempt;
use super::super::{AgentCfg, Caller, not_found};
use super::{label_at, moved, no_label, too_many};
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, Agent, AgentId, Changes, Label, Permission, PromotedLabel, Promotion, SetName, StoredAgent, TargetType,
    WorkspaceId,
};
use crate::validate::{IntoValid, MAX_LABELS, MAX_PROMOTED};

impl AgentCfg {
    /// Moves a label to the version that another label points at, for several agents in one commit: all of them or
    /// none.
    ///
    /// With `dry_run` everything is decided and nothing is changed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for labels that are the same and for `latest` as the one to move,
    /// [`ErrorKind::Forbidden`] without `agents:release` (a dry run needs `agents:read`), [`ErrorKind::Precondition`]
    /// when one of the labels has moved since [`Promotion::base`], [`ErrorKind::NotFound`] when an agent that is named
    /// is unknown, deleted or lacks the label `from`, [`ErrorKind::PlanLimit`] for more than 1,000 agents and for one
    /// with 20 labels already.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let release = Promotion::new("latest".parse()?, "production".parse()?);
    /// let planned = service.promote_labels(&ada, studio, release.clone(), true).await?;
    /// let promoted = service.promote_labels(&ada, studio, release, false).await?;
    /// assert_eq!(planned, promoted);
    /// assert_eq!((promoted[0].version, promoted[0].previous_version), (1, None));
    /// # Ok(()) }) }
    /// ```
    pub async fn promote_labels(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        promotion: impl IntoValid<Promotion>,
        dry_run: bool,
    ) -> Result<Vec<PromotedLabel>, Error> {
        let (service, caller) = (self.clone(), caller.clone());
        let promotion = Arc::new(promotion.into_valid()?.into_inner());
        self.retry_decision(workspace, move |turn| {
            let (service, caller, promotion) = (service.clone(), caller.clone(), Arc::clone(&promotion));
            async move {
                service
                    .try_promote(&caller, workspace, &promotion, dry_run, &turn)
                    .await
            }
        })
        .await
    }

    async fn try_promote(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        promotion: &Promotion,
        dry_run: bool,
        turn: &Turn,
    ) -> Result<Attempt<Vec<PromotedLabel>>, Error> {
        let permission = Permission::AgentsRelease.unless_dry_run(dry_run);
        let access = self.access(caller, workspace, permission).await?;
        let (to, now) = (&promotion.to, self.now());
        for agent_id in promotion.agent_ids.iter().flatten() {
            access.limits().require_agent(agent_id)?;
        }
        let mut change = Change::new(
            &access,
            now,
            Action::LabelPromoted,
            TargetType::Workspace,
            workspace.to_string(),
        );
        let mut since = None;
        if let Some(base) = promotion.base {
            let head = self.read_head(workspace).await?;
            let last;
            (change, last) = change.decided_on(head);
            since = Some((base, last));
        }
        let (mut change, labelled) = match (&promotion.agent_ids, &promotion.set) {
            (Some(ids), _) => self.named_labelled_agents(change, &promotion.from, ids).await?,
            (None, Some(set)) => match self.labelled_agents_of_set(change, &promotion.from, set).await? {
                Some(found) => found,
                None => return Ok(Attempt::Raced),
            },
            (None, None) => self.all_labelled_agents(change, &promotion.from).await?,
        };
        // After the agents that are named were found: 404 goes before 412.
        if let Some((base, last)) = since {
            self.require_unmoved(base, workspace, last, &[&promotion.from, to], access.limits())
                .await?;
        }
        if labelled.len() > MAX_PROMOTED {
            return Err(too_many_labelled_agents(&promotion.from));
        }
        let mut promoted = Vec::with_capacity(labelled.len());
        let mut changes = Changes::new();
        for LabelledAgent {
            agent_id,
            version,
            labels,
        } in labelled
        {
            let previous_version = labels.version(to);
            if previous_version != Some(version) {
                if previous_version.is_none() && labels.count() >= MAX_LABELS {
                    return Err(too_many(&agent_id));
                }
                changes.extend([moved(&agent_id, to, previous_version, Some(version))]);
                let labels = labels.set(to, &label_at(&access, version, now));
                change = change.extended(|transaction| labels.write(transaction))?;
            }
            promoted.push(PromotedLabel {
                agent_id,
                label: to.clone(),
                version,
                previous_version,
            });
        }
        if dry_run || changes.is_empty() {
            return Ok(Attempt::Done(promoted));
        }
        let change = change.audit_changes(&changes)?;
        self.apply_in_turn(change, turn).await?.attempt(promoted)
    }

    /// The agents of these identifiers with the version that a label points at; one that lacks it is an error.
    async fn named_labelled_agents<'a>(
        &self,
        change: Change<'a>,
        from: &Label,
        ids: &[AgentId],
    ) -> Result<(Change<'a>, Vec<LabelledAgent>), Error> {
        let workspace = change.access.workspace();
        let ids: BTreeSet<&AgentId> = ids.iter().collect();
        let keys = ids.iter().map(|id| keys(workspace, id)).collect::<Vec<_>>();
        let (change, found) = change.decided_on(self.read_moment(keys).await?);
        let labelled = ids.into_iter().zip(found).map(|(id, found)| {
            let (agent, labels) = active(workspace, id, found).ok_or_else(|| not_found("agent", id))?;
            LabelledAgent::of(agent.version(), agent.agent, labels, from).ok_or_else(|| no_label(id, from))
        });
        Ok((change, labelled.collect::<Result<_, Error>>()?))
    }

    /// The active agents of a set that have a label, by identifier; `None` when the set has changed since it was asked
    /// which they are.
    async fn labelled_agents_of_set<'a>(
        &self,
        change: Change<'a>,
        from: &Label,
        set: &SetName,
    ) -> Result<Option<(Change<'a>, Vec<LabelledAgent>)>, Error> {
        let workspace = change.access.workspace();
        let set = records::agent_set(workspace, set);
        let asked = self.read(set.clone()).await?;
        let version = asked.as_ref().map(|set| set.version);
        let mut ids = asked.map(|set| set.value.agents).unwrap_or_default();
        ids.retain(|id| change.access.limits().includes(id));
        let keys = ids.iter().map(|id| keys(workspace, id)).collect::<Vec<_>>();
        let (change, (set, found)) = change.decided_on(self.read_moment((set, keys)).await?);
        if set.map(|set| set.version) != version {
            return Ok(None);
        }
        let labelled = ids.iter().zip(found).filter_map(|(id, found)| {
            let (agent, labels) = active(workspace, id, found)?;
            LabelledAgent::of(agent.version(), agent.agent, labels, from)
        });
        Ok(Some((change, labelled.collect())))
    }

    /// All active agents that have a label, by identifier.
    async fn all_labelled_agents<'a>(
        &self,
        change: Change<'a>,
        from: &Label,
    ) -> Result<(Change<'a>, Vec<LabelledAgent>), Error> {
        let limits = change.access.limits();
        let choose = |(agent, version): PastAgent, labels: Labels| {
            let is_promoted = agent.is_active && limits.includes(&agent.agent_id);
            is_promoted.then(|| LabelledAgent::of(version, agent, labels, from))?
        };
        let found = self.choose_agents(change.access.workspace(), choose).await?;
        Ok(change.decided_on(found))
    }
}

/// An agent that has a label, which points at this version.
struct LabelledAgent {
    agent_id: AgentId,
    version: u64,
    labels: Labels,
}

impl LabelledAgent {
    /// An agent with its current version, if it has the label.
    fn of(current: u64, agent: Agent, labels: Labels, label: &Label) -> Option<Self> {
        Some(Self {
            version: labels.version_of(label, current)?,
            agent_id: agent.agent_id,
            labels,
        })
    }
}

/// What is read of an agent that may be promoted.
fn keys(workspace: WorkspaceId, id: &AgentId) -> (EntityKey<StoredAgent>, EntityKey<StoredLabels>) {
    (records::agent(workspace, id), records::labels(workspace, id))
}

/// An agent with its labels, if it is there and active.
fn active(
    workspace: WorkspaceId,
    id: &AgentId,
    (agent, labels): (Option<Stored<StoredAgent>>, Option<Stored<StoredLabels>>),
) -> Option<(StoredAgent, Labels)> {
    let agent = agent.filter(|agent| agent.value.agent.is_active)?.value;
    Some((agent, Labels::of(records::labels(workspace, id), labels)))
}

fn too_many_labelled_agents(from: &Label) -> Error {
    Error::new(
        ErrorKind::PlanLimit,
        format!("more than {MAX_PROMOTED} agents have the label {from:?}: name at most {MAX_PROMOTED} in agent_ids"),
    )
}
