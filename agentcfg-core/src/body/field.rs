//! A field of a body as a Rust value.

use super::FromJson;
use crate::model::Patch;

/// A field of a body: a plain value, or one that may be left out.
pub(crate) trait Field {
    /// The type of its value.
    type Value;

    /// The value, if it has one.
    fn value(&self) -> Option<&Self::Value>;

    /// Whether it is left out of the JSON text.
    fn is_absent(&self) -> bool;
}

impl<T: FromJson> Field for T {
    type Value = T;

    fn value(&self) -> Option<&T> {
        Some(self)
    }

    fn is_absent(&self) -> bool {
        false
    }
}

impl<T> Field for Option<T> {
    type Value = T;

    fn value(&self) -> Option<&T> {
        self.as_ref()
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Field for Patch<T> {
    type Value = T;

    fn value(&self) -> Option<&T> {
        Patch::value(self)
    }

    fn is_absent(&self) -> bool {
        Patch::is_absent(self)
    }
}

/// A field of a body that changes a resource.
pub(crate) trait Change<T> {
    /// Changes the field of the resource, or leaves it.
    fn apply(self, field: &mut T);
}

// A value that is equal to the stored one leaves it: equal definitions and numbers can be written in two ways, and a
// record that changes gets a version.
impl<T: PartialEq> Change<T> for Option<T> {
    fn apply(self, field: &mut T) {
        if let Some(value) = self.filter(|value| value != field) {
            *field = value;
        }
    }
}

impl<T: PartialEq> Change<Option<T>> for Patch<T> {
    fn apply(self, field: &mut Option<T>) {
        if self.value().is_none_or(|value| field.as_ref() != Some(value)) {
            Patch::apply(self, field);
        }
    }
}
