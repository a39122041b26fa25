//! The fields of a body that changes something, by their presence in the resource. `None` is a field with a fault.

use super::{Fields, Found, Rule};
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
        Found::Value(value) => Some(Patch::Set(value)),
        Found::Absent => Some(Patch::Absent),
        Found::Null => Some(Patch::Null),
        Found::Wrong => None,
    }
}
