//! Which versions of a source the workspace has: an import makes newer ones only, and names those that are missing or
//! have another content.

use std::collections::{BTreeMap, BTreeSet};

use agentcfg_client::Client;
use agentcfg_client::model::{Agent, AgentConfig, AgentVersion, VersionPage, VersionSelector, WorkspaceId};

use super::importer::{Importer, Known, Ready, source_version};
use crate::failure::Result;
use crate::import::{Format, differing_fields};

/// How many agents are read by their versions. The past of more is read for all of them at once.
const MAX_READ: usize = 5;

/// The most moments of the past that are read.
const MAX_MOMENTS: usize = 200;

/// Versions of the source by agents and their numbers.
pub type Versions<'a> = BTreeMap<String, BTreeMap<u64, &'a Ready>>;

/// Versions of the source that the workspace does not have, by agents and their numbers, each with the fields in which
/// the version of its number differs. There are none where no version has its number.
pub type Absent = BTreeMap<String, BTreeMap<u64, Vec<String>>>;

/// A search for versions of the source among those of the workspace, from the newest to the oldest.
struct Search<'a> {
    format: &'a Format,
    wanted: Versions<'a>,
    differing: Absent,
}

impl Search<'_> {
    /// Compares a version of the workspace.
    fn see(&mut self, agent_id: &str, config: &AgentConfig) -> Result<()> {
        let Some(wanted) = self.wanted.get_mut(agent_id) else {
            return Ok(());
        };
        let Some(number) = source_version(self.format.word, config)? else {
            return Ok(());
        };
        let Some(one) = wanted.get(&number) else {
            return Ok(());
        };
        let fields = differing_fields(self.format, &one.spec, config)?;
        match fields.is_empty() {
            true => drop(wanted.remove(&number)),
            false => {
                let differing = self.differing.entry(agent_id.to_owned()).or_default();
                differing.entry(number).or_insert(fields);
            }
        }
        Ok(())
    }

    /// Whether all versions of an agent were found.
    fn has_all(&self, agent_id: &str) -> bool {
        self.wanted.get(agent_id).is_none_or(BTreeMap::is_empty)
    }

    /// The agents of which versions were not found yet.
    fn open(&self) -> impl Iterator<Item = &String> {
        self.wanted.keys().filter(|agent_id| !self.has_all(agent_id))
    }

    fn absent(mut self) -> Absent {
        self.wanted.retain(|_, wanted| !wanted.is_empty());
        let absent = self.wanted.into_iter().map(|(agent_id, wanted)| {
            let mut differing = self.differing.remove(&agent_id).unwrap_or_default();
            let fields = |number: u64| (number, differing.remove(&number).unwrap_or_default());
            let numbers = wanted.into_keys().map(fields).collect();
            (agent_id, numbers)
        });
        absent.collect()
    }
}

impl Importer<'_> {
    /// Those of the wanted versions that the workspace does not have with the same content.
    pub async fn absent(&self, known: &Known, wanted: Versions<'_>) -> Result<Absent> {
        let mut search = Search {
            format: self.format,
            wanted,
            differing: Absent::new(),
        };
        for (agent_id, agent) in known {
            search.see(agent_id, &agent.config())?;
        }
        let mut read = BTreeSet::new();
        if search.open().count() > MAX_READ {
            read = self.search_past(known, &mut search).await?;
        }
        let open: Vec<String> = search.open().filter(|id| !read.contains(*id)).cloned().collect();
        for agent_id in open {
            for version in self.versions(&agent_id).await? {
                if search.has_all(&agent_id) {
                    break;
                }
                search.see(&agent_id, &self.config_of(&agent_id, version.version).await?)?;
            }
        }
        Ok(search.absent())
    }

    /// Searches what agents were at earlier moments. An import changes many agents in one commit, so that few
    /// lists of the past have the versions of all of them. Returns the agents whose past was read to its beginning.
    async fn search_past(&self, known: &Known, search: &mut Search<'_>) -> Result<BTreeSet<String>> {
        let mut read = BTreeSet::new();
        // When the earliest known version of each agent was made.
        let mut since: BTreeMap<String, _> = BTreeMap::new();
        for agent_id in search.open() {
            if let Some(agent) = known.get(agent_id).filter(|agent| agent.is_active) {
                since.insert(agent_id.clone(), agent.updated_at);
            }
        }
        for _ in 0..MAX_MOMENTS {
            let Some(moment) = since.values().max().map(|latest| latest.plus_millis(-1)) else {
                break;
            };
            let agents = self.client.agents().in_workspace(self.workspace).at(moment);
            let agents = agents.list().await?.value;
            let agents: BTreeMap<&str, &Agent> = agents.iter().map(|agent| (agent.agent_id.as_str(), agent)).collect();
            let later = since.iter().filter(|(_, at)| **at > moment);
            let later: Vec<String> = later.map(|(agent_id, _)| agent_id.clone()).collect();
            for agent_id in later {
                // Before it was made, or while it was deactivated.
                let Some(agent) = agents.get(agent_id.as_str()) else {
                    since.remove(&agent_id);
                    if known.get(&agent_id).is_some_and(|agent| moment < agent.created_at) {
                        read.insert(agent_id);
                    }
                    continue;
                };
                search.see(&agent_id, &agent.config())?;
                match search.has_all(&agent_id) {
                    true => since.remove(&agent_id),
                    false => since.insert(agent_id, agent.updated_at),
                };
            }
        }
        Ok(read)
    }

    /// The newest version of the workspace that was made of a version of the source.
    pub async fn version_of(&self, one: &Ready) -> Result<Option<u64>> {
        let agent_id = one.imported.agent_id.as_str();
        for version in self.versions(agent_id).await? {
            if self.is_made_of(one, &self.config_of(agent_id, version.version).await?)? {
                return Ok(Some(version.version));
            }
        }
        Ok(None)
    }

    /// The versions of an agent without their contents, newest first.
    pub async fn versions(&self, agent_id: &str) -> Result<Vec<AgentVersion>> {
        all_versions(&self.client, self.workspace, agent_id).await
    }

    async fn config_of(&self, agent_id: &str, version: u64) -> Result<AgentConfig> {
        let selector = VersionSelector::Version(version);
        let detail = self
            .client
            .get_version(Some(self.workspace), agent_id, selector)
            .await?;
        Ok(detail.config)
    }
}

/// All versions of an agent without their contents, newest first.
pub async fn all_versions(client: &Client, workspace: WorkspaceId, agent_id: &str) -> Result<Vec<AgentVersion>> {
    /// The most versions of one answer.
    const PAGE: u32 = 1000;
    let mut versions: Vec<AgentVersion> = Vec::new();
    loop {
        let before = versions.last().map(|version| version.version);
        let page = VersionPage::default().before(before).limit(PAGE);
        let found = client.list_versions(Some(workspace), agent_id, page).await?;
        let is_last = found.len() < PAGE as usize;
        versions.extend(found);
        if is_last {
            return Ok(versions);
        }
    }
}
