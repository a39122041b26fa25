//! Live status of agents.

use serde::{Deserialize, Serialize};

use super::named::named;

named! {
    /// What an agent is doing. (Interface specification, *Agent live status*.)
    LiveStatus {
        /// Up, without a task.
        Idle = "idle",
        /// At work on a task.
        Working = "working",
        /// Down, or not heard of for longer than the time-to-live.
        Offline = "offline",
    }
}

/// The live status of one agent. (Interface specification, *Agent status entry*.)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The agent's identifier within the workspace.
    pub agent_id: String,
    /// The agent's name for people.
    pub display_name: String,
    /// What it is doing.
    pub status: LiveStatus,
    /// The task it works on.
    pub current_task_id: Option<String>,
    /// That task's title.
    pub current_task_title: Option<String>,
}

/// A report of what an agent is doing now.
///
/// Only [`LiveStatus::Working`] names a task, and then both its fields are required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusReport {
    /// What it is doing.
    pub status: LiveStatus,
    /// The task's identifier, 1–100 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_task_id: Option<String>,
    /// The task's title, 1–200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_task_title: Option<String>,
}

impl StatusReport {
    /// The agent is up and has no task.
    pub fn idle() -> Self {
        Self {
            status: LiveStatus::Idle,
            current_task_id: None,
            current_task_title: None,
        }
    }

    /// The agent is down.
    pub fn offline() -> Self {
        Self {
            status: LiveStatus::Offline,
            current_task_id: None,
            current_task_title: None,
        }
    }

    /// The agent works on a task.
    pub fn working(task_id: impl Into<String>, task_title: impl Into<String>) -> Self {
        Self {
            status: LiveStatus::Working,
            current_task_id: Some(task_id.into()),
            current_task_title: Some(task_title.into()),
        }
    }
}
