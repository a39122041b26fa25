//! The records of users and of their browser sessions, and the list of all workspaces, which operators read.

use serde::{Deserialize, Serialize};

use super::entity::{Entity, EntityKey, NamedByWorkspace};
use super::read::Entries;
use crate::model::{Epoch, Timestamp, UserId, WorkspaceId};
use crate::store::{Kind, Partition};
use crate::vault::Sealed;

/// A workspace in the list of all of them.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct WorkspacePlace {}

impl Entity for WorkspacePlace {
    const KIND: Kind = Kind::WorkspacePlace;
}

impl NamedByWorkspace for WorkspacePlace {}

pub(in crate::service) fn workspace_place(workspace: WorkspaceId) -> EntityKey<WorkspacePlace> {
    EntityKey::global("workspaces", workspace.to_string())
}

/// The places of all workspaces.
pub(in crate::service) fn workspace_places() -> Entries<WorkspacePlace> {
    Entries::of(Partition::Global("workspaces".into()))
}

/// What is known of a user who has signed in, or whom an operator has removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct StoredUser {
    /// What the claims of the last sign-in say.
    #[serde(flatten)]
    pub(in crate::service) profile: Profile,
    /// When an operator removed the user, if one did. Memberships of the user's own that owners give later count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) removed_at: Option<Timestamp>,
}

/// How a user is shown to people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct Profile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) email: Option<String>,
}

impl Entity for StoredUser {
    const KIND: Kind = Kind::User;
}

pub(in crate::service) fn user(user_id: &str) -> EntityKey<StoredUser> {
    EntityKey::global("users", user_id)
}

/// A browser session, by the hash of its cookie.
#[derive(Clone, Serialize, Deserialize)]
pub(in crate::service) struct StoredBrowserSession {
    pub(in crate::service) user_id: UserId,
    /// A session does not outlive its store: one in a backup is not valid after a restore.
    pub(in crate::service) epoch: Epoch,
    /// Which tokens were accepted when it was opened, as a digest.
    #[serde(default)]
    pub(in crate::service) admission: String,
    pub(in crate::service) created_at: Timestamp,
    pub(in crate::service) expires_at: Timestamp,
    /// The latest use, a minute behind at most. Absent where only `expires_at` ends the session.
    pub(in crate::service) last_used_at: Option<Timestamp>,
    /// The session token, where it is verified on each request.
    pub(in crate::service) token: Option<Sealed>,
    /// The groups that the token named, where it is verified once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::service) groups: Vec<UserId>,
    /// What renews the session when its token ends, if something does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) renewal: Option<StoredRenewal>,
}

/// What renews a browser session.
#[derive(Clone, Serialize, Deserialize)]
pub(in crate::service) struct StoredRenewal {
    pub(in crate::service) refresh_token: Sealed,
    /// When the token of the session ends, which was verified once.
    pub(in crate::service) token_ends_at: Timestamp,
    /// Until when the request that renews the session has time for it, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) renewing_until: Option<Timestamp>,
}

impl Entity for StoredBrowserSession {
    const KIND: Kind = Kind::BrowserSession;
}

pub(in crate::service) fn browser_session(hash: &str) -> EntityKey<StoredBrowserSession> {
    EntityKey::new(browser_sessions(), hash)
}

/// The partition of all browser sessions.
pub(in crate::service) fn browser_sessions() -> Partition {
    Partition::Global("browser-sessions".into())
}

/// A login code, by its hash: the user whom it signs in.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct StoredLoginCode {
    pub(in crate::service) user_id: UserId,
    pub(in crate::service) epoch: Epoch,
    pub(in crate::service) expires_at: Timestamp,
}

impl Entity for StoredLoginCode {
    const KIND: Kind = Kind::LoginCode;
}

pub(in crate::service) fn login_code(hash: &str) -> EntityKey<StoredLoginCode> {
    EntityKey::new(login_codes(), hash)
}

/// The partition of all login codes.
pub(in crate::service) fn login_codes() -> Partition {
    Partition::Global("login-codes".into())
}
