//! Imported agents to the workspace: version by version, and labels.

use std::collections::BTreeMap;

use agentcfg_client::model::{AppliedAgent, ApplyAction, ApplyAgents, Cursor, Label, LabelTarget, Promotion};
use agentcfg_core::validate::MAX_MESSAGE;

use super::import_plan::Plan;
use super::import_report::{Report, Row};
use super::importer::{Importer, Known, MAX_AGENTS, Ready, batches, mark};
use crate::agent_file::Problem;
use crate::args::{Import, Reason};
use crate::failure::{CommandFailure, Result};
use crate::import::Format;
use crate::session::{Session, parse};
use crate::terminal::Progress;

pub async fn run(
    session: &Session,
    format: &'static Format,
    arguments: &Import,
    (known, ready): (&Known, &[Ready]),
    report: &mut Report,
) -> Result<()> {
    // The message of a version tells it from one that was made by other means.
    let mark = mark(format.word);
    let message = match &arguments.reason.message {
        Some(message) => format!("{mark}: {message}"),
        None => mark.clone(),
    };
    if message.chars().count() > MAX_MESSAGE {
        let rule = format_args!(
            "--message must be at most {} characters: {mark:?} stands before it",
            MAX_MESSAGE - mark.len() - ": ".len()
        );
        return Err(CommandFailure::error(rule));
    }
    let client = session.because(&Reason { message: Some(message) })?;
    let label: Option<Label> = arguments
        .label
        .as_deref()
        .map(|label| parse("label", label))
        .transpose()?;
    let importer = Importer {
        client,
        workspace: session.workspace().await?,
        format,
        mark: &mark,
        overwrite: arguments.overwrite,
    };
    let progress = Progress::spinner("Comparing with the server");
    let plan = importer.plan((known, ready), label.as_ref(), report).await?;
    drop(progress);
    let ids: Vec<&str> = plan.pending.keys().copied().collect();
    if report.dry_run {
        report.versions_made = plan.pending.values().map(Vec::len).sum();
        let of_source = plan.pending.values().flatten().flat_map(|one| {
            let labels = one.imported.labels.iter();
            labels.map(|label| (one.imported.agent_id.as_str(), &**label))
        });
        let of_run = ids.iter().filter_map(|id| Some((*id, &**label.as_ref()?)));
        let of_earlier = plan
            .labels
            .iter()
            .map(|(one, label)| (one.imported.agent_id.as_str(), &**label));
        let wanted = of_source.chain(of_run).filter(|(id, label)| !plan.keeps(id, label));
        let wanted = wanted.chain(of_earlier);
        report.labels_set = wanted.map(|(id, label)| format!("{id}:{label}")).collect();
        return Ok(());
    }
    let progress = Progress::spinner("Importing");
    // What a label of the run is set at, and the state in which that is so.
    let mut made = Made {
        versions: plan.versions.clone(),
        base: plan.base,
    };
    // A round has one version of each agent.
    let rounds = plan.pending.values().map(Vec::len).max().unwrap_or(0);
    for round in 0..rounds {
        let of_round: Vec<&Ready> = plan
            .pending
            .values()
            .filter_map(|pending| pending.get(round).copied())
            .collect();
        let base = made.base;
        for batch in batches(&of_round)? {
            importer.apply(batch, base, &mut made, report).await?;
            importer.labels_of(batch, &plan, &made, report).await?;
        }
    }
    drop(progress);
    importer.set_labels(&plan, report).await?;
    if let Some(label) = &label {
        let ready = ready.iter().filter(|one| {
            let id = one.imported.agent_id.as_str();
            plan.pending.contains_key(id) && !plan.keeps(id, label)
        });
        let last: BTreeMap<&str, &Ready> = ready.map(|one| (one.imported.agent_id.as_str(), one)).collect();
        let last: Vec<&Ready> = last.into_values().collect();
        importer.release(label, &last, &made, report).await?;
    }
    Ok(())
}

/// The versions that an import has made last, by agent.
struct Made {
    versions: BTreeMap<String, u64>,
    /// The state after the last commit.
    base: Option<Cursor>,
}

impl Importer<'_> {
    /// Applies one version of each agent.
    async fn apply(&self, batch: &[&Ready], base: Option<Cursor>, made: &mut Made, report: &mut Report) -> Result<()> {
        let body = ApplyAgents::of(batch.iter().map(|one| one.spec.clone()).collect()).base(base);
        let applied = self.client.apply_agents(self.workspace, &body, false).await;
        let applied = applied.map_err(|error| match error.is_precondition_failed() {
            true => CommandFailure::error("agents were changed during the import")
                .hint("Run it again: what has come in already is not made a second time."),
            false => error.into(),
        })?;
        // An agent that is restored as it was has no new version.
        let is_made = |agent: &&AppliedAgent| match agent.action {
            ApplyAction::Keep => false,
            ApplyAction::Restore => agent.changes.keys().any(|name| name.as_str() != "is_active"),
            _ => true,
        };
        report.versions_made += applied.results.iter().filter(is_made).count();
        let versions = applied.results.iter();
        made.versions
            .extend(versions.map(|agent| (agent.agent_id.to_string(), agent.version)));
        made.base = Some(applied.cursor);
        Ok(())
    }

    /// Points the labels of the source at the versions that were made of it.
    async fn labels_of(&self, ready: &[&Ready], plan: &Plan<'_>, made: &Made, report: &mut Report) -> Result<()> {
        let mut by_label: BTreeMap<&str, Vec<&Ready>> = BTreeMap::new();
        for one in ready {
            let labels = one.imported.labels.iter();
            for label in labels.filter(|label| !plan.keeps(&one.imported.agent_id, label)) {
                by_label.entry(label).or_default().push(one);
            }
        }
        for (label, labelled) in by_label {
            self.release(&parse("label", label)?, &labelled, made, report).await?;
        }
        Ok(())
    }

    /// Points a label of agents at the versions that were made of them. They are still the current ones, unless another
    /// client has changed one meanwhile: then each label is set alone.
    async fn release(&self, label: &Label, ready: &[&Ready], made: &Made, report: &mut Report) -> Result<()> {
        for ready in ready.chunks(MAX_AGENTS) {
            let ids = ready.iter().map(|one| parse("agent_id", &one.imported.agent_id));
            let promotion = Promotion::new(parse("label", "latest")?, label.clone())
                .agent_ids(Some(ids.collect::<Result<Vec<_>>>()?))
                .base(made.base);
            match self.client.promote_labels(self.workspace, &promotion, false).await {
                Ok(moved) => {
                    let moved = moved.iter().filter(|one| one.previous_version != Some(one.version));
                    report
                        .labels_set
                        .extend(moved.map(|one| format!("{}:{label}", one.agent_id)));
                }
                Err(error) if error.is_precondition_failed() || error.is_plan_limit() => {
                    for one in ready {
                        let agent_id = one.imported.agent_id.as_str();
                        let version = match made.versions.get(agent_id) {
                            Some(version) => Some(*version),
                            None => self.version_of(one).await?,
                        };
                        if let Some(version) = version {
                            self.set_label(one, label, version, report).await?;
                        }
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Points a label of one agent at a version. An agent that has too many labels is a problem of its source.
    pub async fn set_label(&self, one: &Ready, label: &Label, version: u64, report: &mut Report) -> Result<()> {
        let (agent_id, target) = (one.imported.agent_id.as_str(), LabelTarget::new(version));
        let workspace = Some(self.workspace);
        match self.client.set_label(workspace, agent_id, label, &target).await {
            Ok(_) => report.labels_set.push(format!("{agent_id}:{label}")),
            Err(error) if error.is_plan_limit() => {
                let message = format!("the label {label} of {agent_id} is not set: {error}");
                let problem = Problem::new(&one.imported.file, one.imported.place, message);
                report.problems.push(Row::from(&problem));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
