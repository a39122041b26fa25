//! Readers for the fields of a body that changes a resource, by the presence of the field. `None` means that a fault
//! was noted.

use super::{Fields, Given, Rule};
use crate::model::Patch;

/// May be left out, but not be null.
pub(crate) fn required<R: Rule>(fields: &mut Fields<'_>, name: &str) -> Option<Option<R::Value>> {
    fields.not_null::<R>(name)
}

/// As [`required`]: a default matters where something is created.
pub(crate) fn defaulted<R: Rule>(fields: &mut Fields<'_>, name: &str) -> Option<Option<R::Value>> {
    fields.not_null::<R>(name)
}

/// May be left out, and is cleared by null.
pub(crate) fn nullable<R: Rule>(fields: &mut Fields<'_>, name: &str) -> Option<Patch<R::Value>> {
    match fields.read::<R>(name) {
        Given::Value(value) => Some(Patch::Set(value)),
        Given::Absent => Some(Patch::Absent),
        Given::Null => Some(Patch::Null),
        Given::Wrong => None,
    }
}

pub(crate) use nullable as sparse;
