//! Permissions: one table for the scopes of API keys and the roles of members.

use super::word_enum::word_enum;
use crate::body::{from_text, list_from_json};

word_enum! {
    /// What a caller may do.
    Permission {
        /// Create tasks.
        TasksCreate = "tasks:create",
        /// Read tasks.
        TasksRead = "tasks:read",
        /// Change tasks, and report what an agent is doing.
        TasksUpdate = "tasks:update",
        /// Delete tasks.
        TasksDelete = "tasks:delete",
        /// Create projects.
        ProjectsCreate = "projects:create",
        /// Read projects.
        ProjectsRead = "projects:read",
        /// Change projects.
        ProjectsUpdate = "projects:update",
        /// Delete projects.
        ProjectsDelete = "projects:delete",
        /// Create, change, delete and restore agents.
        AgentsConfigure = "agents:configure",
        /// Read agents and their status.
        AgentsRead = "agents:read",
        /// Read who the members are.
        UsersRead = "users:read",
        /// Read settings.
        SettingsRead = "settings:read",
        /// Read analytics.
        AnalyticsRead = "analytics:read",
        /// Manage webhooks.
        WebhooksManage = "webhooks:manage",
        /// Read webhooks.
        WebhooksRead = "webhooks:read",
        /// See API keys, never their secrets.
        ApiKeysRead = "api_keys:read",
        /// Read the audit log.
        AuditLogRead = "audit_log:read",
        /// Call models through an agent.
        ModelsInvoke = "models:invoke",
        /// Move labels, and so decide which version of an agent is released.
        AgentsRelease = "agents:release",
        /// Set and remove budgets.
        BudgetsManage = "budgets:manage",
        /// Create and revoke API keys. Sessions only.
        ApiKeysManage = "api_keys:manage",
        /// Add, change and remove members. Sessions only.
        MembersManage = "members:manage",
        /// Save and delete provider keys. Sessions only.
        ProviderKeysManage = "provider_keys:manage",
        /// Rename the workspace. Sessions only.
        WorkspaceManage = "workspace:manage",
    }, non_exhaustive
}

word_enum! {
    /// How much an API key may do.
    Scope {
        /// Read-only.
        Read = "read",
        /// Read, and work with tasks, projects and agents.
        Write = "write",
        /// Everything but what needs a session.
        Admin = "admin",
    } or Unknown
}

word_enum! {
    /// What a member may do in a workspace, from the least to the most.
    Role {
        /// Sees what a `read` key sees.
        Viewer = "viewer",
        /// Works like a `write` key and sees members and settings.
        Member = "member",
        /// Manages everything but the workspace itself and its owners.
        Admin = "admin",
        /// Manages everything.
        Owner = "owner",
    } or Unknown
}

from_text!(Permission);
list_from_json!(Permission);

impl Permission {
    /// What a change needs: a dry run, which changes nothing, needs [`Permission::AgentsRead`] alone.
    ///
    /// ```
    /// use agentcfg_core::model::Permission;
    /// let release = Permission::AgentsRelease;
    /// assert_eq!(release.unless_dry_run(true), Permission::AgentsRead);
    /// assert_eq!(release.unless_dry_run(false), release);
    /// ```
    pub const fn unless_dry_run(self, dry_run: bool) -> Self {
        match dry_run {
            true => Self::AgentsRead,
            false => self,
        }
    }
}

/// A set of [`Permission`]s.
///
/// ```
/// use agentcfg_core::model::{Permission, Role, Scope};
/// assert!(Scope::Write.permissions().contains(Permission::AgentsConfigure));
/// assert!(!Scope::Admin.permissions().contains(Permission::ApiKeysManage));
/// assert!(Role::Owner.permissions().contains(Permission::WorkspaceManage));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermissionSet(u32);

impl PermissionSet {
    const fn of(permissions: &[Permission]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < permissions.len() {
            bits |= 1 << permissions[i] as u32;
            i += 1;
        }
        Self(bits)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without one permission.
    ///
    /// ```
    /// use agentcfg_core::model::{Permission, Scope};
    /// let set = Scope::Write.permissions().without(Permission::AgentsConfigure);
    /// assert!(!set.contains(Permission::AgentsConfigure));
    /// ```
    #[must_use]
    pub const fn without(self, permission: Permission) -> Self {
        Self(self.0 & !(1 << permission as u32))
    }

    /// Whether the set has this permission.
    ///
    /// ```
    /// use agentcfg_core::model::{Permission, Scope};
    /// assert!(Scope::Read.permissions().contains(Permission::AgentsRead));
    /// ```
    pub const fn contains(self, permission: Permission) -> bool {
        self.0 & (1 << permission as u32) != 0
    }

    /// The permissions that are in both sets.
    ///
    /// ```
    /// use agentcfg_core::model::{Permission, PermissionSet, Scope};
    /// let named: PermissionSet = [Permission::AgentsRead, Permission::AgentsRelease].into_iter().collect();
    /// assert_eq!(named.intersection(Scope::Read.permissions()).iter().collect::<Vec<_>>(), [Permission::AgentsRead]);
    /// ```
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The permissions in the order of their definition.
    ///
    /// ```
    /// use agentcfg_core::model::Scope;
    /// let words: Vec<&str> = Scope::Read.permissions().iter().map(|permission| permission.as_str()).collect();
    /// assert_eq!(words, ["tasks:read", "projects:read", "agents:read", "analytics:read"]);
    /// ```
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL
            .iter()
            .copied()
            .filter(move |permission| self.contains(*permission))
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        permissions
            .into_iter()
            .fold(Self::default(), |set, permission| set.and(Self::of(&[permission])))
    }
}

use Permission as P;

const READ: PermissionSet = PermissionSet::of(&[P::TasksRead, P::ProjectsRead, P::AgentsRead, P::AnalyticsRead]);
const WRITE: PermissionSet = READ.and(PermissionSet::of(&[
    P::TasksCreate,
    P::TasksUpdate,
    P::ProjectsCreate,
    P::ProjectsUpdate,
    P::AgentsConfigure,
    P::ModelsInvoke,
]));
const ADMIN_KEY: PermissionSet = WRITE.and(PermissionSet::of(&[
    P::TasksDelete,
    P::ProjectsDelete,
    P::UsersRead,
    P::SettingsRead,
    P::WebhooksManage,
    P::WebhooksRead,
    P::ApiKeysRead,
    P::AuditLogRead,
    P::AgentsRelease,
    P::BudgetsManage,
]));
const MEMBER: PermissionSet = WRITE.and(PermissionSet::of(&[P::UsersRead, P::SettingsRead]));
const ADMIN: PermissionSet = ADMIN_KEY.and(PermissionSet::of(&[
    P::ApiKeysManage,
    P::MembersManage,
    P::ProviderKeysManage,
]));
const OWNER: PermissionSet = ADMIN.and(PermissionSet::of(&[P::WorkspaceManage]));

impl Scope {
    /// What an API key of this scope may do.
    ///
    /// ```
    /// use agentcfg_core::model::{Permission, Scope};
    /// assert!(!Scope::Read.permissions().contains(Permission::AgentsConfigure));
    /// ```
    pub const fn permissions(self) -> PermissionSet {
        match self {
            Self::Read => READ,
            Self::Write => WRITE,
            Self::Admin => ADMIN_KEY,
            Self::Unknown => PermissionSet::of(&[]),
        }
    }
}

impl Role {
    /// What a member with this role may do.
    ///
    /// ```
    /// use agentcfg_core::model::{Permission, Role};
    /// assert!(Role::Admin.permissions().contains(Permission::MembersManage));
    /// ```
    pub const fn permissions(self) -> PermissionSet {
        match self {
            Self::Viewer => READ,
            Self::Member => MEMBER,
            Self::Admin => ADMIN,
            Self::Owner => OWNER,
            Self::Unknown => PermissionSet::of(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(set: PermissionSet) -> String {
        set.iter().map(Permission::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_admin_key_has_the_seventeen_model_calls_releases_and_budgets() {
        assert_eq!(
            words(Scope::Admin.permissions()),
            "tasks:create tasks:read tasks:update tasks:delete projects:create projects:read projects:update \
             projects:delete agents:configure agents:read users:read settings:read analytics:read webhooks:manage \
             webhooks:read api_keys:read audit_log:read models:invoke agents:release budgets:manage"
        );
    }

    #[test]
    fn a_write_key_works_and_a_read_key_reads() {
        assert_eq!(
            words(Scope::Read.permissions()),
            "tasks:read projects:read agents:read analytics:read"
        );
        assert_eq!(
            words(Scope::Write.permissions()),
            "tasks:create tasks:read tasks:update projects:create projects:read projects:update agents:configure \
             agents:read analytics:read models:invoke"
        );
        assert!(
            !Scope::Write
                .permissions()
                .without(P::AgentsConfigure)
                .contains(P::AgentsConfigure)
        );
    }

    #[test]
    fn roles_grow_from_viewer_to_owner() {
        assert_eq!(Role::Viewer.permissions(), Scope::Read.permissions());
        assert_eq!(
            words(Role::Member.permissions()),
            "tasks:create tasks:read tasks:update projects:create projects:read projects:update agents:configure \
             agents:read users:read settings:read analytics:read models:invoke"
        );
        assert_eq!(Role::Admin.permissions().iter().count(), 23);
        assert_eq!(Role::Owner.permissions().iter().count(), Permission::ALL.len());
    }
}
