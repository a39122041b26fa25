//! Imported agents to the workspace: version by version, and labels.

use std::collections::BTreeMap;

use agentcfg_client::model::{AppliedAgent, ApplyAction, ApplyAgents, Cursor, Label, Promotion};
use agentcfg_core::validate::MAX_MESSAGE;

use super::import_plan::Plan;
use super::import_report::{Report, Row};
use super::importer::{Importer, MAX_AGENTS, Ready, batches};
use crate::agent_file::Problem;
use crate::args::{Import, Reason};
use crate::failure::{Code, CommandFailure, Result};
use crate::import::Format;
use crate::session::{Session, parse};
use crate::terminal::Progress;

pub async fn run(
    session: &Session,
    format: &Format,
    arguments: &Import,
    ready: &[Ready],
    report: &mut Report,
) -> Result<()> {
    // The message of a version tells it from one that was made by other means.
    let mark = format!("agentcfg import {}", format.word);
    let message = match &arguments.reason.message {
        // The mark is before it, in a message of a bounded length.
        Some(message) => format!("{mark}: {message}").chars().take(MAX_MESSAGE).collect(),
        None => mark.clone(),
    };
    let client = session.because(&Reason { message: Some(message) })?;
    let label: Option<Label> = arguments
        .label
        .as_deref()
        .map(|label| parse("label", label))
        .transpose()?;
    let importer = Importer {
        client,
        workspace: session.workspace().await?,
        word: format.word,
        mark: &mark,
        overwrite: arguments.overwrite,
    };
    let progress = Progress::spinner("Comparing with the server");
    let plan = importer.plan(ready, label.as_ref(), report).await?;
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
    // A round has one version of each agent.
    let rounds = plan.pending.values().map(Vec::len).max().unwrap_or(0);
    for round in 0..rounds {
        let of_round: Vec<&Ready> = plan
            .pending
            .values()
            .filter_map(|pending| pending.get(round).copied())
            .collect();
        for batch in batches(&of_round)? {
            let base = plan.base.filter(|_| round == 0);
            importer.apply(batch, base, report).await?;
            importer.labels_of(batch, &plan, report).await?;
        }
    }
    drop(progress);
    importer.set_labels(&plan, report).await?;
    if let Some(label) = &label {
        let ids: Vec<&str> = ids.into_iter().filter(|id| !plan.keeps(id, label)).collect();
        importer.release(label, &ids, report).await?;
    }
    Ok(())
}

impl Importer<'_> {
    /// Applies one version of each agent.
    async fn apply(&self, batch: &[&Ready], base: Option<Cursor>, report: &mut Report) -> Result<()> {
        let body = ApplyAgents::of(batch.iter().map(|one| one.spec.clone()).collect()).base(base);
        let applied = self.client.apply_agents(self.workspace, &body, false).await;
        let applied = applied.map_err(|error| match error.is_precondition_failed() {
            true => CommandFailure::with_code(Code::Conflict, "agents were changed during the import")
                .hint("Run it again: what has come in already is not made a second time."),
            false => error.into(),
        })?;
        // An agent that is restored as it was has no new version.
        let is_made = |agent: &&AppliedAgent| match agent.action {
            ApplyAction::Keep => false,
            ApplyAction::Restore => agent.changes.keys().any(|name| name.as_str() != "is_active"),
            _ => true,
        };
        let made = applied.results.iter().filter(is_made);
        report.versions_made += made.count();
        Ok(())
    }

    /// Points the labels of the source at the versions that are now the current ones.
    async fn labels_of(&self, ready: &[&Ready], plan: &Plan<'_>, report: &mut Report) -> Result<()> {
        let mut by_label: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for one in ready {
            let labels = one.imported.labels.iter();
            for label in labels.filter(|label| !plan.keeps(&one.imported.agent_id, label)) {
                by_label.entry(label).or_default().push(&one.imported.agent_id);
            }
        }
        for (label, ids) in by_label {
            match label.parse::<Label>() {
                Ok(label) => self.release(&label, &ids, report).await?,
                Err(error) => {
                    let problem = |one: &&&Ready| one.imported.labels.iter().any(|one| one == label);
                    let one = ready.iter().find(problem);
                    if let Some(one) = one {
                        let message = format!("the label {label:?} is kept in the definition alone: {error}");
                        report.warnings.push(Row::from(&Problem::new(
                            &one.imported.file,
                            one.imported.place,
                            message,
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Points a label at the current versions of agents.
    async fn release(&self, label: &Label, ids: &[&str], report: &mut Report) -> Result<()> {
        for ids in ids.chunks(MAX_AGENTS) {
            let named = ids.iter().map(|id| parse("agent_id", id)).collect::<Result<Vec<_>>>()?;
            let promotion = Promotion::new(parse("label", "latest")?, label.clone()).agent_ids(Some(named));
            let moved = self.client.promote_labels(self.workspace, &promotion, false).await?;
            let moved = moved.iter().filter(|one| one.previous_version != Some(one.version));
            report
                .labels_set
                .extend(moved.map(|one| format!("{}:{label}", one.agent_id)));
        }
        Ok(())
    }
}
