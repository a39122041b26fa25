//! The labels of an import: which of them stay where they are, and which are set at versions that the workspace has
//! already.

use std::collections::{BTreeMap, BTreeSet};

use agentcfg_client::model::{Label, LabelFilter};

use super::import_history::Absent;
use super::import_plan::Plan;
use super::import_report::{Report, Row};
use super::importer::{Importer, Known, Ready};
use crate::agent_file::Problem;
use crate::failure::Result;

impl Importer<'_> {
    /// Finds the labels that would move from a version that no import made.
    pub async fn labels_to_keep(
        &self,
        known: &Known,
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
                let versions = self.versions(&key.0).await?;
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

    /// Finds the labels of versions that the workspace has already and that are elsewhere: one was not set by an
    /// interrupted run, or was moved at the source since. One at a version that no import made stays there.
    pub async fn labels_to_set<'a>(
        &self,
        known: &Known,
        ready: &'a [Ready],
        absent: &Absent,
        plan: &mut Plan<'a>,
        report: &mut Report,
    ) -> Result<()> {
        let mut wanted: BTreeMap<Label, Vec<&Ready>> = BTreeMap::new();
        for one in ready {
            let (agent_id, number) = (one.imported.agent_id.as_str(), one.imported.version);
            let is_absent =
                number.is_some_and(|number| absent.get(agent_id).is_some_and(|all| all.contains_key(&number)));
            let Some(pending) = plan.pending.get(agent_id).filter(|_| known.contains_key(agent_id)) else {
                continue;
            };
            if is_absent || pending.iter().any(|other| other.imported.version == number) {
                continue;
            }
            for label in one.imported.labels.iter().filter_map(|label| label.parse().ok()) {
                wanted.entry(label).or_default().push(one);
            }
        }
        for (label, wanted) in wanted {
            let released = self.client.released(self.workspace, &label).await?;
            for one in wanted {
                let agent_id = one.imported.agent_id.as_str();
                if plan.keeps(agent_id, &label) {
                    continue;
                }
                if let Some(have) = released.get(agent_id) {
                    if self.is_made_of(one, &have.config)? {
                        continue;
                    }
                    let is_made = |versions: Vec<_>| {
                        let mut versions = versions.iter();
                        versions.any(|version| self.is_own(version) && version.version == have.version)
                    };
                    if !self.overwrite && !is_made(self.versions(agent_id).await?) {
                        let message = format!(
                            "the label {label} of {agent_id} is at version {}, which no import made, and stays there: \
                             --overwrite moves it",
                            have.version
                        );
                        let problem = Problem::new(&one.imported.file, one.imported.place, message);
                        report.problems.push(Row::from(&problem));
                        continue;
                    }
                }
                plan.labels.push((one, label.clone()));
            }
        }
        Ok(())
    }

    /// Sets the labels of the plan at versions that were made by an earlier run.
    pub async fn set_labels(&self, plan: &Plan<'_>, report: &mut Report) -> Result<()> {
        for (one, label) in &plan.labels {
            let Some(version) = self.version_of(one).await? else {
                continue;
            };
            self.set_label(one, label, version, report).await?;
        }
        Ok(())
    }
}
