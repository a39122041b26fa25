//! The records of users, and the list of all workspaces, which operators read.

use serde::{Deserialize, Serialize};

use super::entity::{Entity, EntityKey};
use super::read::Entries;
use crate::error::Error;
use crate::model::{Timestamp, WorkspaceId};
use crate::store::{Kind, Partition};

/// A workspace in the list of all of them.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct WorkspacePlace {}

impl Entity for WorkspacePlace {
    const KIND: Kind = Kind::WorkspacePlace;
}

pub(in crate::service) fn workspace_place(workspace: WorkspaceId) -> EntityKey<WorkspacePlace> {
    EntityKey::global("workspaces", workspace.to_string())
}

/// The places of all workspaces.
pub(in crate::service) fn workspace_places() -> Entries<WorkspacePlace> {
    Entries::of(Partition::Global("workspaces".into()))
}

impl EntityKey<WorkspacePlace> {
    /// The workspace, from the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when it names none.
    pub(in crate::service) fn workspace(&self) -> Result<WorkspaceId, Error> {
        self.item().parse().map_err(|error| self.unreadable(error))
    }
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
