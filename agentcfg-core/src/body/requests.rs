//! The body of each request.

use super::Fields;
use crate::model::{
    AgentPatch, AgentType, Environment, LiveStatus, NewAgent, NewApiKey, NewWorkspace, Plan, Role, RoleChange, Scope,
    StatusReport, Timestamp, WorkspaceId, WorkspacePatch,
};
use crate::secret::ProviderCredential;
use crate::validate::{self, Faults, Invalid};

const AGENT_READ_ONLY: &[&str] = &["id", "is_active", "created_at", "updated_at"];

fn any<T>(_: &T, _: &mut Faults) {}

impl NewAgent {
    /// Reads the body that creates an agent.
    ///
    /// # Errors
    ///
    /// Every fault of the body, in the order of the fields.
    ///
    /// ```
    /// use agentcfg_core::model::NewAgent;
    /// let fault = NewAgent::from_json(br##"{"agent_id":"A","color":"red"}"##).unwrap_err();
    /// assert_eq!(
    ///     fault.to_string(),
    ///     "workspace_id is required; agent_id must be 1 to 50 of a-z, 0-9, - and _; \
    ///      display_name is required; color must be # and 3, 4, 6 or 8 hexadecimal digits"
    /// );
    /// ```
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(bytes)?;
        let workspace_id = fields.required::<WorkspaceId>("workspace_id", any);
        let agent_id = fields.required::<String>("agent_id", |v, f| validate::agent_id(v, f));
        let display_name = fields.required::<String>("display_name", |v, f| validate::display_name(v, f));
        let role = fields.nullable::<String>("role", |v, f| validate::role(v, f));
        let description = fields.nullable::<String>("description", |v, f| validate::description(v, f));
        let agent_type = fields.optional::<AgentType>("agent_type", any);
        let model = fields.nullable::<String>("model", |v, f| validate::model(v, f));
        let color = fields.nullable::<String>("color", |v, f| validate::color(v, f));
        let persona_prompt = fields.nullable::<String>("persona_prompt", |v, f| validate::persona_prompt(v, f));
        let capabilities = fields.optional("capabilities", |v: &Vec<String>, f| validate::capabilities(v, f));
        let parameters = fields.optional("parameters", validate::parameters);
        let agent = workspace_id
            .zip(agent_id)
            .zip(display_name)
            .map(|((workspace_id, agent_id), display_name)| Self {
                workspace_id,
                agent_id,
                display_name,
                role,
                description,
                agent_type: agent_type.unwrap_or(AgentType::Ai),
                model,
                color,
                persona_prompt,
                capabilities: capabilities.unwrap_or_default(),
                parameters: parameters.unwrap_or_default(),
            });
        fields.finish(AGENT_READ_ONLY, agent)
    }
}

impl AgentPatch {
    /// Reads the body that changes an agent.
    ///
    /// # Errors
    ///
    /// Every fault of the body, in the order of the fields.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(bytes)?;
        let patch = Self {
            workspace_id: fields.optional("workspace_id", any),
            // Whether it is the agent's own is for the service to say, once it has found the agent.
            agent_id: fields.optional("agent_id", |v: &String, f| f.without_nul("agent_id", v)),
            display_name: fields.optional("display_name", |v: &String, f| validate::display_name(v, f)),
            role: fields.patch("role", |v: &String, f| validate::role(v, f)),
            description: fields.patch("description", |v: &String, f| validate::description(v, f)),
            agent_type: fields.optional("agent_type", any),
            model: fields.patch("model", |v: &String, f| validate::model(v, f)),
            color: fields.patch("color", |v: &String, f| validate::color(v, f)),
            persona_prompt: fields.patch("persona_prompt", |v: &String, f| validate::persona_prompt(v, f)),
            capabilities: fields.optional("capabilities", |v: &Vec<String>, f| validate::capabilities(v, f)),
            parameters: fields.optional("parameters", validate::parameters),
        };
        fields.finish(AGENT_READ_ONLY, Some(patch))
    }
}

impl StatusReport {
    /// Reads the body that reports what an agent is doing.
    ///
    /// # Errors
    ///
    /// Every fault of the body, in the order of the fields.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(bytes)?;
        let status = fields.required::<LiveStatus>("status", any);
        let current_task_id = fields.task(status, "current_task_id", |v, f| validate::current_task_id(v, f));
        let current_task_title = fields.task(status, "current_task_title", |v, f| validate::current_task_title(v, f));
        let report = status.map(|status| Self {
            status,
            current_task_id,
            current_task_title,
        });
        fields.finish(&["agent_id", "display_name"], report)
    }
}

impl Fields<'_> {
    /// A field of a status report that must be there with some statuses and must not with others.
    fn task(&mut self, status: Option<LiveStatus>, name: &str, rule: impl Fn(&String, &mut Faults)) -> Option<String> {
        if let Some(status) = status {
            validate::task_fits(status, name, self.is_given(name), &mut self.faults);
        }
        self.nullable(name, rule)
    }
}

impl NewWorkspace {
    /// Reads the body that creates a workspace.
    ///
    /// # Errors
    ///
    /// Every fault of the body, in the order of the fields.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(bytes)?;
        let name = fields.required("name", |v: &String, f| validate::workspace_name(v, f));
        fields.finish(WORKSPACE_READ_ONLY, name.map(|name| Self { name }))
    }
}

const WORKSPACE_READ_ONLY: &[&str] = &["id", "created_at", "updated_at"];

impl WorkspacePatch {
    /// Reads the body that changes a workspace.
    ///
    /// # Errors
    ///
    /// Every fault of the body, in the order of the fields.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(bytes)?;
        let patch = Self {
            name: fields.optional("name", |v: &String, f| validate::workspace_name(v, f)),
            plan: fields.optional::<Plan>("plan", any),
        };
        fields.finish(WORKSPACE_READ_ONLY, Some(patch))
    }
}

impl RoleChange {
    /// Reads the body that gives a member a role.
    ///
    /// # Errors
    ///
    /// Every fault of the body, in the order of the fields.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(bytes)?;
        let role = fields.required::<Role>("role", any);
        fields.finish(&["user_id", "created_at"], role.map(|role| Self { role }))
    }
}

impl NewApiKey {
    /// Reads the body that creates an API key. That `expires_at` is in the future is for the
    /// service to say, which has the clock.
    ///
    /// # Errors
    ///
    /// Every fault of the body, in the order of the fields.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(bytes)?;
        let workspace_id = fields.required::<WorkspaceId>("workspace_id", any);
        let name = fields.required("name", |v: &String, f| validate::api_key_name(v, f));
        let environment = fields.required::<Environment>("environment", any);
        let scope = fields.required::<Scope>("scope", any);
        let expires_at = fields.nullable::<Timestamp>("expires_at", any);
        let rate_limit = fields.nullable::<u32>("rate_limit", |v, f| validate::rate_limit(*v, f));
        let key =
            workspace_id
                .zip(name)
                .zip(environment.zip(scope))
                .map(|((workspace_id, name), (environment, scope))| Self {
                    workspace_id,
                    name,
                    environment,
                    scope,
                    expires_at,
                    rate_limit,
                });
        fields.finish(&["id", "key", "created_at", "last_used_at", "revoked_at"], key)
    }
}

impl ProviderCredential {
    /// Reads the body that saves a provider key: `{"api_key": "…"}`.
    ///
    /// # Errors
    ///
    /// Every fault of the body, in the order of the fields. None of them shows the key.
    ///
    /// ```
    /// use agentcfg_core::secret::ProviderCredential;
    /// let key = ProviderCredential::from_json(br#"{"api_key":"sk-canary"}"#)?;
    /// assert_eq!(key.expose(), "sk-canary");
    /// let fault = ProviderCredential::from_json(br#"{"api_key":"sk canary"}"#).unwrap_err();
    /// assert_eq!(fault.to_string(), "api_key must have visible ASCII characters only");
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(bytes)?;
        let key = fields.required("api_key", |v: &String, f| validate::provider_key(v, f));
        let key = key.map(zeroize::Zeroizing::new);
        let key = fields.finish(&["provider", "created_at", "updated_at"], key)?;
        Self::new(key.as_str())
    }
}
