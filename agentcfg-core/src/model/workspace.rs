//! Workspaces, their plans and their members.

use serde::{Deserialize, Serialize};

use super::word_enum::word_enum;
use super::{Role, Timestamp, UserId, WorkspaceId};
use crate::body::{body, record};
use crate::model::into_field::settable;
use crate::rules;
use crate::validate::MAX_NAME;

word_enum! {
    /// What a workspace subscribes to. The plan limits how many agents may be active.
    Plan {
        /// The free tier.
        Free = "free",
        /// For one person.
        Pro = "pro",
        /// For a team.
        Team = "team",
        /// For an organisation.
        Enterprise = "enterprise",
    } or Unknown
}

word_enum! {
    /// Who may create workspaces in a deployment.
    WorkspaceCreation {
        /// Each user.
        Anyone = "anyone",
        /// Operators alone.
        Operators = "operators",
    }, non_exhaustive
}

impl Plan {
    /// Whether workspaces on this plan may bring their own provider keys.
    ///
    /// ```
    /// use agentcfg_core::model::Plan;
    /// assert!(Plan::Pro.allows_provider_keys() && !Plan::Free.allows_provider_keys());
    /// ```
    pub const fn allows_provider_keys(self) -> bool {
        !matches!(self, Self::Free | Self::Unknown)
    }
}

settable! {
    /// How many active agents each plan allows; `None` is no limit.
    ///
    /// ```
    /// use agentcfg_core::model::{Plan, PlanLimits};
    /// let limits = PlanLimits::default().free(5);
    /// assert_eq!(limits.of(Plan::Free), Some(5));
    /// assert_eq!(limits.of(Plan::Enterprise), None);
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    PlanLimits {
        /// On [`Plan::Free`].
        free: Option<u32>,
        /// On [`Plan::Pro`].
        pro: Option<u32>,
        /// On [`Plan::Team`].
        team: Option<u32>,
        /// On [`Plan::Enterprise`].
        enterprise: Option<u32>,
    }
}

impl PlanLimits {
    /// The limit of one plan. Under a plan that this release does not know, no agent can be added.
    ///
    /// ```
    /// use agentcfg_core::model::{Plan, PlanLimits};
    /// assert_eq!(PlanLimits::default().of(Plan::Team), Some(100));
    /// ```
    pub fn of(&self, plan: Plan) -> Option<u32> {
        match plan {
            Plan::Free => self.free,
            Plan::Pro => self.pro,
            Plan::Team => self.team,
            Plan::Enterprise => self.enterprise,
            Plan::Unknown => Some(0),
        }
    }
}

impl Default for PlanLimits {
    /// Free 3, pro 25, team 100, enterprise without a limit.
    fn default() -> Self {
        Self {
            free: Some(3),
            pro: Some(25),
            team: Some(100),
            enterprise: None,
        }
    }
}

record! {
    /// What all other records belong to.
    ///
    /// ```
    /// use agentcfg_core::model::Workspace;
    /// fn title(workspace: &Workspace) -> String {
    ///     format!("{} (plan {})", workspace.name, workspace.plan)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    Workspace {
        /// Workspace identifier.
        id: required WorkspaceId,
        /// Name for people.
        name: required String as rules::NotBlank<MAX_NAME>,
        /// What the workspace subscribes to.
        plan: required Plan,
        /// Creation time.
        created_at: required Timestamp,
        /// Time of the latest change of name or plan.
        updated_at: required Timestamp,
    }
    examples: [{
        "id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
        "name": "Studio North",
        "plan": "team",
        "created_at": "2026-11-20T09:30:00.123Z",
        "updated_at": "2026-11-20T09:30:00.123Z",
    }],
}

/// A workspace as the caller sees it.
///
/// ```
/// use agentcfg_core::model::{Role, WorkspaceView};
/// fn is_owned(view: &WorkspaceView) -> bool {
///     view.role == Some(Role::Owner)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkspaceView {
    /// The workspace.
    #[serde(flatten)]
    pub workspace: Workspace,
    /// The calling user's role. Absent when an API key calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

body! {
    /// What a new workspace starts with.
    ///
    /// ```
    /// use agentcfg_core::model::NewWorkspace;
    /// let new = NewWorkspace::new("Studio North");
    /// assert!(new.validate().is_ok());
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    create NewWorkspace {
        /// Name for people.
        name: required String as rules::NotBlank<MAX_NAME>,
    }
    read_only: &["id", "created_at", "updated_at"],
    examples: [{ "name": "Studio North" }],
}

impl NewWorkspace {
    /// A workspace with this name.
    ///
    /// ```
    /// use agentcfg_core::model::NewWorkspace;
    /// assert!(NewWorkspace::new("Studio North").validate().is_ok());
    /// ```
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

body! {
    /// The fields to change; what is left out stays.
    ///
    /// ```
    /// use agentcfg_core::model::{Plan, WorkspacePatch};
    /// let rename = WorkspacePatch::default().name("Studio South");
    /// let upgrade = WorkspacePatch::default().plan(Plan::Team);
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    change WorkspacePatch {
        /// New name.
        name: required String as rules::NotBlank<MAX_NAME>,
        /// New plan. Operators of the deployment alone may set it.
        plan: required Plan,
    }
    read_only: &["id", "created_at", "updated_at"],
    examples: [{ "name": "Studio South" }, { "plan": "team" }],
}

record! {
    /// A user's membership in a workspace.
    ///
    /// ```
    /// use agentcfg_core::model::{Member, Role};
    /// fn owners(members: &[Member]) -> usize {
    ///     members.iter().filter(|member| member.role == Role::Owner).count()
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    Member {
        /// The user: the `sub` of the user's session tokens.
        user_id: required UserId,
        /// What the member may do.
        role: required Role,
        /// When the user became a member.
        created_at: required Timestamp,
        /// The claim `name` of the user's token at the last sign-in, if it had one.
        name: sparse String,
        /// The claim `email` of the user's token at the last sign-in, if it had one.
        email: sparse String,
    }
    examples: [{
        "user_id": "user_71",
        "role": "member",
        "created_at": "2026-11-20T09:30:00.123Z",
        "name": "Ada Lovelace",
        "email": "ada@example.com",
    }],
}

body! {
    /// The role to give.
    ///
    /// ```
    /// use agentcfg_core::model::{Role, RoleChange};
    /// let body = serde_json::to_string(&RoleChange::new(Role::Member))?;
    /// assert_eq!(body, r#"{"role":"member"}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    create RoleChange {
        /// The new role.
        role: required Role,
    }
    read_only: &["user_id", "created_at", "name", "email"],
    examples: [{ "role": "member" }],
}

impl RoleChange {
    /// Gives this role.
    ///
    /// ```
    /// use agentcfg_core::model::{Role, RoleChange};
    /// assert!(RoleChange::new(Role::Admin).validate().is_ok());
    /// ```
    pub fn new(role: Role) -> Self {
        Self { role }
    }
}
