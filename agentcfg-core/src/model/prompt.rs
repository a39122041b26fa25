//! Rendering the prompt of an agent: the values that come in, and what comes out.

use std::collections::BTreeMap;

use super::{AgentId, ModelSettings};
use crate::body::{body, record};
use crate::rules;

/// Values of the variables of an agent, by name.
///
/// ```
/// use agentcfg_core::model::VariableValues;
/// let values: VariableValues = [("product".to_owned(), "Boards".to_owned())].into();
/// assert_eq!(values["product"], "Boards");
/// ```
pub type VariableValues = BTreeMap<String, String>;

body! {
    /// The values to render a prompt with.
    ///
    /// ```
    /// use agentcfg_core::model::{PromptValues, VariableValues};
    /// let values: VariableValues = [("product".to_owned(), "Boards".to_owned())].into();
    /// assert!(PromptValues::default().variables(values).validate().is_ok());
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    create PromptValues {
        /// The values of the variables, by name.
        variables: nullable VariableValues as rules::VariableValues,
    }
    read_only: &["agent_id", "workspace_id"],
    examples: [{ "variables": {} }, {}],
}

record! {
    /// What a model call as an agent would fill in.
    ///
    /// ```
    /// use agentcfg_core::model::RenderedPrompt;
    /// fn system_message(rendered: &RenderedPrompt) -> &str {
    ///     rendered.prompt.as_deref().unwrap_or_default()
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    RenderedPrompt {
        /// Identifier of the agent.
        agent_id: required AgentId,
        /// The number of the version that it is of.
        version: required u64,
        /// The agent's model; null if it has none.
        model: nullable String,
        /// The persona with the values of the variables; null if there is none.
        prompt: nullable String,
        /// The settings of model calls; an empty object if there are none.
        model_settings: required ModelSettings as rules::ModelSettings,
    }
    examples: [{
        "agent_id": "release-writer",
        "version": 3,
        "model": "gpt-5.5",
        "prompt": "You write short, factual release notes for Boards.",
        "model_settings": { "temperature": 0.2 },
    }],
}
