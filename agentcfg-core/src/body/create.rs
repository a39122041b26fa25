//! Readers for the fields of a body that creates a resource, by the presence of the field. `None` means that a fault
//! was noted.

pub(crate) use super::change::{nullable as tristate, required as optional};
use super::{Fields, Given, Rule};

/// Must be there.
pub(crate) fn required<R: Rule>(fields: &mut Fields<'_>, name: &str) -> Option<R::Value> {
    let value = fields.not_null::<R>(name)?;
    if value.is_none() {
        fields.fault(name, "is required");
    }
    value
}

/// May be left out, which means the default of its type.
pub(crate) fn defaulted<R: Rule<Value: Default>>(fields: &mut Fields<'_>, name: &str) -> Option<R::Value> {
    fields.not_null::<R>(name).map(Option::unwrap_or_default)
}

/// May be left out or null, which means the same.
pub(crate) fn nullable<R: Rule>(fields: &mut Fields<'_>, name: &str) -> Option<Option<R::Value>> {
    match fields.read::<R>(name) {
        Given::Value(value) => Some(Some(value)),
        Given::Absent | Given::Null => Some(None),
        Given::Wrong => None,
    }
}

pub(crate) use nullable as sparse;
