//! The rules for the values of fields, each a type: the declaration of a field names the rule, and reading a body,
//! checking a value that was made in Rust and the JSON Schema follow from it.

mod agent;
mod agent_specs;
mod generated;
#[cfg(feature = "schema")]
pub(crate) mod schema;
mod text;
mod value;
mod webhook;

use std::marker::PhantomData;

pub(crate) use self::agent::{
    Capabilities, Color, Definition, ModelSettings, Parameters, RepeatedAgentId, VariableValues,
};
pub(crate) use self::agent_specs::AgentSpecs;
pub(crate) use self::generated::{ChangesByPath, RecordId, True};
pub(crate) use self::text::{Credential, NotBlank, Persona, Text, TextFromOne};
pub(crate) use self::value::{
    AgentIds, KeyAgents, KeyPermissions, Moment, Overlap, RequestsPerMinute, Revision, TargetLabel, UsdLimit,
};
pub(crate) use self::webhook::{EventTypes, HookUrl};
use crate::body::{FromJson, Rule};
use crate::model::FieldValues;
use crate::model::word_enum::OpenSet;
use crate::validate::Faults;

/// A rule for a configurable field of an agent. Forms and tools get it as data.
pub(crate) trait Described: Rule {
    /// The values that the rule allows.
    const VALUES: FieldValues;
}

/// The rule that every value of the type satisfies.
pub(crate) struct Any<T>(PhantomData<T>);

impl<T: FromJson> Rule for Any<T> {
    type Value = T;

    fn check(value: &T, field: &str, faults: &mut Faults) {
        value.check_word(field, faults);
    }
}

impl<T: FromJson + OpenSet> Described for Any<T> {
    const VALUES: FieldValues = FieldValues::Words(T::KNOWN);
}
