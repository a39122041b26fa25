//! The trait of the rules for fields.

use super::FromJson;
use crate::validate::Faults;

/// The rule of a field's value.
pub(crate) trait Rule {
    /// The type of the value.
    type Value: FromJson;

    /// Reports each fault of the value under the field's name.
    fn check(value: &Self::Value, field: &str, faults: &mut Faults);
}
