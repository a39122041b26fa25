//! Live status of agents.

use super::AgentId;
use super::Timestamp;
use super::word_enum::word_enum;
use crate::body::{body, record};
use crate::rules;
use crate::validate::{Faults, MAX_DISPLAY_NAME, MAX_NAME, MAX_TASK_TITLE};

word_enum! {
    /// What an agent is doing at the moment.
    LiveStatus {
        /// Up, without a task.
        Idle = "idle",
        /// At work on a task.
        Working = "working",
        /// Down, or without a report for longer than the time-to-live.
        Offline = "offline",
    } or Unknown
}

record! {
    /// A change of what an agent is doing.
    ///
    /// ```
    /// use agentcfg_core::model::StatusChange;
    /// fn line(change: &StatusChange) -> String {
    ///     format!("{} {}: {}", change.at, change.agent_id, change.status)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    StatusChange {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// When it was reported, or when the last report ceased to count.
        at: required Timestamp,
        /// What the agent is doing from then on.
        status: required LiveStatus,
        /// Identifier of the task being worked on. Null unless the status is `working`.
        current_task_id: nullable String as rules::TextFromOne<MAX_NAME>,
        /// Title of that task. Null unless the status is `working`.
        current_task_title: nullable String as rules::TextFromOne<MAX_TASK_TITLE>,
    }
    examples: [{
        "agent_id": "release-writer",
        "at": "2026-11-20T09:30:00.123Z",
        "status": "working",
        "current_task_id": "TASK-118",
        "current_task_title": "Draft the notes for 2.4",
    }],
}

record! {
    /// What one agent is doing.
    ///
    /// ```
    /// use agentcfg_core::model::{AgentStatus, LiveStatus};
    /// fn is_free(entry: &AgentStatus) -> bool {
    ///     entry.status == LiveStatus::Idle
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    AgentStatus {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The agent's name for people.
        display_name: required String as rules::NotBlank<MAX_DISPLAY_NAME>,
        /// What the agent is doing.
        status: required LiveStatus,
        /// Identifier of the task being worked on. Null unless the status is `working`.
        current_task_id: nullable String as rules::TextFromOne<MAX_NAME>,
        /// Title of that task. Null unless the status is `working`.
        current_task_title: nullable String as rules::TextFromOne<MAX_TASK_TITLE>,
    }
    examples: [
        {
            "agent_id": "release-writer",
            "display_name": "Release writer",
            "status": "working",
            "current_task_id": "TASK-118",
            "current_task_title": "Draft the notes for 2.4",
        },
        {
            "agent_id": "reviewer_2",
            "display_name": "Ana",
            "status": "offline",
            "current_task_id": null,
            "current_task_title": null,
        },
    ],
}

body! {
    /// What an agent does now. `working` names a task by both fields; `idle` and `offline` name none.
    ///
    /// ```
    /// use agentcfg_core::model::{LiveStatus, StatusReport};
    /// let report = StatusReport::working("T-7", "Write the release notes");
    /// assert_eq!(report.status, LiveStatus::Working);
    /// let without_task = report.current_task_id(None);
    /// assert_eq!(without_task.validate().unwrap_err().to_string(), "current_task_id is required when status is working");
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    create StatusReport {
        /// What the agent is doing.
        status: required LiveStatus,
        /// Identifier of the task being worked on.
        current_task_id: nullable String as rules::TextFromOne<MAX_NAME> => task_fits(status),
        /// Title of that task.
        current_task_title: nullable String as rules::TextFromOne<MAX_TASK_TITLE> => task_fits(status),
    }
    read_only: &["agent_id", "display_name"],
    examples: [
        { "status": "working", "current_task_id": "TASK-118", "current_task_title": "Draft the notes for 2.4" },
        { "status": "idle" },
    ],
    also: {
        "if": { "properties": { "status": { "const": "working" } }, "required": ["status"] },
        "then": {
            "properties": { "current_task_id": { "type": "string" }, "current_task_title": { "type": "string" } },
            "required": ["current_task_id", "current_task_title"],
        },
        "else": {
            "properties": { "current_task_id": { "type": "null" }, "current_task_title": { "type": "null" } },
        },
    },
}

/// A field of a task is there when the status is `working`, and not else.
fn task_fits(status: LiveStatus, field: &str, is_given: bool, faults: &mut Faults) {
    match (status, is_given) {
        (LiveStatus::Working, false) => faults.push(field, "is required when status is working"),
        (LiveStatus::Idle | LiveStatus::Offline, true) => {
            faults.push(field, format_args!("must be absent when status is {status}"));
        }
        (LiveStatus::Working, true) | (LiveStatus::Idle | LiveStatus::Offline, false) | (LiveStatus::Unknown, _) => {}
    }
}

impl StatusReport {
    /// A report without a task.
    ///
    /// ```
    /// use agentcfg_core::model::{LiveStatus, StatusReport};
    /// assert_eq!(StatusReport::new(LiveStatus::Idle), StatusReport::idle());
    /// ```
    pub fn new(status: LiveStatus) -> Self {
        Self {
            status,
            current_task_id: None,
            current_task_title: None,
        }
    }

    /// The agent is up and has no task.
    ///
    /// ```
    /// use agentcfg_core::model::{LiveStatus, StatusReport};
    /// assert_eq!(StatusReport::idle().status, LiveStatus::Idle);
    /// ```
    pub fn idle() -> Self {
        Self::new(LiveStatus::Idle)
    }

    /// The agent is down.
    ///
    /// ```
    /// use agentcfg_core::model::{LiveStatus, StatusReport};
    /// assert_eq!(StatusReport::offline().status, LiveStatus::Offline);
    /// ```
    pub fn offline() -> Self {
        Self::new(LiveStatus::Offline)
    }

    /// The agent works on a task.
    ///
    /// ```
    /// use agentcfg_core::model::StatusReport;
    /// let report = StatusReport::working("T-7", "Write the release notes");
    /// assert_eq!(report.current_task_id.as_deref(), Some("T-7"));
    /// ```
    pub fn working(task_id: impl Into<String>, task_title: impl Into<String>) -> Self {
        Self {
            status: LiveStatus::Working,
            current_task_id: Some(task_id.into()),
            current_task_title: Some(task_title.into()),
        }
    }
}
