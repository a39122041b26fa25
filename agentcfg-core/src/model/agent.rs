//! Agent configurations.

use std::collections::BTreeMap;

use serde_json::Number;
use uuid::Uuid;

use super::agent_fields::agent_fields;
use super::word_enum::word_enum;
use super::{AgentId, Definition, Timestamp, WorkspaceId};
use crate::rules;
use crate::validate::{MAX_DESCRIPTION, MAX_DISPLAY_NAME, MAX_MODEL, MAX_ROLE};

word_enum! {
    /// Whether a software agent or a person does the work.
    AgentType {
        /// An AI agent.
        Ai = "ai",
        /// A human.
        Human = "human",
    } or Unknown
}

impl Default for AgentType {
    /// [`AgentType::Ai`], the type of an agent that was created without one.
    fn default() -> Self {
        Self::Ai
    }
}

/// Personality sliders: a number for each name, kept as it was written.
///
/// ```
/// use agentcfg_core::model::Parameters;
/// let parameters: Parameters = [("formality".to_owned(), 70.into())].into();
/// assert_eq!(serde_json::to_string(&parameters)?, r#"{"formality":70}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type Parameters = BTreeMap<String, Number>;

/// How far the history of an agent goes: the numbers of its last version and of its last touch.
///
/// A touch is a change of the record that made no version, such as a deactivation. Both are numbered 1, 2, 3, ….
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct AgentHistory {
    pub(crate) versions: u64,
    pub(crate) touches: u64,
}

// The fields that a workspace configures. A line here is all that the core and the API need: the types of an agent and of its
// versions have it, bodies are read and checked with its rule, patches are applied, and the schema describes it. A new field is
// `nullable`, `defaulted` or `sparse`: the records that earlier releases wrote do not have it.
agent_fields! {
    /// Name for people. Something in it has to be visible.
    display_name: required String as rules::NotBlank<MAX_DISPLAY_NAME>, example "Release writer";
    /// Job title shown next to the name.
    role: nullable String as rules::Text<MAX_ROLE>, example "Technical author";
    /// What the agent is for.
    description: nullable String as rules::Text<MAX_DESCRIPTION>, example "Turns merged changes into release notes.";
    /// AI or human.
    agent_type: defaulted AgentType as rules::Any<AgentType>, example "ai";
    /// Name of the model that the agent runs on; it is not checked against any catalogue.
    model: nullable String as rules::Text<MAX_MODEL>, example "gpt-5.5";
    /// Avatar colour: a hash sign followed by 3, 4, 6 or 8 hexadecimal digits.
    color: nullable String as rules::Color, example "#7c3aed";
    /// System prompt that gives the agent its personality.
    persona_prompt: nullable String as rules::Persona, example "You write short, factual release notes.";
    /// Capability tags. Their order and any repetition are preserved.
    capabilities: defaulted Vec<String> as rules::Capabilities, example ["writing", "changelog"];
    /// Personality sliders: a number under each name. Integers that fit into 64 bits stay integers.
    parameters: defaulted Parameters as rules::Parameters, example { "creativity": 0.7, "formality": 70 };
    /// Tools, MCP servers, settings of the model and whatever else belongs to the agent, as a JSON object.
    definition: sparse Definition as rules::Definition, example { "tools": ["search"], "model_settings": { "temperature": 0.2 } };
}

/// Gives bodies a reader that goes by the limits of a deployment.
macro_rules! within_limits {
    ($($body:ident)+) => {$(
        impl $body {
            /// Reads the JSON text of a request as a server with these limits does; `from_json` allows what any deployment can
            /// allow.
            ///
            /// A persona that is too long is a fault next to other faults. Alone it is none, because an agent may keep a longer
            /// one that it has: the service decides.
            ///
            /// # Errors
            ///
            /// Every fault of the text, in the order of the fields.
            ///
            /// ```
            #[doc = concat!("use agentcfg_core::model::{Limits, ", stringify!($body), "};")]
            #[doc = concat!("let read = ", stringify!($body), "::from_json_within(b\"no JSON\", Limits::default());")]
            /// assert!(read.is_err());
            /// ```
            pub fn from_json_within(
                bytes: &[u8],
                limits: $crate::model::Limits,
            ) -> Result<$crate::validate::Valid<Self>, $crate::validate::Invalid> {
                $crate::validate::read_within(bytes, limits.persona_prompt)
            }
        }
    )+};
}

pub(super) use within_limits;

within_limits!(NewAgent AgentPatch);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What a release without some field wrote is read by one that has it.
    #[test]
    fn records_may_lack_the_fields_that_were_added_after_them() {
        let new = NewAgent::new(WorkspaceId::new(Uuid::nil()), "writer".parse().unwrap(), "Writer");
        let agent = new.into_agent(Uuid::nil(), Timestamp::from_unix_millis(0));
        let stored = json!(StoredAgent {
            agent: agent.clone(),
            history: AgentHistory {
                versions: 1,
                touches: 0
            }
        });
        for name in AgentConfig::FIELDS.iter().filter(|name| **name != "display_name") {
            let without = |value: &Value| {
                let mut value = value.clone();
                value.as_object_mut().unwrap().remove(*name);
                value
            };
            let shown: Agent = serde_json::from_value(without(&json!(agent))).unwrap();
            assert_eq!(shown, agent, "{name}");
            let config: AgentConfig = serde_json::from_value(without(&json!(agent.config()))).unwrap();
            assert_eq!(config, agent.config(), "{name}");
            let read: StoredAgent = serde_json::from_value(without(&stored)).unwrap();
            assert_eq!(read.agent, agent, "{name}");
        }
    }
}
