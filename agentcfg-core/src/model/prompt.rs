//! The prompt of an agent: its persona with the values of its variables.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{AgentId, Definition, ModelSettings};
use crate::body::{body, record};
use crate::rules;
use crate::validate::{Faults, Invalid, shown};

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

/// A variable that a definition declares.
#[derive(Deserialize)]
struct Variable {
    default: Option<String>,
    #[serde(default)]
    required: bool,
}

/// What the rendering of a prompt needs of a definition.
#[derive(Default, Deserialize)]
struct Declared {
    #[serde(default)]
    variables: BTreeMap<String, Variable>,
}

/// The persona with the value of each declared variable in the place of `{{name}}`, in one pass: a value is not replaced again.
/// `None` where there is no persona, or nothing is left of it.
///
/// # Errors
///
/// Each value of a variable that is not declared, and each required variable without a value if there is a persona.
pub(crate) fn render(
    persona: Option<String>,
    definition: Option<&Definition>,
    values: Option<&VariableValues>,
) -> Result<Option<String>, Invalid> {
    // Most definitions declare none, which is found out without reading them.
    let declaring = definition.filter(|definition| definition.as_str().contains(r#""variables""#));
    let declared = match declaring {
        Some(definition) => {
            serde_json::from_str::<Declared>(definition.as_str())
                .unwrap_or_default()
                .variables
        }
        None => BTreeMap::new(),
    };
    let given = |name: &str| values.and_then(|values| values.get(name));
    let persona = persona.filter(|persona| !persona.is_empty());
    let mut faults = Faults::default();
    for name in values.into_iter().flat_map(BTreeMap::keys) {
        if !declared.contains_key(name) {
            faults.push(
                format_args!("variables.{}", shown(name)),
                "is not a variable of the agent",
            );
        }
    }
    if persona.is_some() {
        for (name, variable) in &declared {
            if variable.required && variable.default.is_none() && given(name).is_none() {
                faults.push(format_args!("variables.{name}"), "is required");
            }
        }
    }
    faults.into_result()?;
    let Some(text) = &persona else { return Ok(None) };
    if declared.is_empty() {
        return Ok(persona);
    }
    let value = |name: &str| {
        let variable = declared.get(name)?;
        Some(given(name).or(variable.default.as_ref()).map_or("", String::as_str))
    };
    let rendered = replaced(text, value);
    Ok(Some(rendered).filter(|rendered| !rendered.is_empty()))
}

/// A text with `{{name}}` replaced where there is a value for the name. Spaces may surround the name.
fn replaced<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let (before, opening) = rest.split_at(at);
        replaced.push_str(before);
        match named(opening).and_then(|(name, after)| Some((value(name)?, after))) {
            Some((value, after)) => {
                replaced.push_str(value);
                rest = after;
            }
            None => {
                replaced.push('{');
                rest = &opening[1..];
            }
        }
    }
    replaced.push_str(rest);
    replaced
}

/// The name between the braces that a text begins with, and what follows them.
fn named(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("{{")?.trim_start_matches(' ');
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (name, after) = inner.split_at(end);
    let after = after.trim_start_matches(' ').strip_prefix("}}")?;
    Some((name, after))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn definition(variables: &str) -> Definition {
        Definition::from_json(format!(r#"{{"variables":{variables}}}"#).as_bytes()).unwrap()
    }

    fn values(pairs: &[(&str, &str)]) -> VariableValues {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn rendered(persona: &str, variables: &str, pairs: &[(&str, &str)]) -> Result<Option<String>, String> {
        render(
            Some(persona.to_owned()),
            Some(&definition(variables)),
            Some(&values(pairs)),
        )
        .map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn declared_names_are_replaced_once() {
        let declared = r#"{"a":{},"b":{"default":"B"},"_c1":{}}"#;
        for (persona, expected) in [
            ("{{a}} {{ a }} {{  a}}{{a  }}", "1 1 11"),
            ("{{b}}", "B"),
            ("{{_c1}}-", "-"),
            ("{{other}} {{A}} {a} {{a}", "{{other}} {{A}} {a} {{a}"),
            ("{{{a}}}", "{1}"),
            ("{{{{a}}}}", "{{1}}"),
            ("{{ a\n}} {{a.b}} {{}} {{", "{{ a\n}} {{a.b}} {{}} {{"),
            ("é{{a}}é", "é1é"),
        ] {
            assert_eq!(
                rendered(persona, declared, &[("a", "1")]).unwrap().unwrap(),
                expected,
                "{persona}"
            );
        }
        let twice = rendered("{{a}}", declared, &[("a", "{{b}}")]).unwrap();
        assert_eq!(twice.as_deref(), Some("{{b}}"));
        assert_eq!(rendered("{{a}}", declared, &[]).unwrap(), None);
    }

    #[test]
    fn without_variables_the_persona_stays() {
        let persona = "{{a}} {{ b }}".to_owned();
        for definition in [
            None,
            Some(&Definition::from_json(b"{}").unwrap()),
            Some(&definition("{}")),
        ] {
            let rendered = render(Some(persona.clone()), definition, None).unwrap();
            assert_eq!(rendered.as_ref(), Some(&persona));
            let unknown = render(Some(persona.clone()), definition, Some(&values(&[("a", "1")])));
            assert_eq!(
                unknown.unwrap_err().to_string(),
                "variables.a is not a variable of the agent"
            );
        }
        assert_eq!(render(Some(String::new()), None, None).unwrap(), None);
    }

    #[test]
    fn all_that_are_missing_are_named() {
        let declared = r#"{"a":{"required":true},"b":{"required":true,"default":""},"c":{"required":true},"d":{"required":false}}"#;
        assert_eq!(
            rendered("x", declared, &[("e", "1")]).unwrap_err(),
            "variables.e is not a variable of the agent; variables.a is required; variables.c is required"
        );
        assert_eq!(
            rendered("x{{a}}{{c}}", declared, &[("a", ""), ("c", "2")])
                .unwrap()
                .as_deref(),
            Some("x2")
        );
        // Without a persona there is nothing to fill in.
        assert_eq!(render(None, Some(&definition(declared)), None).unwrap(), None);
    }
}
