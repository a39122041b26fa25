//! The bodies of messages.

use serde::{Deserialize, Serialize};

use super::details::{AppliedRow, Limited, MovedRow};
use crate::error::Error;
use crate::model::{Actor, Target, Timestamp, WorkspaceId};

/// The part of a log entry that a message contains. Of the entry's changes only the moves of labels are read, so a
/// message never has prompts or secrets.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct EventHead {
    /// The action as a text, so that one of a later release is delivered too.
    pub(crate) action: String,
    pub(crate) created_at: Timestamp,
    pub(crate) actor: Party,
    pub(crate) target: Party,
    /// The agent's version that the change made.
    pub(crate) version: Option<u64>,
    /// The agents that an apply changed.
    #[serde(default)]
    pub(crate) applied: Limited<AppliedRow>,
    #[serde(default)]
    changes: Limited<MovedRow>,
}

/// An actor or a target, of a kind that this release may not know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Party {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

impl From<Actor> for Party {
    fn from(actor: Actor) -> Self {
        Self {
            kind: actor.kind.to_string(),
            id: actor.id,
        }
    }
}

impl From<Target> for Party {
    fn from(target: Target) -> Self {
        Self {
            kind: target.kind.to_string(),
            id: target.id,
        }
    }
}

#[derive(Serialize)]
struct Message<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    timestamp: Timestamp,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    workspace_id: WorkspaceId,
    revision: Option<u64>,
    previous_revision: Option<u64>,
    actor: &'a Party,
    target: &'a Party,
    version: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    labels: &'a [MovedRow],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    agents: &'a [AppliedRow],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// The body of an event's message, the same for each attempt. It is shorter than 24 KiB, because identifiers are short
/// and lists have at most 100 rows; without a list it is shorter than 2 KiB.
pub(crate) fn body(
    workspace_id: WorkspaceId,
    revision: u64,
    previous_revision: Option<u64>,
    event: &EventHead,
) -> Result<Vec<u8>, Error> {
    encode(&Message {
        kind: &event.action,
        timestamp: event.created_at,
        data: Data {
            workspace_id,
            revision: Some(revision),
            previous_revision,
            actor: &event.actor,
            target: &event.target,
            version: event.version,
            labels: &event.changes.rows,
            agents: &event.applied.rows,
            truncated: event.changes.is_truncated || event.applied.is_truncated,
        },
    })
}

/// The body of a test message, which belongs to no entry of the log.
pub(crate) fn test_body(
    workspace_id: WorkspaceId,
    kind: &str,
    timestamp: Timestamp,
    actor: Actor,
    target: Target,
) -> Result<Vec<u8>, Error> {
    encode(&Message {
        kind,
        timestamp,
        data: Data {
            workspace_id,
            revision: None,
            previous_revision: None,
            actor: &actor.into(),
            target: &target.into(),
            version: None,
            labels: &[],
            agents: &[],
            truncated: false,
        },
    })
}

fn encode(message: &Message<'_>) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(message).map_err(|error| {
        Error::new(
            crate::ErrorKind::Internal,
            "the message of a webhook could not be written",
        )
        .because(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_message_is_shorter_than_two_kibibytes() {
        // The longest identifier is a user's of 200 characters. Quotes double, and control characters are refused.
        let long = "\u{1f600}".repeat(crate::validate::MAX_USER_ID);
        let event = EventHead {
            action: "member.removed".into(),
            created_at: "2026-11-20T09:30:00Z".parse().unwrap(),
            actor: Party {
                kind: "operator".into(),
                id: long.clone(),
            },
            target: Party {
                kind: "provider_key".into(),
                id: long,
            },
            version: Some(u64::MAX),
            applied: Limited::default(),
            changes: Limited::default(),
        };
        let workspace = WorkspaceId::new(uuid::Uuid::max());
        let length = |event: &EventHead| body(workspace, u64::MAX, Some(u64::MAX), event).unwrap().len();
        assert!(length(&event) < 2048, "{}", length(&event));
        // An event has one of the two lists.
        let (agent, label) = (
            "a".repeat(crate::validate::MAX_AGENT_ID),
            "l".repeat(crate::validate::MAX_LABEL),
        );
        let moves = (0..200).map(|number| {
            let path = format!("agents/{}{number:03}/labels/{label}", &agent[3..]);
            (path, serde_json::json!({"from": u64::MAX, "to": u64::MAX}))
        });
        let moves: serde_json::Map<_, _> = moves.collect();
        let moved = EventHead {
            changes: serde_json::from_value(moves.into()).unwrap(),
            ..event.clone()
        };
        let row = serde_json::json!({"agent_id": agent, "action": "deactivate", "version": u64::MAX});
        let applied = EventHead {
            applied: serde_json::from_value(vec![row; 200].into()).unwrap(),
            ..event
        };
        for long in [moved, applied] {
            assert!((2048..24 << 10).contains(&length(&long)), "{}", length(&long));
        }
    }

    #[test]
    fn a_message_has_no_changes() {
        let entry = r#"{"id":"0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10","workspace_id":"0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "actor":{"type":"robot","id":"r"},"action":"agent.renamed","target":{"type":"agent","id":"writer"},
            "created_at":"2026-11-20T10:05:41.007Z","changes":{"persona_prompt":{"from":null,"to":"secret prompt"}}}"#;
        let event: EventHead = serde_json::from_str(entry).unwrap();
        let workspace = "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05".parse().unwrap();
        let body = body(workspace, 7, None, &event).unwrap();
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"{"type":"agent.renamed","timestamp":"2026-11-20T10:05:41.007Z","data":{"workspace_id":"0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05","revision":7,"previous_revision":null,"actor":{"type":"robot","id":"r"},"target":{"type":"agent","id":"writer"},"version":null}}"#
        );
    }
}
