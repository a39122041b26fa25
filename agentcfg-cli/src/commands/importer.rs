//! What an import into a workspace works with: agents that are ready to be sent, and the workspace.

use std::collections::BTreeMap;
use std::path::Path;

use agentcfg_client::Client;
use agentcfg_client::model::{Agent, AgentConfig, AgentSpec, AgentVersion, WorkspaceId};

use crate::failure::{CommandFailure, Result};
use crate::import::{self, Format, Imported, Node, differing_fields};

/// An imported agent, or a version of one, and what the service is given.
pub struct Ready {
    pub imported: Imported,
    pub spec: AgentSpec,
}

/// The agents of the workspace by their identifiers.
pub type Known = BTreeMap<String, Agent>;

/// How many agents, and how many bytes of them, are sent in one request.
pub const MAX_AGENTS: usize = 200;
const MAX_BYTES: usize = 4 << 20;

/// Brings imported agents into a workspace.
pub struct Importer<'a> {
    pub client: Client,
    pub workspace: WorkspaceId,
    pub format: &'static Format,
    /// What the messages of versions begin with that an import of this format made.
    pub mark: &'a str,
    pub overwrite: bool,
}

impl Importer<'_> {
    /// The number that the source gave to the version which an agent of the workspace was made of.
    pub fn number_in(&self, config: &AgentConfig) -> Result<Option<u64>> {
        source_version(self.format.word, config)
    }

    /// Whether a version of the workspace was made of a version of the source, as that is now.
    pub fn is_made_of(&self, one: &Ready, config: &AgentConfig) -> Result<bool> {
        Ok(differing_fields(self.format, &one.spec, config)?.is_empty())
    }
}

/// Agents in parts that a request can have.
pub fn batches<'a, 'b>(ready: &'a [&'b Ready]) -> Result<Vec<&'a [&'b Ready]>> {
    let (mut batches, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, one) in ready.iter().enumerate() {
        let size = serde_json::to_vec(&one.spec)?.len();
        if at > from && (at - from >= MAX_AGENTS || bytes + size > MAX_BYTES) {
            batches.push(&ready[from..at]);
            (from, bytes) = (at, 0);
        }
        bytes += size;
    }
    if from < ready.len() {
        batches.push(&ready[from..]);
    }
    Ok(batches)
}

/// The number that the source gave to the version, which its format keeps in the definition.
pub fn source_version(word: &str, config: &AgentConfig) -> Result<Option<u64>> {
    let json = serde_json::to_string(config)?;
    let config = import::from_json(Path::new("agent"), &json).map_err(CommandFailure::error)?;
    let kept = config.get("definition").and_then(|definition| definition.get(word));
    Ok(kept
        .and_then(|kept| kept.get("version"))
        .and_then(Node::scalar)
        .and_then(|version| version.parse().ok()))
}

/// What the messages of versions begin with that an import of a format made.
pub fn mark(word: &str) -> String {
    format!("agentcfg import {word}")
}

/// Whether an import made a version whose message begins with this mark.
pub fn is_made_by(version: &AgentVersion, mark: &str) -> bool {
    version.message.as_ref().is_some_and(|message| {
        let rest = message.strip_prefix(mark);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    })
}
