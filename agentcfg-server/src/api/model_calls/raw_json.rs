//! Values of JSON with their places in the text, so that they can be replaced and the rest stays as it was sent.

use std::ops::Range;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A value that is there, null too. A member that is missing is `None`.
pub(super) fn present<'de: 'a, 'a, D: Deserializer<'de>>(value: D) -> Result<Option<&'a RawValue>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// Whether a text may be a JSON object. Serde reads the fields of a struct from a list, too.
pub(super) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The range of a value within the text that it was cut from.
pub(super) fn range(text: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + part.get().len()
}
