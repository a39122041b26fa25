//! Rules for the fields of an agent that are not plain texts.

use std::collections::HashMap;
use std::fmt::Display;

use super::text::{from_one, length_at_most, not_blank, without_nul};
use super::{Described, Rule};
use crate::body;
use crate::model::{self, FieldValues};
use crate::validate::{Faults, MAX_APPLIED, MAX_COLOR, MAX_ENTRIES, MAX_ENTRY_NAME, shown};

/// An agent's identifier in the body of an update, where it may only repeat the agent's own. The service compares the
/// two, so a text that could not be an identifier gets the same answer as any other wrong one.
pub(crate) struct RepeatedAgentId;

/// `#` and 3, 4, 6 or 8 hexadecimal digits.
pub(crate) struct Color;

/// At most 100 tags of 1–100 characters, not blank.
pub(crate) struct Capabilities;

/// At most 100 numbers with names of 1–100 characters.
pub(crate) struct Parameters;

/// At most 1,000 agents, each of them once.
pub(crate) struct AgentSpecs;

impl Rule for RepeatedAgentId {
    type Value = String;

    fn check(text: &String, field: &str, faults: &mut Faults) {
        without_nul(text, field, faults);
    }
}

impl Rule for Color {
    type Value = String;

    fn check(text: &String, field: &str, faults: &mut Faults) {
        length_at_most(text, MAX_COLOR, field, faults);
        let digits = text.strip_prefix('#').unwrap_or_default();
        if !matches!(digits.len(), 3 | 4 | 6 | 8) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            faults.push(field, "must be # and 3, 4, 6 or 8 hexadecimal digits");
        }
    }
}

impl Described for Color {
    const VALUES: FieldValues = FieldValues::Text { max_length: MAX_COLOR };
}

impl Rule for Capabilities {
    type Value = Vec<String>;

    fn check(tags: &Vec<String>, field: &str, faults: &mut Faults) {
        if tags.len() > MAX_ENTRIES {
            faults.push(
                field,
                format_args!("must have at most {MAX_ENTRIES} tags, got {}", tags.len()),
            );
        }
        for (i, tag) in tags.iter().enumerate() {
            not_blank(tag, MAX_ENTRY_NAME, format_args!("{field}[{i}]"), faults);
        }
    }
}

impl Described for Capabilities {
    const VALUES: FieldValues = FieldValues::Texts { max_items: MAX_ENTRIES };
}

impl Rule for Parameters {
    type Value = model::Parameters;

    fn check(parameters: &model::Parameters, field: &str, faults: &mut Faults) {
        if parameters.len() > MAX_ENTRIES {
            faults.push(
                field,
                format_args!("must have at most {MAX_ENTRIES} entries, got {}", parameters.len()),
            );
        }
        for name in parameters.keys() {
            let place = format_args!("the name of {field}.{}", shown(name));
            from_one(name, MAX_ENTRY_NAME, place, faults);
        }
    }
}

impl Described for Parameters {
    const VALUES: FieldValues = FieldValues::Numbers {
        max_entries: MAX_ENTRIES,
    };
}

impl Rule for AgentSpecs {
    type Value = Vec<model::AgentSpec>;

    fn check(specs: &Vec<model::AgentSpec>, field: &str, faults: &mut Faults) {
        if specs.len() > MAX_APPLIED {
            faults.push(field, too_many_agents(specs.len()));
            return;
        }
        for (i, spec) in specs.iter().enumerate() {
            let mut own = Faults::default();
            body::Body::check(spec, &mut own);
            faults.add_under(&format_args!("{field}[{i}]"), own);
        }
        each_once(specs.iter().enumerate(), field, faults);
    }
}

/// Refuses an agent that is named again.
pub(crate) fn each_once<'a>(
    specs: impl Iterator<Item = (usize, &'a model::AgentSpec)>,
    field: impl Display,
    faults: &mut Faults,
) {
    let mut first = HashMap::new();
    for (i, spec) in specs {
        if let Some(before) = first.insert(&spec.agent_id, i) {
            faults.push(
                format_args!("{field}[{i}].agent_id"),
                format_args!("must not name the agent of {field}[{before}] again"),
            );
        }
    }
}

/// The rule that a list of too many agents breaks.
pub(crate) fn too_many_agents(count: usize) -> String {
    format!("must have at most {MAX_APPLIED} elements, got {count}")
}
