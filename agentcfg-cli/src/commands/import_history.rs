//! Which versions of a source the workspace has: an import makes newer ones only, and names those that are missing.

use std::collections::{BTreeMap, BTreeSet};

use agentcfg_client::Client;
use agentcfg_client::model::{Agent, AgentVersion, VersionPage, VersionSelector, WorkspaceId};

use super::importer::{Importer, source_version};
use crate::failure::Result;

/// How many agents are read by their versions. The past of more is read for all of them at once.
const MAX_READ: usize = 5;

/// The most moments of the past that are read.
const MAX_MOMENTS: usize = 200;

/// Numbers of versions of the source by agents.
type Numbers = BTreeMap<String, BTreeSet<u64>>;

impl Importer<'_> {
    /// Those of the wanted numbers that no version of the workspace has.
    pub async fn missing(&self, known: &BTreeMap<String, Agent>, mut wanted: Numbers) -> Result<Numbers> {
        for (agent_id, numbers) in &mut wanted {
            if let Some(agent) = known.get(agent_id)
                && let Some(current) = source_version(self.word, &agent.config())?
            {
                numbers.remove(&current);
            }
        }
        wanted.retain(|_, numbers| !numbers.is_empty());
        let mut read = BTreeSet::new();
        if wanted.len() > MAX_READ {
            read = self.remove_past(known, &mut wanted).await?;
        }
        for (agent_id, numbers) in wanted.iter_mut().filter(|(agent_id, _)| !read.contains(*agent_id)) {
            for version in self.versions(agent_id).await? {
                if numbers.is_empty() {
                    break;
                }
                if let Some(number) = self.number_of(agent_id, version.version).await? {
                    numbers.remove(&number);
                }
            }
        }
        wanted.retain(|_, numbers| !numbers.is_empty());
        Ok(wanted)
    }

    /// Removes the numbers that agents had at earlier moments. An import changes many agents in one commit, so that few
    /// lists of the past have the versions of all of them. Returns the agents whose past was read to its beginning.
    async fn remove_past(&self, known: &BTreeMap<String, Agent>, wanted: &mut Numbers) -> Result<BTreeSet<String>> {
        let mut read = BTreeSet::new();
        // When the earliest known version of each agent was made.
        let mut since: BTreeMap<String, _> = BTreeMap::new();
        for agent_id in wanted.keys() {
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
                if let Some(number) = source_version(self.word, &agent.config())?
                    && let Some(numbers) = wanted.get_mut(&agent_id)
                {
                    numbers.remove(&number);
                }
                match wanted.get(&agent_id).is_some_and(|numbers| !numbers.is_empty()) {
                    true => since.insert(agent_id, agent.updated_at),
                    false => since.remove(&agent_id),
                };
            }
            wanted.retain(|_, numbers| !numbers.is_empty());
        }
        Ok(read)
    }

    /// The version of an agent that was made of a version of the source.
    pub async fn version_of(&self, agent_id: &str, number: Option<u64>) -> Result<Option<u64>> {
        for version in self.versions(agent_id).await? {
            if self.number_of(agent_id, version.version).await? == number {
                return Ok(Some(version.version));
            }
        }
        Ok(None)
    }

    /// The versions of an agent without their contents, newest first.
    pub async fn versions(&self, agent_id: &str) -> Result<Vec<AgentVersion>> {
        all_versions(&self.client, self.workspace, agent_id).await
    }

    async fn number_of(&self, agent_id: &str, version: u64) -> Result<Option<u64>> {
        let selector = VersionSelector::Version(version);
        let detail = self
            .client
            .get_version(Some(self.workspace), agent_id, selector)
            .await?;
        source_version(self.word, &detail.config)
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
