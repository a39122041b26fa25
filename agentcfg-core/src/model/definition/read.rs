//! Reading a definition: its text, its size and its depth.

use std::collections::HashSet;
use std::fmt::{self, Display};

use crate::body::mismatch;
use crate::json::Json;
use crate::validate::text::without_nul;
use crate::validate::{Faults, shown};

/// The greatest length in bytes, as compact JSON.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// The greatest number of levels of arrays and objects.
pub(super) const MAX_LEVELS: usize = 32;

/// Reads an object that can be read in one way only, and writes it as compact JSON.
pub(super) fn compact(json: &Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<String> {
    let Json::Object(_) = json else {
        return mismatch(json, field, "an object", faults);
    };
    let before = faults.count();
    let mut text = String::new();
    write(json, &Place::Field(field), 1, &mut text, faults);
    if text.len() > MAX_BYTES {
        faults.push(field, too_long(text.len()));
    }
    (faults.count() == before).then_some(text)
}

pub(super) fn too_long(length: usize) -> String {
    format!("must be at most {MAX_BYTES} bytes as compact JSON, got {length}")
}

/// Where a value is.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Field(&'a dyn Display),
    Member(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(field) => field.fmt(f),
            Self::Member(outer, name) => write!(f, "{outer}.{}", shown(name)),
            Self::Item(outer, index) => write!(f, "{outer}[{index}]"),
        }
    }
}

/// Writes a value as compact JSON, and notes what no reader may have to decide: a name that is there twice, a character that
/// some databases cannot hold, a number that no double holds.
fn write(json: &Json<'_>, place: &Place<'_>, level: usize, text: &mut String, faults: &mut Faults) {
    if matches!(json, Json::Array(_) | Json::Object(_)) && level > MAX_LEVELS {
        let most = MAX_LEVELS;
        faults.push(
            place,
            format_args!("must be within {most} levels of arrays and objects"),
        );
        return;
    }
    match json {
        Json::Null => text.push_str("null"),
        Json::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Json::Number(number) => text.push_str(&number.to_string()),
        Json::Huge => faults.push(place, "must be a number that a finite double can hold"),
        Json::String(string) => {
            without_nul(string, place, faults);
            quote(string, text);
        }
        Json::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, &Place::Item(place, index), level + 1, text, faults);
            }
            text.push(']');
        }
        Json::Object(entries) => {
            text.push('{');
            let mut names = HashSet::with_capacity(entries.len());
            for (index, (name, value)) in entries.iter().enumerate() {
                let place = Place::Member(place, name);
                if !names.insert(name) {
                    faults.push(place, "must not appear more than once");
                }
                if name.contains('\0') {
                    faults.push(format_args!("the name of {place}"), "must not contain a NUL character");
                }
                if index > 0 {
                    text.push(',');
                }
                quote(name, text);
                text.push(':');
                write(value, &place, level + 1, text, faults);
            }
            text.push('}');
        }
    }
}

/// Adds a text in quotes, with the escapes that JSON requires.
fn quote(string: &str, text: &mut String) {
    // A string is always written.
    text.push_str(&serde_json::to_string(string).unwrap_or_default());
}
