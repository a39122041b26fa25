//! The settings of a deployment.

use std::collections::BTreeSet;

use crate::model::into_field::settable;
use crate::model::{AllowedHost, Permission, PermissionSet, Plan, PlanLimits, Scope, WorkspaceCreation};
use crate::session::RequiredClaim;
use crate::validate::DEFAULT_PERSONA_PROMPT;

settable! {
    /// The settings of a deployment.
    ///
    /// ```
    /// use agentcfg_core::Settings;
    /// use agentcfg_core::model::{Plan, PlanLimits};
    /// let mut settings = Settings::default()
    ///     .default_plan(Plan::Free)
    ///     .plan_limits(PlanLimits::default().free(5));
    /// settings.operators.insert("root".to_owned());
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    Settings {
        /// How many active agents each plan allows.
        plan_limits: PlanLimits,
        /// The plan of a new workspace.
        default_plan: Plan,
        /// Requests per minute of each user, at least 1: 0 counts as 1.
        session_rate_limit: u32,
        /// The greatest length of a `persona_prompt` in Unicode scalar values, 1–200,000. A longer one that is stored already stays,
        /// and can be rolled back to.
        max_persona_prompt: u32,
        /// How long a status report is live, in seconds.
        status_ttl_seconds: u32,
        /// Whether keys of scope `write` may configure agents.
        write_scope_configures_agents: bool,
        /// Users who may change the plan of any workspace, list all workspaces, revoke any API key and remove users.
        operators: BTreeSet<String>,
        /// Who may create workspaces.
        workspace_creation: WorkspaceCreation,
        /// How many workspaces a user may own before the user can create no more; `None` for any number. Operators have no limit.
        max_workspaces_per_user: Option<u32>,
        /// The claims that every session token must have.
        required_claims: Vec<RequiredClaim>,
        /// The claim of session tokens that names the groups of a user: a member `group:<name>` stands for
        /// each user whose token names that group.
        groups_claim: Option<String>,
        /// How many days single model calls are kept; their sums are kept for good.
        usage_retention_days: u32,
        /// Hosts that webhooks may be sent to although they are not public, by `http` or on another port than 443.
        webhook_allowed_hosts: Vec<AllowedHost>,
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            plan_limits: PlanLimits::default(),
            default_plan: Plan::Enterprise,
            session_rate_limit: 600,
            max_persona_prompt: DEFAULT_PERSONA_PROMPT,
            status_ttl_seconds: 120,
            write_scope_configures_agents: true,
            operators: BTreeSet::new(),
            workspace_creation: WorkspaceCreation::Anyone,
            max_workspaces_per_user: Some(100),
            required_claims: Vec::new(),
            groups_claim: None,
            usage_retention_days: 30,
            webhook_allowed_hosts: Vec::new(),
        }
    }
}

impl Settings {
    /// What an API key of this scope may do in this deployment.
    pub(super) fn permissions_of(&self, scope: Scope) -> PermissionSet {
        match (scope, self.write_scope_configures_agents) {
            (Scope::Write, false) => scope.permissions().without(Permission::AgentsConfigure),
            _ => scope.permissions(),
        }
    }
}
