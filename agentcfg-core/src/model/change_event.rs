//! Events of the change feed.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::{
    Action, Actor, AgentId, AgentStatus, Changes, Cursor, CursorError, Label, LiveStatus, Message, ReleasedAgent,
    Target, Timestamp, change_path, event_family,
};
use crate::body::record;
use crate::rules;
use crate::validate::{MAX_DISPLAY_NAME, MAX_NAME, MAX_TASK_TITLE};

record! {
    /// One change in a workspace, as the change feed shows it.
    ///
    /// The changes of an agent's event hold its configurable fields, `is_active`, `id`, `created_at` and `updated_at` where
    /// they changed. Applied in order to the list at a cursor, they give the list now; [`AgentMirror`](super::AgentMirror)
    /// does that.
    ///
    /// ```
    /// use agentcfg_core::model::ChangeEvent;
    /// fn line(event: &ChangeEvent) -> String {
    ///     format!("{}: {} {} {}", event.revision, event.actor.id, event.kind, event.target.id)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    ChangeEvent {
        /// The position after this event. A reader that has handled the event goes on from here.
        cursor: required Cursor,
        /// The number of the event in the workspace, from 1.
        revision: required u64,
        /// Identifier of the audit entry.
        id: required Uuid as rules::RecordId,
        /// What was done.
        kind "type": required Action,
        /// When it happened.
        created_at: required Timestamp,
        /// Who acted.
        actor: required Actor,
        /// What was acted on.
        target: required Target,
        /// The message that the caller gave with the change.
        message: nullable Message,
        /// The version of the agent's configuration that the change made.
        version: nullable u64,
        /// The fields that changed, by name. Credentials are never among them.
        changes: required Changes,
        /// In a stream that follows a label, where the event does nothing but move it: the versions that it points at from
        /// then on, with their content. It is left out where it would be long, and where a version is no longer kept:
        /// read what the label releases.
        released: sparse Vec<ReleasedAgent>,
    }
    examples: [{
        "cursor": "k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c42",
        "revision": 42,
        "id": "0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10",
        "type": "agent.updated",
        "created_at": "2026-11-20T10:05:41.007Z",
        "actor": { "type": "user", "id": "user_71" },
        "target": { "type": "agent", "id": "release-writer" },
        "message": null,
        "version": 7,
        "changes": {
            "model": { "from": "gpt-5.5", "to": "claude-sonnet-5-5" },
            "updated_at": { "from": "2026-11-20T09:30:00.123Z", "to": "2026-11-20T10:05:41.007Z" },
        },
    }],
}

impl ChangeEvent {
    /// Whether the event is about agents or their labels. A reader without `audit_log:read` is shown no others.
    ///
    /// ```
    /// use agentcfg_core::model::{Action, ChangeEvent};
    /// assert!(ChangeEvent::concerns_agents(Action::AgentCreated));
    /// assert!(!ChangeEvent::concerns_agents(Action::MemberSet));
    /// ```
    pub fn concerns_agents(action: Action) -> bool {
        event_family::concerns_agents(action.as_str())
    }

    /// Whether this label may release something else after the event: the label moved, an agent is active or deleted now, or for
    /// `latest` an agent has changed. An action that this release does not know may do it too.
    ///
    /// ```
    /// use agentcfg_core::model::{ChangeEvent, Label};
    /// fn reread<'a>(events: &'a [ChangeEvent], label: &'a Label) -> Option<&'a ChangeEvent> {
    ///     events.iter().find(|event| event.may_release(label))
    /// }
    /// ```
    pub fn may_release(&self, label: &Label) -> bool {
        if self.kind == Action::Unknown {
            return true;
        }
        let names = self
            .changes
            .keys()
            .filter_map(|path| change_path::subject(&self.target, path));
        names.into_iter().any(|(_, name)| match change_path::label(name) {
            Some(moved) => moved == &**label,
            None => name == "is_active" || label.is_latest(),
        })
    }
}

record! {
    /// The live status of an agent, as the change feed shows it.
    ///
    /// ```
    /// use agentcfg_core::model::StatusEvent;
    /// let event: StatusEvent = serde_json::from_str(r#"{
    ///     "agent_id": "writer", "display_name": "Writer", "status": "idle",
    ///     "current_task_id": null, "current_task_title": null, "reported_at": "2026-11-20T10:05:41.007Z"
    /// }"#)?;
    /// assert!(event.reported_at.is_some());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    StatusEvent {
        /// Identifier of the agent in its workspace.
        agent_id: required AgentId,
        /// Name for people.
        display_name: required String as rules::NotBlank<MAX_DISPLAY_NAME>,
        /// What the agent is doing.
        status: required LiveStatus,
        /// The task that it is working on.
        current_task_id: nullable String as rules::TextFromOne<MAX_NAME>,
        /// Title of that task.
        current_task_title: nullable String as rules::TextFromOne<MAX_TASK_TITLE>,
        /// When the agent last reported; null before its first report.
        reported_at: nullable Timestamp,
    }
    examples: [{
        "agent_id": "release-writer",
        "display_name": "Release writer",
        "status": "working",
        "current_task_id": "TASK-118",
        "current_task_title": "Draft the notes for 2.4",
        "reported_at": "2026-11-20T10:05:41.007Z",
    }],
}

impl From<StatusEvent> for AgentStatus {
    fn from(event: StatusEvent) -> Self {
        Self {
            agent_id: event.agent_id,
            display_name: event.display_name,
            status: event.status,
            current_task_id: event.current_task_id,
            current_task_title: event.current_task_title,
        }
    }
}

/// Where a reader of the change feed starts.
///
/// ```
/// use agentcfg_core::model::After;
/// assert_eq!("now".parse(), Ok(After::Now));
/// assert!("yesterday".parse::<After>().is_err());
/// # Ok::<(), agentcfg_core::model::CursorError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum After {
    /// After this position.
    Cursor(Cursor),
    /// After the last event that there is: only what comes.
    Now,
    /// Before the first event of the workspace.
    Start,
}

impl From<Cursor> for After {
    fn from(cursor: Cursor) -> Self {
        Self::Cursor(cursor)
    }
}

impl FromStr for After {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        match text {
            "now" => Ok(Self::Now),
            "start" => Ok(Self::Start),
            cursor => cursor.parse().map(Self::Cursor),
        }
    }
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cursor(cursor) => cursor.fmt(f),
            Self::Now => f.write_str("now"),
            Self::Start => f.write_str("start"),
        }
    }
}
