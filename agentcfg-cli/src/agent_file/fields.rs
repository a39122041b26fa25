//! The fields of an agent by name, in the order of the record.

use agentcfg_client::model::{AgentConfig, AgentPatch, AgentSpec};
use agentcfg_core::validate::Invalid;
use serde_json::{Map, Value};

/// The configurable fields of an agent as JSON values. The names and their order are those of [`AgentConfig`], so a
/// field that it gains is here without another line.
#[derive(Debug, Clone, PartialEq)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// The field that has other values where it is absent and where it is empty.
    pub const DEFINITION: &'static str = "definition";

    /// The field that is the body of a file.
    pub const BODY: &'static str = "persona_prompt";

    pub fn of_spec(spec: &AgentSpec) -> Result<Self, serde_json::Error> {
        let config: AgentConfig = serde_json::from_value(serde_json::to_value(spec)?)?;
        Self::of(&config)
    }

    pub fn of(config: &AgentConfig) -> Result<Self, serde_json::Error> {
        let mut fields: Map<String, Value> = serde_json::from_str(&serde_json::to_string(config)?)?;
        // A field that the record leaves out is one without a value.
        for (at, field) in AgentConfig::fields().iter().enumerate() {
            if !fields.contains_key(field.name) {
                fields.shift_insert(at.min(fields.len()), field.name.to_owned(), Value::Null);
            }
        }
        Ok(Self(fields))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The fields of the front matter.
    pub fn in_front(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.iter().filter(|(name, _)| *name != Self::BODY)
    }

    pub fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    pub fn set(&mut self, name: &str, value: Value) {
        if let Some(field) = self.0.get_mut(name) {
            *field = value;
        }
    }

    /// The patch that leads from other fields to these; `None` where they are the same.
    pub fn patch_from(&self, before: &Self) -> Result<Option<AgentPatch>, Invalid> {
        let changed: Map<String, Value> = self
            .0
            .iter()
            .filter(|(name, value)| before.get(name) != *value)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if changed.is_empty() {
            return Ok(None);
        }
        let patch = AgentPatch::from_json(Value::Object(changed).to_string().as_bytes())?;
        Ok(Some(patch.into_inner()))
    }
}
