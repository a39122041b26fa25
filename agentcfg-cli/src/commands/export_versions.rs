//! The agents of a workspace with those of their versions that a format of another tool has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{AgentConfig, AgentId, AgentVersion, Label, Timestamp, VersionSelector, WorkspaceId};

use super::context::Context;
use super::import_history::all_versions;
use super::importer::{is_made_by, mark};
use crate::failure::{CommandFailure, Result};
use crate::import::{self, Entry, Format, Node};
use crate::session::Session;
use crate::terminal::Progress;

/// The label that is always at the current version.
const LATEST: &str = "latest";

/// What is to be exported.
#[derive(Default)]
pub struct Found {
    /// Each agent, or each version of one, with its fields.
    pub agents: Vec<(String, Vec<Entry>)>,
    /// The versions that the format cannot have, by agent.
    pub not_held: Vec<(String, Vec<String>)>,
}

/// The versions of an agent under the numbers of the source, which grow.
#[derive(Default)]
struct Numbered {
    versions: Vec<Version>,
    not_held: Vec<String>,
}

struct Version {
    number: u64,
    fields: Vec<Entry>,
    /// Its name in the list of what is not held. `None` for a version that an import made and that has no label: it is
    /// dropped without a report when it is imported again.
    name: Option<String>,
}

impl Numbered {
    /// Adds the next version. One that an import made has the number of its source, and takes the place of what had
    /// that number or a greater one before. Any other one gets the next number: what it says of its number is that of
    /// the version that it was made of.
    fn add(&mut self, version: &AgentVersion, content: &AgentConfig, format: &Format) -> Result<()> {
        let mut fields = versioned(content, &version.labels, format)?;
        let number = number_in(&mut fields, format);
        let known = number.as_ref().and_then(|node| node.scalar()?.parse().ok());
        let labels: Vec<&str> = version.labels.iter().map(|label| label.as_str()).collect();
        let is_own = is_made_by(version, &mark(format.word));
        let name = match labels.is_empty() {
            true => format!("version {}", version.version),
            false => format!("version {} with the labels {}", version.version, labels.join(", ")),
        };
        let Some(known) = known else {
            // It was made before the import.
            self.not_held.extend((!labels.is_empty()).then_some(name));
            return Ok(());
        };
        let mut new = Version {
            number: known,
            fields,
            name: (!is_own || !labels.is_empty()).then_some(name),
        };
        if is_own {
            let at = self.versions.partition_point(|version| version.number < known);
            let replaced = self.versions.split_off(at).into_iter();
            let lost = replaced.filter(|version| version.number != known || version.fields != new.fields);
            self.not_held.extend(lost.filter_map(|version| version.name));
        } else {
            new.number = self.versions.last().map_or(known, |last| last.number + 1);
            if let Some(node) = number_in(&mut new.fields, format) {
                *node = Node::number(new.number);
            }
        }
        self.versions.push(new);
        Ok(())
    }
}

/// The active agents of the workspace. Where a format has versions, those that were imported from it have all of
/// theirs.
pub async fn of_workspace(context: &mut Context, format: &Format) -> Result<Found> {
    let session = context.session()?;
    let workspace = session.workspace().await?;
    let progress = Progress::spinner("Reading the agents");
    let agents = session
        .client
        .list_agents(workspace, &AgentFilter::default())
        .await?
        .value;
    let mut heads: Vec<AgentVersion> = Vec::new();
    let mut currents = Vec::new();
    for agent in agents {
        let current = config(&agent.config())?;
        let is_versioned = kept(&current, format).is_some_and(|kept| kept.get("version").is_some());
        if is_versioned {
            let versions = all_versions(&session.client, workspace, &agent.agent_id);
            heads.extend(versions.await?.into_iter().rev());
        }
        currents.push((agent.agent_id, (!is_versioned).then_some(current)));
    }
    let contents = contents(&session, workspace, &heads).await?;
    let mut found = Found::default();
    for (agent_id, current) in currents {
        if let Some(current) = current {
            found.agents.push((agent_id.to_string(), current));
            continue;
        }
        let mut of_agent = Numbered::default();
        for version in heads.iter().filter(|version| version.agent_id == agent_id) {
            if let Some(content) = contents.get(&(&version.agent_id, version.version)) {
                of_agent.add(version, content, format)?;
            }
        }
        let versions = of_agent.versions.into_iter();
        found
            .agents
            .extend(versions.map(|version| (agent_id.to_string(), version.fields)));
        found.not_held.push((agent_id.to_string(), of_agent.not_held));
    }
    drop(progress);
    Ok(found)
}

/// How many versions that were made at one moment are read one by one. More are read with a list of all agents at that
/// moment.
const MAX_READ: usize = 5;

/// The contents of versions. An import makes versions of many agents at one moment.
async fn contents<'a>(
    session: &Session,
    workspace: WorkspaceId,
    versions: &'a [AgentVersion],
) -> Result<BTreeMap<(&'a AgentId, u64), AgentConfig>> {
    let mut by_moment: BTreeMap<Timestamp, Vec<&AgentVersion>> = BTreeMap::new();
    for version in versions {
        by_moment.entry(version.created_at).or_default().push(version);
    }
    let mut contents = BTreeMap::new();
    for (moment, versions) in by_moment {
        let mut listed = BTreeMap::new();
        if versions.len() > MAX_READ {
            let agents = session
                .client
                .agents()
                .in_workspace(workspace)
                .at(moment)
                .list()
                .await?
                .value;
            let of_moment = agents.into_iter().filter(|agent| agent.updated_at == moment);
            listed = of_moment.map(|agent| (agent.agent_id.clone(), agent)).collect();
        }
        for version in &versions {
            let is_alone = versions.iter().filter(|one| one.agent_id == version.agent_id).count() == 1;
            let content = match listed.get(&version.agent_id).filter(|_| is_alone) {
                Some(agent) => agent.config(),
                None => {
                    let selector = VersionSelector::Version(version.version);
                    let client = &session.client;
                    client
                        .get_version(Some(workspace), &version.agent_id, selector)
                        .await?
                        .config
                }
            };
            contents.insert((&version.agent_id, version.version), content);
        }
    }
    Ok(contents)
}

fn config(config: &AgentConfig) -> Result<Vec<Entry>> {
    fields(&serde_json::to_string(config)?)
}

fn kept<'a>(fields: &'a [Entry], format: &Format) -> Option<&'a Node> {
    let definition = fields.iter().find(|entry| entry.key == "definition")?;
    definition.node.get(format.word)
}

/// The number of a version in the source.
fn number_in<'a>(fields: &'a mut [Entry], format: &Format) -> Option<&'a mut Node> {
    let definition = fields.iter_mut().find(|entry| entry.key == "definition")?;
    let kept = definition.node.map_at(format.word)?;
    let version = kept.entries_mut()?.iter_mut().find(|entry| entry.key == "version")?;
    Some(&mut version.node)
}

/// The fields of a version. Its labels are those that it has now.
fn versioned(content: &AgentConfig, labels: &[Label], format: &Format) -> Result<Vec<Entry>> {
    let mut fields = config(content)?;
    let labels: BTreeSet<&str> = labels.iter().map(|label| label.as_str()).collect();
    let definition = fields.iter_mut().find(|entry| entry.key == "definition");
    let kept = definition.and_then(|definition| definition.node.map_at(format.word));
    let kept_labels = kept.and_then(|kept| kept.entries_mut()?.iter_mut().find(|entry| entry.key == "labels"));
    if let Some(entry) = kept_labels {
        // The order of the source stays, and so do its labels that the service does not take.
        let before = entry.node.as_list().unwrap_or_default();
        let before: Vec<&str> = before.iter().filter_map(Node::as_text).collect();
        let is_kept = |label: &&&str| **label == LATEST || label.parse::<Label>().is_err() || labels.contains(**label);
        let kept = before.iter().filter(is_kept).copied();
        let new = labels.iter().filter(|label| !before.contains(label)).copied();
        entry.node = Node::list(kept.chain(new).map(Node::text).collect());
    }
    Ok(fields)
}

/// The fields of an agent in JSON, in their order.
pub fn fields(json: &str) -> Result<Vec<Entry>> {
    let node = import::from_json(Path::new("agent"), json).map_err(CommandFailure::error)?;
    Ok(node.entries().to_vec())
}
