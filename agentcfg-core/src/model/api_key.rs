//! API keys.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::named::named;
use super::{Scope, Timestamp, WorkspaceId};

named! {
    /// Where an API key is meant to be used. (Interface specification, *API key*.)
    Environment {
        /// Keys start with `svc_test_`.
        Development = "development",
        /// Keys start with `svc_live_`.
        Production = "production",
    }
}

impl Environment {
    /// The prefix of the keys of this environment.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Development => "svc_test_",
            Self::Production => "svc_live_",
        }
    }
}

/// Requests per minute of a key that has no limit of its own. (Interface specification, *Rate limit*.)
pub const DEFAULT_KEY_RATE_LIMIT: u32 = 100;

/// An API key as it is listed: everything but the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// The identifier, 20 characters; it is part of the key's plaintext.
    pub id: String,
    /// The workspace that it opens.
    pub workspace_id: WorkspaceId,
    /// A label for people.
    pub name: String,
    /// Where it is meant to be used.
    pub environment: Environment,
    /// How much it may do.
    pub scope: Scope,
    /// Requests per minute.
    pub rate_limit: u32,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used; may lag by a minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// What creates an API key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewApiKey {
    /// The workspace that it opens.
    pub workspace_id: WorkspaceId,
    /// A label for people, 1–100 characters.
    pub name: String,
    /// Where it is meant to be used.
    pub environment: Environment,
    /// How much it may do.
    pub scope: Scope,
    /// When it ends by itself; in the future.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Requests per minute, 1–1000000; 100 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<u32>,
}

/// A new API key with its plaintext, which is shown this once and stored nowhere.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedApiKey {
    /// The record.
    #[serde(flatten)]
    pub record: ApiKey,
    /// The plaintext to use as `Authorization: Bearer <key>`.
    pub key: String,
}

impl fmt::Debug for CreatedApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedApiKey")
            .field("record", &self.record)
            .field("key", &"[redacted]")
            .finish()
    }
}
