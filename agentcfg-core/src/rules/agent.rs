//! Rules for the fields of an agent that are not plain texts.

use std::collections::BTreeMap;

use serde_json::Number;

use super::Described;
use crate::body::Rule;
use crate::model::{self, FieldValues};
use crate::validate::text::{from_one, length_at_most, not_blank, without_nul};
use crate::validate::{Faults, MAX_COLOR, MAX_ENTRIES, MAX_ENTRY_NAME, shown};

/// An agent's identifier in the body of an update, where it may only repeat the agent's own. The service compares the
/// two, so a text that could not be an identifier gets the same answer as any other wrong one.
pub(crate) struct RepeatedAgentId;

/// `#` and 3, 4, 6 or 8 hexadecimal digits.
pub(crate) struct Color;

/// At most 100 tags of 1–100 characters, not blank.
pub(crate) struct Capabilities;

/// At most 100 numbers with names of 1–100 characters.
pub(crate) struct Parameters;

/// A definition whose members keep their rules.
pub(crate) struct Definition;

/// Values of variables.
pub(crate) struct VariableValues;

/// The settings of a model call, which the service shows.
pub(crate) struct ModelSettings;

impl Rule for VariableValues {
    type Value = BTreeMap<String, String>;

    fn check(values: &BTreeMap<String, String>, field: &str, faults: &mut Faults) {
        for (name, value) in values {
            without_nul(value, format_args!("{field}.{}", shown(name)), faults);
        }
    }
}

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
    type Value = BTreeMap<String, Number>;

    fn check(parameters: &BTreeMap<String, Number>, field: &str, faults: &mut Faults) {
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

impl Rule for Definition {
    type Value = model::Definition;

    fn check(definition: &model::Definition, field: &str, faults: &mut Faults) {
        definition.check(field, faults);
    }
}

impl Described for Definition {
    const VALUES: FieldValues = FieldValues::Object {
        max_bytes: model::Definition::MAX_BYTES,
    };
}
