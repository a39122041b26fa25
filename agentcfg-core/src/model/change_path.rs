//! The names of changes in a log entry that are no plain fields: labels, and the changes of several agents.
//!
//! In an entry about several agents, the name of each change is `agents/<agent_id>/` and then the name that it has in an entry
//! about that agent. The move of a label is always `agents/<agent_id>/labels/<label>`.

use serde::Deserialize;

use super::{Target, TargetType};

const AGENTS: &str = "agents/";
const LABELS: &str = "labels/";

/// The name of a change of this agent in an entry about several.
pub(crate) fn of_agent(agent_id: &str, name: &str) -> String {
    format!("{AGENTS}{agent_id}/{name}")
}

/// The agent and the name of its change in an entry about several.
pub(crate) fn agent_and_name(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(AGENTS)?.split_once('/')
}

/// The agent that a change is about, and the name of its change: in an entry about one agent or about several.
pub(crate) fn subject<'a>(target: &'a Target, path: &'a str) -> Option<(&'a str, &'a str)> {
    let of_target = || (target.kind == TargetType::Agent).then_some((&*target.id, path));
    agent_and_name(path).or_else(of_target)
}

/// The versions before and after the move of a label.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct MovedVersions {
    pub(crate) from: Option<u64>,
    pub(crate) to: Option<u64>,
}

/// The name of the move of a label of this agent.
pub(crate) fn of_label(agent_id: &str, label: &str) -> String {
    of_agent(agent_id, &format!("{LABELS}{label}"))
}

/// The label whose move has this name.
pub(crate) fn label(name: &str) -> Option<&str> {
    name.strip_prefix(LABELS)
}

/// Whether the name is that of a change of an agent in an entry about several.
pub(crate) fn is_of_agent(path: &str) -> bool {
    path.starts_with(AGENTS)
}
