//! The bodies of messages.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::{Actor, Target, Timestamp, WorkspaceId};

/// The part of a log entry that a message contains. The entry's changes are not read, so a message never has prompts or
/// secrets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EventHead {
    /// The action as a text, so that one of a later release is delivered too.
    pub(crate) action: String,
    pub(crate) created_at: Timestamp,
    pub(crate) actor: Party,
    pub(crate) target: Party,
    /// The agent's version that the change made.
    pub(crate) version: Option<u64>,
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
}

/// The body of an event's message, the same for each attempt. It is shorter than 2 KiB, because identifiers are short.
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
        };
        let workspace = WorkspaceId::new(uuid::Uuid::max());
        let body = body(workspace, u64::MAX, Some(u64::MAX), &event).unwrap();
        assert!(body.len() < 2048, "{}", body.len());
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
