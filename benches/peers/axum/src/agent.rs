//! Agents: the create request, the response, and the table row.

use std::collections::BTreeMap;

use rusqlite::types::Type;
use rusqlite::{Connection, Row, named_params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use uuid::Uuid;

use crate::failure::Failure;
use crate::store::now;

const INSERT: &str =
    "INSERT INTO agents (id, workspace_id, agent_id, display_name, role, description, agent_type, model,
    color, persona_prompt, capabilities, parameters, created_at, updated_at) VALUES (:id, :workspace_id, :agent_id,
    :display_name, :role, :description, :agent_type, :model, :color, :persona_prompt, :capabilities, :parameters,
    :created_at, :updated_at)";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    pub workspace_id: String,
    agent_id: String,
    display_name: String,
    role: Option<String>,
    description: Option<String>,
    #[serde(default)]
    agent_type: AgentType,
    model: Option<String>,
    color: Option<String>,
    persona_prompt: Option<String>,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    parameters: BTreeMap<String, Number>,
}

#[derive(Serialize, Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum AgentType {
    #[default]
    Ai,
    Human,
}

impl AgentType {
    const fn name(self) -> &'static str {
        match self {
            Self::Ai => "ai",
            Self::Human => "human",
        }
    }
}

impl NewAgent {
    pub fn validate(&self) -> Result<(), Failure> {
        let is_part = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_');
        let within = |text: &Option<String>, most| text.as_ref().is_none_or(|text| text.chars().count() <= most);
        if !(1..=50).contains(&self.agent_id.len()) || !self.agent_id.chars().all(is_part) {
            return Err(Failure::Invalid("agent_id must be 1 to 50 of a-z, 0-9, - and _"));
        }
        let fits = (1..=100).contains(&self.display_name.chars().count())
            && within(&self.role, 100)
            && within(&self.description, 2000)
            && within(&self.model, 100)
            && within(&self.color, 9)
            && within(&self.persona_prompt, 5000)
            && self.capabilities.len() <= 100
            && self.parameters.len() <= 100;
        if fits {
            Ok(())
        } else {
            Err(Failure::Invalid("a field is too long"))
        }
    }
}

#[derive(Serialize)]
pub struct Agent {
    id: String,
    pub workspace_id: String,
    pub agent_id: String,
    display_name: String,
    role: Option<String>,
    description: Option<String>,
    agent_type: AgentType,
    model: Option<String>,
    color: Option<String>,
    persona_prompt: Option<String>,
    capabilities: Vec<String>,
    parameters: BTreeMap<String, Number>,
    is_active: bool,
    pub created_at: String,
    updated_at: String,
}

impl Agent {
    pub fn new(new: NewAgent) -> Self {
        let now = now();
        Self {
            id: Uuid::new_v4().to_string(),
            workspace_id: new.workspace_id,
            agent_id: new.agent_id,
            display_name: new.display_name,
            role: new.role,
            description: new.description,
            agent_type: new.agent_type,
            model: new.model,
            color: new.color,
            persona_prompt: new.persona_prompt,
            capabilities: new.capabilities,
            parameters: new.parameters,
            is_active: true,
            created_at: now.clone(),
            updated_at: now,
        }
    }

    pub fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let agent_type: String = row.get("agent_type")?;
        Ok(Self {
            id: row.get("id")?,
            workspace_id: row.get("workspace_id")?,
            agent_id: row.get("agent_id")?,
            display_name: row.get("display_name")?,
            role: row.get("role")?,
            description: row.get("description")?,
            agent_type: if agent_type == "human" {
                AgentType::Human
            } else {
                AgentType::Ai
            },
            model: row.get("model")?,
            color: row.get("color")?,
            persona_prompt: row.get("persona_prompt")?,
            capabilities: json(row, "capabilities")?,
            parameters: json(row, "parameters")?,
            is_active: row.get("is_active")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }

    pub fn insert(&self, connection: &Connection) -> Result<(), Failure> {
        connection.prepare_cached(INSERT)?.execute(named_params! {
            ":id": self.id,
            ":workspace_id": self.workspace_id,
            ":agent_id": self.agent_id,
            ":display_name": self.display_name,
            ":role": self.role,
            ":description": self.description,
            ":agent_type": self.agent_type.name(),
            ":model": self.model,
            ":color": self.color,
            ":persona_prompt": self.persona_prompt,
            ":capabilities": serde_json::to_string(&self.capabilities)?,
            ":parameters": serde_json::to_string(&self.parameters)?,
            ":created_at": self.created_at,
            ":updated_at": self.updated_at,
        })?;
        Ok(())
    }
}

/// A column with JSON in it.
fn json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}
