//! The entries of a workspace's log since a revision, and the state at that revision.
//!
//! A long read cannot be one snapshot: a snapshot that a slow reader holds open would keep the store from using its
//! space again. So it reads pieces, each of them one snapshot of its own, and takes back what the log says has changed
//! since the revision that it is to show.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::AgentCfg;
use super::records::{self, StoredEntry};
use crate::error::Error;
use crate::model::{Action, Agent, ApiKey, Changes, Target, TargetType, WorkspaceId, change_path};

/// What the log since a revision has changed, as far as it was read.
pub(super) struct LogSince {
    workspace: WorkspaceId,
    /// The number of the last entry that was read.
    read: u64,
    agents: HashMap<String, Undo>,
    api_keys: HashMap<String, Undo>,
    /// By agent and label: the version at the revision.
    labels: BTreeMap<String, BTreeMap<String, Option<u64>>>,
    /// Whether a record has changed whose change cannot be taken back.
    others: bool,
}

/// How to get from a later state of a record to that at the revision.
#[derive(Default)]
struct Undo {
    /// Whether the record did not exist at the revision.
    is_new: bool,
    /// The fields that have changed since, with their values at the revision.
    fields: BTreeMap<String, Value>,
}

impl LogSince {
    /// The changes since a revision, before any entry was read.
    pub(super) fn new(workspace: WorkspaceId, revision: u64) -> Self {
        Self {
            workspace,
            read: revision,
            agents: HashMap::new(),
            api_keys: HashMap::new(),
            labels: BTreeMap::new(),
            others: false,
        }
    }

    /// Reads the entries up to this one, the last entry in the snapshot of a piece.
    pub(super) async fn read_to(&mut self, service: &AgentCfg, last: u64) -> Result<(), Error> {
        let (workspace, read) = (self.workspace, self.read);
        self.read = service
            .log_between(workspace, read, last, |entry| self.note(entry))
            .await?;
        Ok(())
    }

    fn note(&mut self, mut entry: StoredEntry) {
        entry.changes.append(&mut entry.rebuilding);
        match (entry.action, entry.target.kind) {
            (_, TargetType::Agent) => self.note_agents(&entry.target, entry.changes),
            (_, TargetType::ApiKey) => {
                // A rotation makes a key, which has no entry of its own.
                if let Some(Value::String(made)) = entry.changes.get("replaced_by").map(|change| &change.to) {
                    self.api_keys.entry(made.clone()).or_default().is_new = true;
                }
                let undo = self.api_keys.entry(entry.target.id).or_default();
                for (field, change) in entry.changes {
                    undo.note(field, change.from);
                }
            }
            (Action::WorkspaceExported | Action::BudgetThresholdReached | Action::BudgetSettled, _) => {}
            // A change of several agents names them in the paths of its changes, whatever its action is.
            (
                action,
                TargetType::Workspace
                | TargetType::Member
                | TargetType::ProviderKey
                | TargetType::Webhook
                | TargetType::Budget
                | TargetType::Unknown,
            ) => {
                // The records that are read as one, from one snapshot. An apply may have changed sets.
                self.others |= !matches!(action, Action::LabelPromoted | Action::LabelRestored);
                self.note_agents(&entry.target, entry.changes);
            }
        }
    }

    /// Notes the changes of agents.
    fn note_agents(&mut self, target: &Target, changes: Changes) {
        for (path, change) in changes {
            if let Some((agent_id, name)) = change_path::subject(target, &path) {
                self.note_agent(agent_id, name, change.from);
            }
        }
    }

    /// Notes the change of a field or of a label of an agent.
    fn note_agent(&mut self, agent_id: &str, name: &str, from: Value) {
        match change_path::label(name) {
            Some(label) => self.note_label(agent_id, label, &from),
            None => self
                .agents
                .entry(agent_id.to_owned())
                .or_default()
                .note(name.to_owned(), from),
        }
    }

    fn note_label(&mut self, agent_id: &str, label: &str, from: &Value) {
        let labels = self.labels.entry(agent_id.to_owned()).or_default();
        labels.entry(label.to_owned()).or_insert_with(|| from.as_u64());
    }

    /// For each label of an agent that was moved since the revision, its version at the revision; `None` where it did
    /// not exist.
    pub(super) fn moved_labels(&self, agent_id: &str) -> Option<&BTreeMap<String, Option<u64>>> {
        self.labels.get(agent_id)
    }

    /// As [`Self::moved_labels`], of all agents.
    pub(super) fn into_moved_labels(self) -> BTreeMap<String, BTreeMap<String, Option<u64>>> {
        self.labels
    }

    /// The agents after one identifier, up to another one, whose labels were moved since the revision.
    pub(super) fn agents_of_moved_labels(&self, after: Option<&str>, last: Option<&str>) -> Vec<String> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let last = last.map_or(Bound::Unbounded, Bound::Included);
        self.labels
            .range::<str, _>((after, last))
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Whether the workspace itself, its members, its provider keys, its webhooks or its sets may have changed.
    pub(super) fn has_others(&self) -> bool {
        self.others
    }

    /// An agent as it was at the revision; `None` where there was none.
    pub(super) fn agent(&self, agent: Agent) -> Result<Option<Agent>, Error> {
        match self.agents.get(&*agent.agent_id) {
            Some(undo) => undo.apply(&agent),
            None => Ok(Some(agent)),
        }
    }

    /// An API key as it was at the revision; `None` where there was none.
    pub(super) fn api_key(&self, key: ApiKey) -> Result<Option<ApiKey>, Error> {
        match self.api_keys.get(&*key.id) {
            Some(undo) => undo.apply(&key),
            None => Ok(Some(key)),
        }
    }
}

impl Undo {
    fn note(&mut self, field: String, from: Value) {
        // Each record has one of these fields, and neither is ever null.
        self.is_new |= from.is_null() && ["is_active", "scope"].contains(&&*field);
        // The first change since the revision has the value that the revision had.
        self.fields.entry(field).or_insert(from);
    }

    fn apply<T: Serialize + DeserializeOwned>(&self, record: &T) -> Result<Option<T>, Error> {
        if self.is_new {
            return Ok(None);
        }
        let undone = serde_json::to_value(record).and_then(|mut value| {
            if let Value::Object(fields) = &mut value {
                // Fields that the record does not have belong to other records of the agent.
                let shown = self.fields.iter().filter(|(name, _)| fields.contains_key(*name));
                let shown: Vec<_> = shown.map(|(name, value)| (name.clone(), value.clone())).collect();
                fields.extend(shown);
            }
            serde_json::from_value(value)
        });
        undone.map(Some).map_err(records::not_read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The agents, and the agents with moved labels, that an entry is about, and whether it is about anything else.
    fn noted(action: &str, kind: &str, id: &str, path: &str) -> (Vec<String>, Vec<String>, bool) {
        let workspace = WorkspaceId::new(uuid::Uuid::nil());
        let entry = serde_json::json!({
            "id": "018f2d7c-0000-7000-8000-000000000002",
            "workspace_id": workspace,
            "actor": {"type": "user", "id": "ada"},
            "action": action,
            "target": {"type": kind, "id": id},
            "created_at": "2026-11-20T09:30:00.123Z",
            "changes": {path: {"from": 1, "to": 2}},
        });
        let mut since = LogSince::new(workspace, 0);
        since.note(serde_json::from_value(entry).unwrap());
        let agents = since.agents.into_keys().collect();
        (agents, since.labels.into_keys().collect(), since.others)
    }

    #[test]
    fn an_entry_is_taken_back_by_its_target_and_paths() {
        for (action, kind, id, path, agents, labels, others) in [
            (
                "agent.updated",
                "agent",
                "writer",
                "model",
                &["writer"][..],
                &[][..],
                false,
            ),
            (
                "agents.applied",
                "workspace",
                "w",
                "agents/coder/model",
                &["coder"],
                &[],
                true,
            ),
            (
                "agents.merged",
                "workspace",
                "w",
                "agents/coder/model",
                &["coder"],
                &[],
                true,
            ),
            ("label.set", "agent", "writer", "labels/live", &[], &["writer"], false),
            (
                "label.promoted",
                "workspace",
                "w",
                "agents/coder/labels/live",
                &[],
                &["coder"],
                false,
            ),
            (
                "labels.moved",
                "workspace",
                "w",
                "agents/coder/labels/live",
                &[],
                &["coder"],
                true,
            ),
            ("member.set", "member", "ada", "role", &[], &[], true),
            ("workspace.exported", "workspace", "w", "revision", &[], &[], false),
        ] {
            let expected = (to_strings(agents), to_strings(labels), others);
            assert_eq!(noted(action, kind, id, path), expected, "{action}");
        }
    }

    fn to_strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }
}
