//! Agent configurations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Number;
use uuid::Uuid;

use super::named::named;
use super::{Patch, Timestamp, WorkspaceId};

named! {
    /// Whether a team member is an AI or a human. (Interface specification, *Agent config*.)
    AgentType {
        /// An AI agent.
        Ai = "ai",
        /// A human.
        Human = "human",
    }
}

/// Personality sliders: a number for each name, kept as it was written.
pub type Parameters = BTreeMap<String, Number>;

/// The configuration of one agent. (Interface specification, *Agent config*.)
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// The record's own identifier.
    pub id: Uuid,
    /// The workspace that the agent belongs to.
    pub workspace_id: WorkspaceId,
    /// The identifier within the workspace: 1–50 of `a-z`, `0-9`, `-` and `_`.
    pub agent_id: String,
    /// The name for people, up to 100 characters.
    pub display_name: String,
    /// The role's title.
    pub role: Option<String>,
    /// What the agent does.
    pub description: Option<String>,
    /// AI or human.
    pub agent_type: AgentType,
    /// The model's identifier.
    pub model: Option<String>,
    /// The avatar's colour, such as `#7c3aed`.
    pub color: Option<String>,
    /// The system prompt.
    pub persona_prompt: Option<String>,
    /// Capability tags in the order given.
    pub capabilities: Vec<String>,
    /// Personality sliders.
    pub parameters: Parameters,
    /// Whether the agent is active; a deleted agent is kept and not active.
    pub is_active: bool,
    /// When the agent was created.
    pub created_at: Timestamp,
    /// When the record last changed.
    pub updated_at: Timestamp,
}

/// What creates an agent. (Interface specification, *Create agent*.)
///
/// ```
/// use agentcfg_core::model::{NewAgent, WorkspaceId};
/// let workspace: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let agent = NewAgent { model: Some("gpt-5".into()), ..NewAgent::new(workspace, "writer", "Writer") };
/// assert!(agent.validate().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewAgent {
    /// The workspace to create the agent in.
    pub workspace_id: WorkspaceId,
    /// The identifier within the workspace.
    pub agent_id: String,
    /// The name for people.
    pub display_name: String,
    /// The role's title, up to 100 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What the agent does, up to 2000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// AI or human.
    pub agent_type: AgentType,
    /// The model's identifier, up to 100 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `#` and 3, 4, 6 or 8 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The system prompt, up to 5000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persona_prompt: Option<String>,
    /// Up to 100 tags of 1–100 characters.
    pub capabilities: Vec<String>,
    /// Up to 100 numbers with names of 1–100 characters.
    pub parameters: Parameters,
}

impl NewAgent {
    /// An AI agent with the three required fields and nothing else.
    pub fn new(workspace_id: WorkspaceId, agent_id: impl Into<String>, display_name: impl Into<String>) -> Self {
        Self {
            workspace_id,
            agent_id: agent_id.into(),
            display_name: display_name.into(),
            role: None,
            description: None,
            agent_type: AgentType::Ai,
            model: None,
            color: None,
            persona_prompt: None,
            capabilities: Vec::new(),
            parameters: Parameters::new(),
        }
    }
}

/// What changes an agent: only the fields that are named. (Interface specification, *Update agent*.)
///
/// ```
/// use agentcfg_core::model::{AgentPatch, Patch};
/// let patch = AgentPatch { role: Patch::Null, model: Patch::Set("gpt-5".into()), ..AgentPatch::default() };
/// assert_eq!(serde_json::to_string(&patch)?, r#"{"role":null,"model":"gpt-5"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AgentPatch {
    /// When given, must equal the stored value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// When given, must equal the stored value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// A new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// A new role.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub role: Patch<String>,
    /// A new description.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub description: Patch<String>,
    /// A new type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<AgentType>,
    /// A new model.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub model: Patch<String>,
    /// A new colour.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub color: Patch<String>,
    /// A new system prompt.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub persona_prompt: Patch<String>,
    /// New tags in place of all the old ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// New numbers in place of all the old ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
}

impl AgentPatch {
    /// Changes the agent's fields; the identity and the timestamps are not touched.
    pub fn apply(self, agent: &mut Agent) {
        fn replace<T>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        replace(&mut agent.display_name, self.display_name);
        self.role.apply(&mut agent.role);
        self.description.apply(&mut agent.description);
        replace(&mut agent.agent_type, self.agent_type);
        self.model.apply(&mut agent.model);
        self.color.apply(&mut agent.color);
        self.persona_prompt.apply(&mut agent.persona_prompt);
        replace(&mut agent.capabilities, self.capabilities);
        replace(&mut agent.parameters, self.parameters);
    }
}
