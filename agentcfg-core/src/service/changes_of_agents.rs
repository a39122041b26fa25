//! The changes of several agents in one audit entry.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::agent_change::AgentWrites;
use super::records::{self, PackedPaths};
use crate::error::Error;
use crate::model::change_path;

/// The changes of several agents in one entry, under paths such as `agents/writer/role`.
#[derive(Default)]
pub(super) struct ChangesOfAgents {
    changes: PathTexts,
    rebuilding: PathTexts,
    packed: PackedPaths,
}

impl ChangesOfAgents {
    /// Adds the changes of an agent.
    pub(super) fn add(&mut self, agent_id: &str, written: &AgentWrites) -> Result<(), Error> {
        self.rebuilding
            .add(agent_id, &written.rebuilding, |_, _, change| change)?;
        let Self { changes, packed, .. } = self;
        changes.add(agent_id, &written.changes, |path, name, change| match written.version {
            Some(version) if packed.takes(path, name, version, change) => "null",
            _ => change,
        })
    }

    /// The changes as the JSON object of an entry, those for the change feed, and which of the former leave their
    /// values to versions.
    pub(super) fn into_texts(self) -> (Vec<u8>, Vec<u8>, PackedPaths) {
        (self.changes.into_text(), self.rebuilding.into_text(), self.packed)
    }
}

/// The text of an object whose names are paths.
struct PathTexts(Vec<u8>);

impl Default for PathTexts {
    fn default() -> Self {
        Self(b"{".to_vec())
    }
}

impl PathTexts {
    /// Adds the changes of an agent, each with the value that `written` returns for its path, its name and its text.
    fn add(
        &mut self,
        agent_id: &str,
        changes: &[u8],
        mut written: impl for<'a> FnMut(&str, &str, &'a str) -> &'a str,
    ) -> Result<(), Error> {
        let fields: BTreeMap<&str, &RawValue> = serde_json::from_slice(changes).map_err(records::not_read)?;
        for (field, change) in fields {
            if self.0.len() > 1 {
                self.0.push(b',');
            }
            let path = change_path::of_agent(agent_id, field);
            serde_json::to_writer(&mut self.0, &path).map_err(records::not_written)?;
            self.0.push(b':');
            self.0.extend_from_slice(written(&path, field, change.get()).as_bytes());
        }
        Ok(())
    }

    fn into_text(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}
