//! What an import would make of the agents of a workspace. What was changed there, or made there, is not overwritten unless that
//! is asked for.

use std::collections::{BTreeMap, BTreeSet};

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{
    Agent, AgentId, AgentState, AgentVersion, AppliedAgent, ApplyAction, ApplyAgents, Cursor, Label, LabelFilter,
    VersionPage,
};

use super::import_report::{Report, Row};
use super::importer::{Importer, Ready, batches, source_version};
use crate::agent_file::Problem;
use crate::failure::Result;

/// What is to be made.
#[derive(Default)]
pub struct Plan<'a> {
    /// The versions of each agent that the workspace does not have, oldest first.
    pub pending: BTreeMap<&'a str, Vec<&'a Ready>>,
    /// The labels, by agent, that must stay where they are.
    pub kept_labels: BTreeSet<(String, String)>,
    /// The state that the plan is based on.
    pub base: Option<Cursor>,
}

impl Importer<'_> {
    /// Compares the agents with those of the workspace, and notes in the report what becomes of each.
    pub async fn plan<'a>(&self, ready: &'a [Ready], label: Option<&Label>, report: &mut Report) -> Result<Plan<'a>> {
        let known = self.known().await?;
        let mut plan = Plan::default();
        let again = self.pending(&known, ready, &mut plan)?;
        let planned = self.dry_run(&mut plan).await?;
        let (mut refused, mut kept) = (BTreeSet::new(), BTreeSet::new());
        for (agent_id, pending) in &plan.pending {
            let Some((last, result)) = pending.last().zip(planned.get(agent_id)) else {
                report.did(agent_id, "unchanged", Vec::new());
                report.unchanged += 1;
                continue;
            };
            let changes = changed_fields(result);
            let agent = known.get(*agent_id);
            let mut is_kept = result.action == ApplyAction::Keep && pending.len() == 1;
            if !is_kept
                && again.contains(agent_id)
                && let Some(agent) = agent.filter(|agent| agent.is_active)
            {
                // What differs is what the source says beside the version, such as its labels.
                is_kept = self.made_current(&agent.agent_id).await?;
            }
            let reason = match agent.filter(|_| !is_kept && !self.overwrite) {
                Some(agent) => self.reason(agent, &changes).await?,
                None => None,
            };
            if let Some(reason) = reason {
                let problem = Problem::new(&last.imported.file, last.imported.place, reason);
                report.problems.push(Row::from(&problem));
                report.did(agent_id, "refused", changes);
                refused.insert(*agent_id);
                continue;
            }
            if is_kept {
                kept.insert(*agent_id);
            }
            match (agent, is_kept) {
                (None, _) => report.did(agent_id, "create", Vec::new()),
                (Some(_), true) => {
                    report.did(agent_id, "unchanged", Vec::new());
                    report.unchanged += 1;
                }
                (Some(agent), false) if !agent.is_active => report.did(agent_id, "restore", changes),
                (Some(_), false) => report.did(agent_id, "change", changes),
            }
        }
        plan.pending.retain(|agent_id, _| !refused.contains(agent_id));
        for (_, pending) in plan.pending.iter_mut().filter(|(agent_id, _)| kept.contains(*agent_id)) {
            pending.clear();
        }
        self.labels_to_keep(&known, label, &mut plan, report).await?;
        Ok(plan)
    }

    /// Notes in the plan the versions of each agent that the workspace does not have. Returns the agents of which it has all, whose newest
    /// version is noted, to be compared: they may have been edited since.
    fn pending<'a>(
        &self,
        known: &BTreeMap<String, Agent>,
        ready: &'a [Ready],
        plan: &mut Plan<'a>,
    ) -> Result<BTreeSet<&'a str>> {
        for one in ready {
            let agent_id = one.imported.agent_id.as_str();
            let pending = plan.pending.entry(agent_id).or_default();
            let last = match known.get(agent_id) {
                Some(agent) => source_version(self.word, &agent.config())?,
                None => None,
            };
            if one.imported.version.is_none() || one.imported.version > last {
                pending.push(one);
            }
        }
        let mut again = BTreeSet::new();
        for one in ready.iter().filter(|one| one.imported.version.is_some()) {
            let agent_id = one.imported.agent_id.as_str();
            if let Some(pending) = plan.pending.get_mut(agent_id)
                && (pending.is_empty() || again.contains(agent_id))
                && known.contains_key(agent_id)
            {
                *pending = vec![one];
                again.insert(agent_id);
            }
        }
        for one in ready {
            let agent_id = one.imported.agent_id.as_str();
            let is_active = known.get(agent_id).is_none_or(|agent| agent.is_active);
            if let (false, Some(pending)) = (is_active, plan.pending.get_mut(agent_id)) {
                // Its newest version is what brings a deactivated agent back.
                let is_newer = |last: &&&Ready| last.imported.version < one.imported.version;
                if pending.is_empty() || pending.last().filter(is_newer).is_some() {
                    *pending = vec![one];
                }
            }
        }
        Ok(again)
    }

    /// What an apply of the newest pending version of each agent would do. The plan is based on the state that it saw.
    async fn dry_run<'a>(&self, plan: &mut Plan<'a>) -> Result<BTreeMap<&'a str, AppliedAgent>> {
        let newest: Vec<&Ready> = plan
            .pending
            .values()
            .filter_map(|pending| pending.last().copied())
            .collect();
        let mut planned = BTreeMap::new();
        for batch in batches(&newest)? {
            let body = ApplyAgents::of(batch.iter().map(|one| one.spec.clone()).collect());
            let applied = self.client.apply_agents(self.workspace, &body, true).await?;
            plan.base.get_or_insert(applied.cursor);
            let ids = batch.iter().map(|one| one.imported.agent_id.as_str());
            planned.extend(ids.zip(applied.results));
        }
        Ok(planned)
    }

    /// The agents of the workspace by their identifiers.
    async fn known(&self) -> Result<BTreeMap<String, Agent>> {
        let filter = AgentFilter::default().state(AgentState::All);
        let agents = self.client.list_agents(self.workspace, &filter).await?.value;
        Ok(agents
            .into_iter()
            .map(|agent| (agent.agent_id.to_string(), agent))
            .collect())
    }

    /// Why an agent that differs is not overwritten: no import of this format made its current version.
    async fn reason(&self, agent: &Agent, changes: &[String]) -> Result<Option<String>> {
        let agent_id = &agent.agent_id;
        if !agent.is_active {
            return Ok(Some(format!(
                "the agent {agent_id} is deactivated in the workspace, and stays so: --overwrite restores it"
            )));
        }
        let is_own = self.made_current(agent_id).await?;
        let what = match changes {
            [] => "another history".to_owned(),
            changes => format!("another {}", changes.join(", ")),
        };
        Ok((!is_own).then(|| {
            format!(
                "the agent {agent_id} of the workspace was changed since its import, or made by other means, and has \
                 {what}: --overwrite replaces it"
            )
        }))
    }

    /// Whether an import of this format made the current version of an agent.
    async fn made_current(&self, agent_id: &AgentId) -> Result<bool> {
        let page = VersionPage::default().limit(Some(1));
        let versions = self.client.list_versions(Some(self.workspace), agent_id, page).await?;
        Ok(versions.first().is_some_and(|version| self.is_own(version)))
    }

    /// Whether an import of this format made a version.
    fn is_own(&self, version: &AgentVersion) -> bool {
        version.message.as_ref().is_some_and(|message| {
            let rest = message.strip_prefix(self.mark);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    }

    /// Finds the labels that would move from a version that no import made.
    async fn labels_to_keep(
        &self,
        known: &BTreeMap<String, Agent>,
        label: Option<&Label>,
        plan: &mut Plan<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let mut wanted: BTreeMap<(String, String), &Ready> = BTreeMap::new();
        for (agent_id, pending) in &plan.pending {
            for one in pending.iter().filter(|_| known.contains_key(*agent_id)) {
                for label in one
                    .imported
                    .labels
                    .iter()
                    .map(String::as_str)
                    .chain(label.map(|label| &**label))
                {
                    wanted.insert(((*agent_id).to_owned(), label.to_owned()), one);
                }
            }
        }
        if wanted.is_empty() || self.overwrite {
            return Ok(());
        }
        let present = self.client.list_labels(self.workspace, LabelFilter::default()).await?;
        let mut own: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for have in present {
            let key = (have.agent_id.to_string(), have.label.to_string());
            let Some(one) = wanted.get(&key) else { continue };
            if !own.contains_key(&key.0) {
                let page = VersionPage::default().limit(Some(1000));
                let versions = self
                    .client
                    .list_versions(Some(self.workspace), &have.agent_id, page)
                    .await?;
                let versions = versions.iter().filter(|version| self.is_own(version));
                own.insert(key.0.clone(), versions.map(|version| version.version).collect());
            }
            if own.get(&key.0).is_some_and(|own| own.contains(&have.version)) {
                continue;
            }
            let message = format!(
                "the label {} of {} is at version {}, which no import made, and stays there: --overwrite moves it",
                have.label, have.agent_id, have.version
            );
            let problem = Problem::new(&one.imported.file, one.imported.place, message);
            report.problems.push(Row::from(&problem));
            plan.kept_labels.insert(key);
        }
        Ok(())
    }
}

/// The names of the fields that an apply changes.
fn changed_fields(result: &AppliedAgent) -> Vec<String> {
    let names = result.changes.keys().map(|name| name.to_string());
    names.filter(|name| name != "is_active").collect()
}
