//! API keys.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::word_enum::word_enum;
use super::{AgentId, ApiKeyId, Label, Permission, PermissionSet, Scope, Timestamp, WorkspaceId};
use crate::body::{body, record};
use crate::rules;
use crate::validate::{Faults, MAX_NAME};

word_enum! {
    /// Where an API key is used. Plaintexts begin with `svc_test_` for development and with `svc_live_` for production.
    Environment {
        /// Keys start with `svc_test_`.
        Development = "development",
        /// Keys start with `svc_live_`.
        Production = "production",
    } or Unknown
}

impl Environment {
    /// The prefix of the keys of this environment.
    ///
    /// ```
    /// use agentcfg_core::model::Environment;
    /// assert_eq!(Environment::Development.prefix(), "svc_test_");
    /// ```
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Development => "svc_test_",
            Self::Production | Self::Unknown => "svc_live_",
        }
    }
}

/// Requests per minute of a key that has no limit of its own.
///
/// ```
/// assert_eq!(agentcfg_core::model::DEFAULT_KEY_RATE_LIMIT, 100);
/// ```
pub const DEFAULT_KEY_RATE_LIMIT: u32 = 100;

record! {
    /// An API key without its secret.
    ///
    /// ```
    /// use agentcfg_core::model::{ApiKey, Timestamp};
    /// fn works(key: &ApiKey, now: Timestamp) -> bool {
    ///     key.revoked_at.is_none() && key.expires_at.is_none_or(|end| now < end)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    ApiKey {
        /// Key identifier. It is also part of the plaintext, right behind the prefix.
        id: required ApiKeyId,
        /// The workspace that the key opens.
        workspace_id: required WorkspaceId,
        /// Label for people.
        name: required String as rules::TextFromOne<MAX_NAME>,
        /// Where the key is used.
        environment: required Environment,
        /// How much the key may do.
        scope: required Scope,
        /// The permissions of the scope that the key has, if it has not all of them.
        permissions: sparse Vec<Permission> as rules::KeyPermissions,
        /// The agents that the key is limited to, if it is.
        agents: sparse Vec<AgentId> as rules::KeyAgents,
        /// The label that its model calls, prompts and releases are pinned to, if they are.
        label: sparse Label,
        /// Requests that the key may make per minute.
        rate_limit: required u32 as rules::RequestsPerMinute,
        /// When the key stops working by itself; null for never.
        expires_at: nullable Timestamp,
        /// Creation time.
        created_at: required Timestamp,
        /// Latest known use, up to a minute behind; null when it was never used.
        last_used_at: nullable Timestamp,
        /// When the key was revoked; null while it was not.
        revoked_at: nullable Timestamp,
    }
    examples: [{
        "id": "4fQ8mZr2LkV7xN0bTy6W",
        "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
        "name": "Nightly build",
        "environment": "production",
        "scope": "write",
        "rate_limit": 250,
        "expires_at": null,
        "created_at": "2026-11-20T09:30:00.123Z",
        "last_used_at": "2026-11-20T10:05:41.007Z",
        "revoked_at": null,
    }],
}

body! {
    /// What a new API key is to be.
    ///
    /// ```
    /// use agentcfg_core::model::{Environment, NewApiKey, Scope};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let new = NewApiKey::new(workspace, "Nightly build", Environment::Production, Scope::Write)
    ///     .expires_at(Some("2099-01-31T18:00:00+01:00".parse()?));
    /// assert!(new.validate().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    create NewApiKey {
        /// The workspace that the key is to open.
        workspace_id: required WorkspaceId,
        /// Label for people.
        name: required String as rules::TextFromOne<MAX_NAME>,
        /// Where the key is to be used.
        environment: required Environment,
        /// How much the key may do.
        scope: required Scope,
        /// The permissions of the scope that the key has. Null or left out: all of them.
        permissions: nullable Vec<Permission> as rules::KeyPermissions,
        /// The agents that the key is limited to, which need not exist yet. Null or left out: all agents and the workspace itself.
        agents: nullable Vec<AgentId> as rules::KeyAgents,
        /// The label that its model calls, prompts and releases are pinned to. Null or left out: none.
        label: nullable Label,
        /// When the key is to stop working: a moment in the future, with any UTC offset. Null or left out: never.
        expires_at: nullable Timestamp as rules::Moment,
        /// Requests per minute. Null or left out: 100.
        rate_limit: nullable u32 as rules::RequestsPerMinute,
    }
    read_only: &["id", "key", "created_at", "last_used_at", "revoked_at"],
    examples: [
        {
            "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "name": "Nightly build",
            "environment": "production",
            "scope": "write",
            "rate_limit": 250,
        },
        {
            "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "name": "Nightly build",
            "environment": "development",
            "scope": "read",
            "rate_limit": 250,
            "expires_at": "2099-01-31T18:00:00+01:00",
        },
        {
            "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "name": "Support bot",
            "environment": "production",
            "scope": "write",
            "permissions": ["agents:read", "models:invoke"],
            "agents": ["release-writer"],
            "label": "production",
        },
    ],
    whole: NewApiKey::has_permissions_of_its_scope,
}

impl NewApiKey {
    /// A key that never expires and may make 100 requests per minute.
    ///
    /// ```
    /// use agentcfg_core::model::{Environment, NewApiKey, Scope};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let new = NewApiKey::new(workspace, "Nightly build", Environment::Production, Scope::Write).rate_limit(250);
    /// assert_eq!((new.expires_at, new.rate_limit), (None, Some(250)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(workspace_id: WorkspaceId, name: impl Into<String>, environment: Environment, scope: Scope) -> Self {
        Self {
            workspace_id,
            name: name.into(),
            environment,
            scope,
            permissions: None,
            agents: None,
            label: None,
            expires_at: None,
            rate_limit: None,
        }
    }

    fn has_permissions_of_its_scope(&self, faults: &mut Faults) {
        self.require_within(self.scope.permissions(), faults);
    }

    /// Refuses permissions that the scope does not grant.
    pub(crate) fn require_within(&self, granted: PermissionSet, faults: &mut Faults) {
        for (i, permission) in self.permissions.iter().flatten().enumerate() {
            if !granted.contains(*permission) {
                let rule = format_args!("must be a permission of the scope {}, got {permission}", self.scope);
                faults.push(format_args!("permissions[{i}]"), rule);
            }
        }
    }
}

body! {
    /// How an API key is replaced by a new one.
    ///
    /// ```
    /// use agentcfg_core::model::RotateApiKey;
    /// // Both keys work for an hour.
    /// let rotate = RotateApiKey::default().overlap_seconds(3600);
    /// assert!(rotate.validate().is_ok());
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    create RotateApiKey {
        /// How many seconds the old key still works. Left out: 0, it ends at once.
        overlap_seconds: defaulted u32 as rules::Overlap,
    }
    read_only: &[],
    examples: [{ "overlap_seconds": 3600 }, {}],
}

/// A new API key together with its plaintext, which no other answer ever shows.
///
/// ```
/// use agentcfg_core::model::CreatedApiKey;
/// fn hand_over(created: &CreatedApiKey) {
///     println!("the key of {:?}, shown only once: {}", created.record.name, created.key);
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
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
