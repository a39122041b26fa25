//! The base of an apply: whether one of its agents has changed since.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::ApplyState;
use crate::error::{Error, ErrorKind};
use crate::model::{ApplyAgents, Cursor, Target, TargetType, WorkspaceId, change_path};
use crate::service::AgentCfg;
use crate::service::base::base_is_removed;
use crate::service::records::Entity;
use crate::store::Kind;

/// The greatest number of identifiers in a message.
const SHOWN: usize = 10;

impl AgentCfg {
    /// Refuses the change when one of its agents has changed since the base.
    pub(super) async fn require_unchanged(
        &self,
        base: Cursor,
        state: &ApplyState,
        body: &ApplyAgents,
        workspace: WorkspaceId,
    ) -> Result<(), Error> {
        let last = state.revision;
        let since = self.base_revision(base, workspace, last).await?;
        let agents = body.agents.iter().map(|spec| &*spec.agent_id);
        let agents: HashSet<&str> = agents.chain(state.others.iter().map(|(id, ..)| &**id)).collect();
        let mut changed = self.changed_agents(workspace, since, last, &agents).await?;
        // A reader of the base has not seen these in the set.
        let joined = state.others.iter().filter(|(_, (_, member))| {
            let member = member.as_ref();
            member.is_some_and(|member| member.value.revision > since)
        });
        changed.extend(joined.map(|(agent_id, _)| agent_id.to_string()));
        if changed.is_empty() {
            return Ok(());
        }
        let mut message = format!("since base {} of these agents have changed: ", changed.len());
        message += &changed
            .iter()
            .take(SHOWN)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        if changed.len() > SHOWN {
            message += " and others";
        }
        Err(Error::new(ErrorKind::Precondition, message))
    }

    /// The agents, among these, that log entries after one revision and up to another have changed.
    async fn changed_agents(
        &self,
        workspace: WorkspaceId,
        since: u64,
        last: u64,
        agents: &HashSet<&str>,
    ) -> Result<BTreeSet<String>, Error> {
        let mut changed = BTreeSet::new();
        let note = |entry: LogSubject| {
            changed.extend(
                entry
                    .agents()
                    .into_iter()
                    .filter(|agent_id| agents.contains(&**agent_id)),
            );
        };
        self.log_between(workspace, since, last, note)
            .await
            .map_err(base_is_removed)?;
        Ok(changed)
    }
}

/// The part of a log entry that names what it changed.
#[derive(Deserialize)]
struct LogSubject {
    target: Target,
    changes: HashMap<String, IgnoredAny>,
}

impl Entity for LogSubject {
    const KIND: Kind = Kind::LogEntry;
}

impl LogSubject {
    /// The agents that the entry changes, whatever its action is.
    fn agents(self) -> BTreeSet<String> {
        // An agent may be written again with the same content.
        if self.changes.is_empty() && self.target.kind == TargetType::Agent {
            return [self.target.id].into();
        }
        let paths = self
            .changes
            .keys()
            .filter_map(|path| change_path::subject(&self.target, path));
        // A label points at an agent and does not change it.
        let changed = paths.filter(|(_, name)| change_path::label(name).is_none());
        changed.map(|(agent_id, _)| agent_id.to_owned()).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_action_of_a_later_release_changes_the_agents_that_it_names() {
        for (action, kind, id, path, agents) in [
            ("agent.updated", "agent", "writer", "model", &["writer"][..]),
            ("agent.merged", "agent", "writer", "model", &["writer"]),
            ("merged", "agent", "writer", "model", &["writer"]),
            ("agents.applied", "workspace", "w1", "agents/coder/model", &["coder"]),
            ("agents.merged", "workspace", "w1", "agents/coder/model", &["coder"]),
            ("label.set", "agent", "writer", "agents/writer/labels/live", &[]),
            ("label.promoted", "workspace", "w1", "agents/coder/labels/live", &[]),
            ("member.set", "member", "ada", "role", &[]),
            ("host.added", "host", "h1", "role", &[]),
        ] {
            let entry = serde_json::json!({
                "action": action,
                "target": {"type": kind, "id": id},
                "changes": {path: {"from": null, "to": 1}},
            });
            let entry: LogSubject = serde_json::from_value(entry).unwrap();
            let expected: BTreeSet<String> = agents.iter().map(|id| (*id).to_owned()).collect();
            assert_eq!(entry.agents(), expected, "{action}");
        }
    }
}
