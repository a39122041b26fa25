//! The settings of a deployment.

use std::collections::BTreeSet;

use crate::model::into_field::settable;
use crate::model::{AllowedHost, Permission, PermissionSet, Plan, PlanLimits, Scope, WorkspaceCreation};
use crate::session::RequiredClaim;
use crate::validate::{
    DEFAULT_PERSONA_PROMPT, Faults, Invalid, MAX_PERSONA_PROMPT, MAX_USER_ID, is_group_id, is_user_id, quoted,
};

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
        /// Requests per minute of each user, at least 1.
        session_rate_limit: u32,
        /// The greatest length of a `persona_prompt` in Unicode scalar values, 1–200,000. A longer one that is stored
        /// already stays, and can be rolled back to.
        max_persona_prompt: u32,
        /// How long a status report is live, in seconds, at least 1.
        status_ttl_seconds: u32,
        /// Whether keys of scope `write` may configure agents.
        write_scope_configures_agents: bool,
        /// Users who may change the plan of any workspace, list all workspaces, revoke any API key and remove users.
        operators: BTreeSet<String>,
        /// Who may create workspaces.
        workspace_creation: WorkspaceCreation,
        /// How many workspaces a user may own before the user can create no more; `None` for any number, at least 1.
        /// Operators have no limit.
        max_workspaces_per_user: Option<u32>,
        /// The claims that every session token must have.
        required_claims: Vec<RequiredClaim>,
        /// The claim of session tokens that names the groups of a user: a member `group:<name>` stands for
        /// each user whose token names that group.
        groups_claim: Option<String>,
        /// How many days single model calls are kept, at least 1; their sums are kept for good.
        usage_retention_days: u32,
        /// How many days entries of audit logs are kept, at least 1; `None` for good. A position in a log from before
        /// its first entry is gone, as one of another epoch is. Webhooks are not sent events whose entries are removed,
        /// so keep them for longer than the days in which an event is sent again.
        audit_retention_days: Option<u32>,
        /// How many days versions of agents are kept after another one has replaced them, at least 1; `None` for good.
        /// One that a label points at stays, and none goes before the audit entries that show it: the setting needs
        /// [`Self::audit_retention_days`].
        version_retention_days: Option<u32>,
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
            audit_retention_days: None,
            version_retention_days: None,
            webhook_allowed_hosts: Vec::new(),
        }
    }
}

impl Settings {
    /// Checks the values. [`Builder::settings`](super::Builder::settings) does it, so only an app that reports faults
    /// earlier calls it.
    ///
    /// # Errors
    ///
    /// Every fault, with the name of its field and the rule: values with which no request, report or workspace could be
    /// admitted, and names that no user and no token can have.
    ///
    /// ```
    /// use agentcfg_core::Settings;
    /// let fault = Settings::default().session_rate_limit(0_u32).validate().unwrap_err();
    /// assert_eq!(fault.to_string(), "session_rate_limit must be at least 1, got 0: every request of a user would be refused");
    /// ```
    pub fn validate(&self) -> Result<(), Invalid> {
        let mut faults = Faults::default();
        let mut at_least_1 = |field: &str, value: Option<u32>, why: &str| {
            if value == Some(0) {
                faults.push(field, format_args!("must be at least 1, got 0: {why}"));
            }
        };
        let refused = "every request of a user would be refused";
        at_least_1("session_rate_limit", Some(self.session_rate_limit), refused);
        let ended = "each report would end at once";
        at_least_1("status_ttl_seconds", Some(self.status_ttl_seconds), ended);
        let operators = "to let only operators create workspaces, set workspace_creation";
        at_least_1("max_workspaces_per_user", self.max_workspaces_per_user, operators);
        let removed = "each call would be removed at once";
        at_least_1("usage_retention_days", Some(self.usage_retention_days), removed);
        let removed = "each entry would be removed at once";
        at_least_1("audit_retention_days", self.audit_retention_days, removed);
        let removed = "each version would be removed at once";
        at_least_1("version_retention_days", self.version_retention_days, removed);
        if self.version_retention_days.is_some() && self.audit_retention_days.is_none() {
            let rule = "needs audit_retention_days: a version stays as long as the audit log has entries that show it";
            faults.push("version_retention_days", rule);
        }
        if !(1..=MAX_PERSONA_PROMPT).contains(&self.max_persona_prompt) {
            let given = self.max_persona_prompt;
            let rule = format_args!("must be 1 to {MAX_PERSONA_PROMPT}, got {given}");
            faults.push("max_persona_prompt", rule);
        }
        for operator in &self.operators {
            if !is_user_id(operator) {
                let rule = format_args!(
                    "must be user ids of 1 to {MAX_USER_ID} characters, got {}",
                    quoted(operator)
                );
                faults.push("operators", rule);
            } else if is_group_id(operator) {
                let rule = format_args!("must be user ids, and {} stands for a group", quoted(operator));
                faults.push("operators", rule);
            }
        }
        if self.groups_claim.as_deref() == Some("") {
            faults.push("groups_claim", "must not be empty: no token has a claim without a name");
        }
        faults.into_result()
    }

    /// What an API key of this scope may do in this deployment.
    pub(super) fn permissions_of(&self, scope: Scope) -> PermissionSet {
        match (scope, self.write_scope_configures_agents) {
            (Scope::Write, false) => scope.permissions().without(Permission::AgentsConfigure),
            _ => scope.permissions(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentCfg;
    use crate::store::MemoryStore;

    #[test]
    fn values_that_admit_nothing_are_refused_by_name() {
        type Change = fn(&mut Settings);
        let cases: [(Change, &str); 9] = [
            (
                |s| s.session_rate_limit = 0,
                "session_rate_limit must be at least 1, got 0",
            ),
            (
                |s| s.status_ttl_seconds = 0,
                "status_ttl_seconds must be at least 1, got 0",
            ),
            (
                |s| s.max_workspaces_per_user = Some(0),
                "max_workspaces_per_user must be at least 1, got 0",
            ),
            (
                |s| s.usage_retention_days = 0,
                "usage_retention_days must be at least 1, got 0",
            ),
            (
                |s| s.max_persona_prompt = 0,
                "max_persona_prompt must be 1 to 200000, got 0",
            ),
            (
                |s| s.max_persona_prompt = 200_001,
                "max_persona_prompt must be 1 to 200000, got 200001",
            ),
            (
                |s| s.operators = ["ad\na".to_owned()].into(),
                "operators must be user ids of 1 to 200 characters, got \"ad\\na\"",
            ),
            (
                |s| s.operators = ["group:staff".to_owned()].into(),
                "operators must be user ids, and \"group:staff\" stands for a group",
            ),
            (
                |s| s.groups_claim = Some(String::new()),
                "groups_claim must not be empty",
            ),
        ];
        for (change, fault) in cases {
            let mut settings = Settings::default();
            change(&mut settings);
            let said = AgentCfg::builder(MemoryStore::new())
                .settings(settings)
                .unwrap_err()
                .to_string();
            assert!(said.starts_with(fault), "{said}");
        }
    }

    #[test]
    fn all_faults_are_reported_at_once() {
        let settings = Settings::default().session_rate_limit(0_u32).status_ttl_seconds(0_u32);
        let invalid = settings.validate().unwrap_err();
        let fields: Vec<&str> = invalid.faults().iter().map(crate::validate::Fault::field).collect();
        assert_eq!(fields, ["session_rate_limit", "status_ttl_seconds"]);
    }

    #[test]
    fn the_smallest_values_are_taken() {
        let mut settings = Settings::default();
        (
            settings.session_rate_limit,
            settings.status_ttl_seconds,
            settings.usage_retention_days,
        ) = (1, 1, 1);
        (settings.max_workspaces_per_user, settings.max_persona_prompt) = (Some(1), 1);
        assert_eq!(settings.validate(), Ok(()));
        assert_eq!(Settings::default().validate(), Ok(()));
    }
}
