//! What an import would make of the agents of a workspace. What was changed there, or made there, is not overwritten
//! unless that is asked for.

use std::collections::{BTreeMap, BTreeSet};

use agentcfg_client::model::{
    Agent, AgentId, AgentVersion, AppliedAgent, ApplyAction, ApplyAgents, Cursor, Label, VersionPage,
};

use super::import_history::{Absent, Versions};
use super::import_report::{Report, Row};
use super::importer::{Importer, Known, Ready, batches, is_made_by};
use crate::agent_file::Problem;
use crate::failure::Result;
use crate::import::{Identity, other_source};

/// What is to be made.
#[derive(Default)]
pub struct Plan<'a> {
    /// The versions of each agent that the workspace does not have, oldest first.
    pub pending: BTreeMap<&'a str, Vec<&'a Ready>>,
    /// The labels, by agent, that must stay where they are.
    pub kept_labels: BTreeSet<(String, String)>,
    /// Labels of versions that the workspace has already, which are to be set.
    pub labels: Vec<(&'a Ready, Label)>,
    /// The state that the plan is based on.
    pub base: Option<Cursor>,
    /// The versions of the agents then.
    pub versions: BTreeMap<String, u64>,
}

/// What identifies the other agents of the source that agents of the workspace were made of.
type Others = BTreeMap<String, Identity>;

impl Plan<'_> {
    /// Whether a label of an agent stays where it is.
    pub fn keeps(&self, agent_id: &str, label: &str) -> bool {
        self.kept_labels.contains(&(agent_id.to_owned(), label.to_owned()))
    }
}

impl Importer<'_> {
    /// Compares the agents with those of the workspace, and notes in the report what becomes of each.
    pub async fn plan<'a>(
        &self,
        (known, ready): (&Known, &'a [Ready]),
        label: Option<&Label>,
        report: &mut Report,
    ) -> Result<Plan<'a>> {
        let mut plan = Plan::default();
        let others = self.other_sources(known, ready).await?;
        let mut again = self.pending(known, &others, ready, &mut plan)?;
        let absent = self
            .absent_versions((known, &others), ready, &mut plan, &mut again, report)
            .await?;
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
                // What differs is what stands beside the version, such as its labels, or is of a later one.
                is_kept = self.made_current(&agent.agent_id).await?;
            }
            if let (true, Some(number), Some(numbers)) = (is_kept, last.imported.version, absent.get(*agent_id))
                && numbers.get(&number).is_some_and(|fields| !fields.is_empty())
            {
                report.did(agent_id, "refused", numbers[&number].clone());
                refused.insert(*agent_id);
                continue;
            }
            let reason = match agent.filter(|_| !is_kept && !self.overwrite) {
                Some(agent) => self.reason(agent, others.get(*agent_id), &changes).await?,
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
        self.labels_to_keep(known, label, &mut plan, report).await?;
        self.labels_to_set(known, ready, &absent, &mut plan, report).await?;
        Ok(plan)
    }

    /// The agents of the workspace that were made of other agents of the source than those with their identifiers now.
    async fn other_sources(&self, known: &Known, ready: &[Ready]) -> Result<Others> {
        let mut others = Others::new();
        for one in ready {
            let agent_id = &one.imported.agent_id;
            let Some(agent) = known.get(agent_id).filter(|_| !others.contains_key(agent_id)) else {
                continue;
            };
            // A name may have been changed in the workspace.
            if let Some(other) = other_source(self.format, &one.imported, &agent.config())?
                && (one.imported.identity.is_some() || self.made_current(&agent.agent_id).await?)
            {
                others.insert(agent_id.clone(), other);
            }
        }
        Ok(others)
    }

    /// Names the versions that the workspace should have by their numbers, and has not, or not with the same content:
    /// versions are made in their order. With `--overwrite` they are made, and the newer ones after them again. Returns
    /// those that stay absent.
    async fn absent_versions<'a>(
        &self,
        (known, others): (&Known, &Others),
        ready: &'a [Ready],
        plan: &mut Plan<'a>,
        again: &mut BTreeSet<&'a str>,
        report: &mut Report,
    ) -> Result<Absent> {
        let mut by_agent: BTreeMap<&str, Vec<&Ready>> = BTreeMap::new();
        for one in ready.iter().filter(|one| one.imported.version.is_some()) {
            let agent_id = one.imported.agent_id.as_str();
            by_agent.entry(agent_id).or_default().push(one);
        }
        let (mut last, mut wanted) = (BTreeMap::new(), Versions::new());
        for (agent_id, versions) in &by_agent {
            let Some(agent) = known.get(*agent_id).filter(|_| !others.contains_key(*agent_id)) else {
                continue;
            };
            let Some(current) = self.number_in(&agent.config())? else {
                continue;
            };
            last.insert(*agent_id, (agent, current));
            let numbered = versions.iter().filter_map(|one| Some((one.imported.version?, *one)));
            let made = numbered.filter(|(number, _)| *number <= current).collect();
            wanted.insert((*agent_id).to_owned(), made);
        }
        let mut absent = self.absent(known, wanted).await?;
        for (agent_id, (agent, last)) in last {
            let (Some(numbers), Some(versions)) = (absent.get(agent_id), by_agent.get(agent_id)) else {
                continue;
            };
            let is_whole = versions.iter().any(|one| one.imported.version >= Some(last));
            if self.overwrite && is_whole {
                let first = numbers.keys().next().copied();
                let made = versions.iter().filter(|one| one.imported.version >= first);
                plan.pending.insert(agent_id, made.copied().collect());
                again.remove(agent_id);
                absent.remove(agent_id);
                continue;
            }
            // The plan has another reason for a current version that no import made.
            let has_reason =
                !agent.is_active || (numbers.contains_key(&last) && !self.made_current(&agent.agent_id).await?);
            for one in versions {
                let number = one.imported.version.unwrap_or_default();
                let Some(fields) = numbers.get(&number).filter(|_| number < last || !has_reason) else {
                    continue;
                };
                let problem = absent_version(one, number, last, fields, is_whole);
                report.problems.push(Row::from(&problem));
            }
        }
        Ok(absent)
    }

    /// Notes in the plan the versions of each agent that the workspace does not have. Returns the agents of which it
    /// has all, whose newest version is noted, to be compared: they may have been edited since.
    fn pending<'a>(
        &self,
        known: &Known,
        others: &Others,
        ready: &'a [Ready],
        plan: &mut Plan<'a>,
    ) -> Result<BTreeSet<&'a str>> {
        for one in ready {
            let agent_id = one.imported.agent_id.as_str();
            let pending = plan.pending.entry(agent_id).or_default();
            let last = match known.get(agent_id).filter(|_| !others.contains_key(agent_id)) {
                Some(agent) => self.number_in(&agent.config())?,
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
            let kept = applied.results.iter().filter(|agent| agent.action == ApplyAction::Keep);
            plan.versions
                .extend(kept.map(|agent| (agent.agent_id.to_string(), agent.version)));
            let ids = batch.iter().map(|one| one.imported.agent_id.as_str());
            planned.extend(ids.zip(applied.results));
        }
        Ok(planned)
    }

    /// Why an agent that differs is not overwritten: it was made of another agent of the source, or no import of this
    /// format made its current version.
    async fn reason(&self, agent: &Agent, other: Option<&Identity>, changes: &[String]) -> Result<Option<String>> {
        let agent_id = &agent.agent_id;
        if !agent.is_active {
            return Ok(Some(format!(
                "the agent {agent_id} is deactivated in the workspace, and stays so: --overwrite restores it"
            )));
        }
        if let Some((key, value)) = other {
            return Ok(Some(format!(
                "the agent {agent_id} of the workspace was imported from another agent, with the {key} {value:?}: \
                 rename one of them, or --overwrite replaces it"
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
    pub fn is_own(&self, version: &AgentVersion) -> bool {
        is_made_by(version, self.mark)
    }
}

/// A version of the source that the workspace has not, or with other fields than the source has now.
fn absent_version(one: &Ready, number: u64, last: u64, fields: &[String], is_whole: bool) -> Problem {
    let agent_id = &one.imported.agent_id;
    let labels = match one.imported.labels.as_slice() {
        [] => String::new(),
        labels => format!(" with the labels {}", labels.join(", ")),
    };
    let what = match (fields, last > number) {
        ([], _) => format!("is not in the workspace, which has the newer version {last}"),
        (fields, false) => format!("has another {} in the workspace", fields.join(", ")),
        (fields, true) => {
            let fields = fields.join(", ");
            format!("has another {fields} in the workspace, which also has the newer version {last}")
        }
    };
    let way = match (is_whole, last > number) {
        (true, false) => "--overwrite makes it again",
        (true, true) => "--overwrite makes it, and the newer ones again after it",
        (false, _) => "name the files of the newer versions too, and add --overwrite to make all in their order",
    };
    let message = format!("version {number} of {agent_id}{labels} {what}: {way}");
    Problem::new(&one.imported.file, one.imported.place, message)
}

/// The names of the fields that an apply changes.
fn changed_fields(result: &AppliedAgent) -> Vec<String> {
    let names = result.changes.keys().map(|name| name.to_string());
    names.filter(|name| name != "is_active").collect()
}
