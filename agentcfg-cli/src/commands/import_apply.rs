//! Imported agents to the workspace: version by version, and labels.

use std::collections::BTreeMap;
use std::path::Path;

use agentcfg_client::model::{
    Agent, AgentSpec, AgentState, ApplyAction, ApplyAgents, Label, LabelFilter, LabelTarget, Promotion, VersionPage,
    VersionSelector, WorkspaceId,
};
use agentcfg_client::{AgentFilter, Client};

use super::import_report::{Report, Row};
use crate::agent_file::Problem;
use crate::args::Import;
use crate::failure::{CommandFailure, Result};
use crate::import::{self, Format, Imported, Node};
use crate::session::{Session, parse};
use crate::terminal::Progress;

/// An imported agent, or a version of one, and what the service is given.
pub struct Ready {
    pub imported: Imported,
    pub spec: AgentSpec,
}

/// How many agents, and how many bytes of them, are sent in one request.
const MAX_AGENTS: usize = 200;
const MAX_BYTES: usize = 4 << 20;

/// The versions of one agent that the workspace does not have, oldest first.
struct Pending<'a> {
    versions: Vec<&'a Ready>,
    next: usize,
}

pub async fn run(
    session: &Session,
    format: &Format,
    arguments: &Import,
    ready: &[Ready],
    report: &mut Report,
) -> Result<()> {
    let client = session.because(&arguments.reason)?;
    let workspace = session.workspace().await?;
    let label: Option<Label> = arguments
        .label
        .as_deref()
        .map(|label| parse("label", label))
        .transpose()?;
    let importer = Importer {
        client,
        workspace,
        word: format.word,
        dry_run: report.dry_run,
    };

    let known = importer.known().await?;
    let mut agents: BTreeMap<&str, Pending<'_>> = BTreeMap::new();
    for one in ready {
        let agent_id = one.imported.agent_id.as_str();
        let pending = agents.entry(agent_id).or_insert(Pending {
            versions: Vec::new(),
            next: 0,
        });
        let last = known.get(agent_id).copied().flatten();
        if one.imported.version.is_none() || one.imported.version > last {
            pending.versions.push(one);
        }
    }
    let mut versions: BTreeMap<(String, Option<u64>), u64> = BTreeMap::new();
    let progress = Progress::spinner("Importing");
    loop {
        let mut batch = Batch::default();
        for pending in agents.values_mut() {
            let Some(one) = pending.versions.get(pending.next) else {
                continue;
            };
            if batch.is_full_with(one)? {
                break;
            }
            pending.next += 1;
            batch.push(one)?;
        }
        if batch.ready.is_empty() {
            break;
        }
        importer.apply(&batch, &mut versions, report).await?;
        importer.labels_of(&batch.ready, report).await?;
    }
    drop(progress);
    if !importer.dry_run {
        importer.missing_labels(ready, &versions, report).await?;
    }
    if let Some(label) = &label {
        let ids: Vec<&str> = agents.keys().copied().collect();
        importer.release(label, &ids, report).await?;
    }
    Ok(())
}

/// Agents of one request.
#[derive(Default)]
struct Batch<'a> {
    ready: Vec<&'a Ready>,
    bytes: usize,
}

impl<'a> Batch<'a> {
    fn is_full_with(&self, one: &Ready) -> Result<bool> {
        let bytes = self.bytes + serde_json::to_vec(&one.spec)?.len();
        Ok(!self.ready.is_empty() && (self.ready.len() >= MAX_AGENTS || bytes > MAX_BYTES))
    }

    fn push(&mut self, one: &'a Ready) -> Result<()> {
        self.bytes += serde_json::to_vec(&one.spec)?.len();
        self.ready.push(one);
        Ok(())
    }
}

struct Importer {
    client: Client,
    workspace: WorkspaceId,
    word: &'static str,
    dry_run: bool,
}

impl Importer {
    /// The agents of the workspace, with the number that the source gave to the version that was imported last.
    async fn known(&self) -> Result<BTreeMap<String, Option<u64>>> {
        let filter = AgentFilter::default().state(AgentState::All);
        let agents = self.client.list_agents(self.workspace, &filter).await?.value;
        let mut known = BTreeMap::new();
        for agent in agents {
            known.insert(agent.agent_id.to_string(), self.source_version(&agent)?);
        }
        Ok(known)
    }

    fn source_version(&self, agent: &Agent) -> Result<Option<u64>> {
        source_version(self.word, &agent.config())
    }

    /// Applies one version of each agent of the batch.
    async fn apply(
        &self,
        batch: &Batch<'_>,
        versions: &mut BTreeMap<(String, Option<u64>), u64>,
        report: &mut Report,
    ) -> Result<()> {
        let body = ApplyAgents::of(batch.ready.iter().map(|one| one.spec.clone()).collect::<Vec<_>>());
        let applied = self.client.apply_agents(self.workspace, &body, self.dry_run).await?;
        for agent in &applied.results {
            match agent.action {
                ApplyAction::Keep => report.unchanged += 1,
                _ => report.versions_made += 1,
            }
        }
        for (one, agent) in batch.ready.iter().zip(&applied.results) {
            versions.insert((agent.agent_id.to_string(), one.imported.version), agent.version);
        }
        Ok(())
    }

    /// Points the labels of the source at the versions that are now the current ones.
    async fn labels_of(&self, ready: &[&Ready], report: &mut Report) -> Result<()> {
        let mut by_label: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for one in ready {
            for label in &one.imported.labels {
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
        if self.dry_run {
            report.labels_set.extend(ids.iter().map(|id| format!("{id}:{label}")));
            return Ok(());
        }
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

    /// Sets labels that are absent though their version was imported earlier, as after an interruption.
    async fn missing_labels(
        &self,
        ready: &[Ready],
        made: &BTreeMap<(String, Option<u64>), u64>,
        report: &mut Report,
    ) -> Result<()> {
        let wanted = ready.iter().filter(|one| !one.imported.labels.is_empty());
        let wanted: Vec<&Ready> = wanted
            .filter(|one| !made.contains_key(&(one.imported.agent_id.clone(), one.imported.version)))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let present = self.client.list_labels(self.workspace, LabelFilter::default()).await?;
        for one in wanted {
            let agent_id = one.imported.agent_id.as_str();
            for label in one
                .imported
                .labels
                .iter()
                .filter_map(|label| label.parse::<Label>().ok())
            {
                if present
                    .iter()
                    .any(|have| have.agent_id.as_str() == agent_id && have.label == label)
                {
                    continue;
                }
                let Some(version) = self.version_of(agent_id, one.imported.version).await? else {
                    continue;
                };
                self.client
                    .set_label(Some(self.workspace), agent_id, &label, &LabelTarget::new(version))
                    .await?;
                report.labels_set.push(format!("{agent_id}:{label}"));
            }
        }
        Ok(())
    }

    /// The version of an agent that was made of a version of the source.
    async fn version_of(&self, agent_id: &str, number: Option<u64>) -> Result<Option<u64>> {
        let page = VersionPage::default().limit(Some(1000));
        for version in self.client.list_versions(Some(self.workspace), agent_id, page).await? {
            let selector = VersionSelector::Version(version.version);
            let detail = self
                .client
                .get_version(Some(self.workspace), agent_id, selector)
                .await?;
            if source_version(self.word, &detail.config)? == number {
                return Ok(Some(version.version));
            }
        }
        Ok(None)
    }
}

/// The number that the source gave to the version, which its format keeps in the definition.
fn source_version(word: &str, config: &agentcfg_client::model::AgentConfig) -> Result<Option<u64>> {
    let json = serde_json::to_string(config)?;
    let config = import::from_json(Path::new("agent"), &json).map_err(CommandFailure::error)?;
    let kept = config.get("definition").and_then(|definition| definition.get(word));
    Ok(kept
        .and_then(|kept| kept.get("version"))
        .and_then(Node::scalar)
        .and_then(|version| version.parse().ok()))
}
