//! Who the caller is and what it may do.

use std::fmt;

use super::word_enum::word_enum;
use super::{Permission, Plan, Role, Scope, Timestamp, WorkspaceId};
use crate::body::{body, record};
use crate::rules;
use crate::validate::{DEFAULT_PERSONA_PROMPT, MAX_LOGIN_CODE, MAX_NAME};

word_enum! {
    /// What kind of credential a request has.
    CallerType {
        /// An API key.
        ApiKey = "api_key",
        /// A user, with a session token or a browser session.
        User = "user",
    } or Unknown
}

record! {
    /// Who the caller is, and what it may do where.
    ///
    /// ```
    /// use agentcfg_core::model::{Permission, WhoAmI};
    /// fn may_configure(me: &WhoAmI) -> bool {
    ///     me.workspaces.iter().any(|workspace| workspace.permissions.contains(&Permission::AgentsConfigure))
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    WhoAmI {
        /// What kind of credential the request has.
        kind "type": required CallerType,
        /// The id of the API key or of the user.
        id: required String,
        /// When the credential ends; null for never.
        expires_at: nullable Timestamp,
        /// The workspaces that the credential opens, oldest first.
        workspaces: required Vec<CallerWorkspace>,
    }
    examples: [{
        "type": "user",
        "id": "user_71",
        "expires_at": "2026-11-21T09:30:00.123Z",
        "workspaces": [{
            "id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "name": "Studio North",
            "plan": "team",
            "role": "viewer",
            "scope": null,
            "permissions": ["tasks:read", "projects:read", "agents:read", "analytics:read"],
            "active_agents": 12,
            "agent_limit": 100,
            "limits": { "persona_prompt": 5000 },
        }],
    }],
}

record! {
    /// The limits of the deployment that bodies are checked by.
    ///
    /// ```
    /// use agentcfg_core::model::Limits;
    /// assert_eq!(Limits::default().persona_prompt, 5000);
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    Limits {
        /// The greatest length of a `persona_prompt`, in Unicode scalar values.
        persona_prompt: required u32,
    }
    examples: [{ "persona_prompt": 5000 }],
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            persona_prompt: DEFAULT_PERSONA_PROMPT,
        }
    }
}

record! {
    /// A workspace as its caller sees it.
    ///
    /// ```
    /// use agentcfg_core::model::CallerWorkspace;
    /// fn is_full(workspace: &CallerWorkspace) -> bool {
    ///     workspace.agent_limit.is_some_and(|limit| workspace.active_agents >= limit.into())
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    CallerWorkspace {
        /// The id of the workspace.
        id: required WorkspaceId,
        /// Name for people.
        name: required String as rules::NotBlank<MAX_NAME>,
        /// The plan.
        plan: required Plan,
        /// The user's role; null for an API key.
        role: nullable Role,
        /// The key's scope; null for a user.
        scope: nullable Scope,
        /// What the caller may do.
        permissions: required Vec<Permission>,
        /// How many agents are active.
        active_agents: required u64,
        /// How many agents may be active; null for any number.
        agent_limit: nullable u32,
        /// The limits of the deployment. A server that does not say has the default ones.
        limits: defaulted Limits,
    }
    examples: [{
        "id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
        "name": "Studio North",
        "plan": "team",
        "role": null,
        "scope": "read",
        "permissions": ["tasks:read", "projects:read", "agents:read", "analytics:read"],
        "active_agents": 12,
        "agent_limit": 100,
        "limits": { "persona_prompt": 5000 },
    }],
}

body! {
    /// A login code that a browser redeems for a session.
    ///
    /// ```
    /// use agentcfg_core::model::SignIn;
    /// let sign_in = SignIn::new("4fQ8mZr2LkV7xN0bTy6W1234-YWRh");
    /// assert!(sign_in.validate().is_ok());
    /// ```
    #[derive(Clone, PartialEq, Eq)]
    create SignIn {
        /// The code of a login link, the part behind `#login=`.
        code: required String as rules::TextFromOne<MAX_LOGIN_CODE>,
    }
    read_only: &[],
    examples: [{ "code": "not-a-code-but-an-example" }],
}

impl SignIn {
    /// Redeems this code.
    ///
    /// ```
    /// use agentcfg_core::model::SignIn;
    /// assert!(SignIn::new("").validate().is_err());
    /// ```
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into() }
    }
}

/// The code is a secret until it is used.
impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn").field("code", &"[redacted]").finish()
    }
}
