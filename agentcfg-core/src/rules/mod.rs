//! The rules for the values of fields, each a type: the declaration of a field names the rule, and reading a body,
//! checking a value that was made in Rust and the JSON Schema follow from it.

mod agent;
#[cfg(feature = "schema")]
mod schema;
mod shown;
mod text;
mod value;

use std::marker::PhantomData;

pub(crate) use self::agent::{Capabilities, Color, Parameters, RepeatedAgentId};
#[cfg(feature = "schema")]
pub(crate) use self::shown::KeyText;
pub(crate) use self::shown::{RecordId, True};
pub(crate) use self::text::{Credential, NotBlank, Text, TextFromOne, length_at_most, length_from_one};
pub(crate) use self::value::{Moment, Overlap, RequestsPerMinute};
use crate::body::FromJson;
use crate::validate::Faults;

/// The rule of a field's value.
pub(crate) trait Rule {
    /// The type of the value.
    type Value: FromJson;

    /// Reports each fault of the value under the field's name.
    fn check(value: &Self::Value, field: &str, faults: &mut Faults);
}

/// Every value of a type.
pub(crate) struct Any<T>(PhantomData<T>);

impl<T: FromJson> Rule for Any<T> {
    type Value = T;

    fn check(_: &T, _: &str, _: &mut Faults) {}
}
