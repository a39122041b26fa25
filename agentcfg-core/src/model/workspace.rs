//! Workspaces, their plans and their members.

use serde::{Deserialize, Serialize};

use super::named::named;
use super::{Role, Timestamp, WorkspaceId};

named! {
    /// What a workspace pays for.
    Plan {
        /// The free tier.
        Free = "free",
        /// For one person.
        Pro = "pro",
        /// For a team.
        Team = "team",
        /// For an organisation.
        Enterprise = "enterprise",
    }
}

impl Plan {
    /// Whether workspaces on this plan may bring their own provider keys. (Interface specification,
    /// *Bring-your-own-key mode*.)
    pub const fn allows_provider_keys(self) -> bool {
        !matches!(self, Self::Free)
    }
}

/// How many active agents each plan allows; `None` is no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLimits {
    /// On [`Plan::Free`].
    pub free: Option<u32>,
    /// On [`Plan::Pro`].
    pub pro: Option<u32>,
    /// On [`Plan::Team`].
    pub team: Option<u32>,
    /// On [`Plan::Enterprise`].
    pub enterprise: Option<u32>,
}

impl PlanLimits {
    /// The limit of one plan.
    pub fn of(&self, plan: Plan) -> Option<u32> {
        match plan {
            Plan::Free => self.free,
            Plan::Pro => self.pro,
            Plan::Team => self.team,
            Plan::Enterprise => self.enterprise,
        }
    }
}

impl Default for PlanLimits {
    /// 3, 25, 100 and no limit.
    fn default() -> Self {
        Self {
            free: Some(3),
            pro: Some(25),
            team: Some(100),
            enterprise: None,
        }
    }
}

/// A workspace: what every other resource belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The identifier.
    pub id: WorkspaceId,
    /// The name for people, 1–100 characters.
    pub name: String,
    /// What it pays for.
    pub plan: Plan,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its record last changed.
    pub updated_at: Timestamp,
}

/// A workspace as one caller sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceView {
    /// The workspace.
    #[serde(flatten)]
    pub workspace: Workspace,
    /// The caller's role in it; API keys have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// What creates a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewWorkspace {
    /// The name for people, 1–100 characters, not blank.
    pub name: String,
}

/// What changes a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct WorkspacePatch {
    /// A new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A new plan; only operators set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
}

/// A user's membership in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Who: the `sub` of the user's session tokens.
    pub user_id: String,
    /// As what.
    pub role: Role,
    /// Since when.
    pub created_at: Timestamp,
}

/// The role that a member is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RoleChange {
    /// The new role.
    pub role: Role,
}
