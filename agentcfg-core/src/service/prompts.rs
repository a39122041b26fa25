//! The prompt of an agent: its persona with the values of its variables.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{AgentCfg, Caller};
use crate::error::Error;
use crate::model::{
    AgentId, Definition, IdRef, Permission, PromptValues, RenderedPrompt, VariableValues, VersionSelector, WorkspaceId,
};
use crate::validate::{Faults, IntoValid, Invalid, shown};

/// How many bytes a prompt may have once its variables are filled in. A persona that names a variable many times would
/// otherwise make gigabytes of one request.
const MAX_FILLED_IN: usize = 4 << 20;

impl AgentCfg {
    /// Renders the prompt of an agent: what a model call with these values of variables would fill in.
    ///
    /// `workspace` may be left out where the caller has just one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a value of a variable that the agent does not
    /// declare, for a required one without a value, and for a prompt of more than 4 MiB,
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read`,
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown or deleted agent and where the selector finds
    /// no version.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let rendered = service
    ///     .render_prompt(&ada, Some(studio), "writer", VersionSelector::Current, PromptValues::default())
    ///     .await?;
    /// assert_eq!((rendered.version, rendered.model_settings.as_str()), (1, "{}"));
    /// # Ok(()) }) }
    /// ```
    pub async fn render_prompt(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        version: VersionSelector<'_>,
        values: impl IntoValid<PromptValues>,
    ) -> Result<RenderedPrompt, Error> {
        let values = values.into_valid()?.into_inner().variables;
        let access = self.access_default(caller, workspace, Permission::AgentsRead).await?;
        let agent = self.active_agent(&access, agent_id.into()).await?.value;
        let version = access.limits().select(version)?;
        let (version, config) = self.selected_content(&access, &agent, version).await?;
        let config = config.unwrap_or_else(|| agent.agent.config());
        let settings = config.definition.as_ref().map(Definition::model_settings);
        Ok(RenderedPrompt {
            agent_id: agent.agent.agent_id.clone(),
            version,
            prompt: render(config.persona_prompt, config.definition.as_ref(), values.as_ref())?,
            model: config.model.filter(|model| !model.is_empty()),
            model_settings: settings.unwrap_or_default(),
        })
    }
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

/// The persona with the value of each declared variable in the place of `{{name}}`, in one pass: a value is not
/// replaced again. `None` where there is no persona, or nothing is left of it.
///
/// # Errors
///
/// Each value of a variable that is not declared, each required variable without a value if there is a persona, and a
/// prompt of more than [`MAX_FILLED_IN`].
pub(super) fn render(
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
    let mut length = 0;
    fill_in(text, value, |piece| length += piece.len());
    if length > MAX_FILLED_IN {
        let rule = format!("must be at most {MAX_FILLED_IN} bytes once its variables are filled in, got {length}");
        return Err(Invalid::new("persona_prompt", rule));
    }
    let mut rendered = String::with_capacity(length);
    fill_in(text, value, |piece| rendered.push_str(piece));
    Ok(Some(rendered).filter(|rendered| !rendered.is_empty()))
}

/// Gives the pieces of a text with `{{name}}` replaced where there is a value for the name. Spaces may surround the
/// name.
fn fill_in<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>, mut push: impl FnMut(&str)) {
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let (before, opening) = rest.split_at(at);
        push(before);
        match named(opening).and_then(|(name, after)| Some((value(name)?, after))) {
            Some((value, after)) => {
                push(value);
                rest = after;
            }
            None => {
                push("{");
                rest = &opening[1..];
            }
        }
    }
    push(rest);
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
    fn a_prompt_that_would_be_too_long_is_not_made() {
        let value = "x".repeat(1 << 20);
        let with = |names: usize, more: &str| {
            rendered(
                &format!("{}{more}", "{{a}}".repeat(names)),
                r#"{"a":{}}"#,
                &[("a", &value)],
            )
        };
        assert_eq!(with(4, "").unwrap().map(|prompt| prompt.len()), Some(MAX_FILLED_IN));
        assert_eq!(
            with(4, "é").unwrap_err(),
            "persona_prompt must be at most 4194304 bytes once its variables are filled in, got 4194306"
        );
        assert!(with(1000, "").unwrap_err().ends_with("got 1048576000"));
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
