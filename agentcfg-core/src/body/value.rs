//! How each type of field is read from JSON.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::str::FromStr;

use serde_json::Number;

use crate::json::Json;
use crate::model::UnknownWord;
use crate::model::word_enum::OpenSet;
use crate::validate::{Faults, shown};

/// A type that a field of a body can have. A fault is noted under the field's name.
pub(crate) trait FromJson: Sized {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self>;

    /// Checks a value that was made in Rust, which may be a word that this release does not know.
    fn check_word(&self, _field: &str, _faults: &mut Faults) {}
}

/// Notes that a value has the wrong type.
pub(crate) fn mismatch<T>(json: &Json<'_>, field: &dyn Display, wanted: &str, faults: &mut Faults) -> Option<T> {
    faults.push(field, format!("must be {wanted}, got {}", json.kind()));
    None
}

impl FromJson for String {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        match json {
            Json::String(text) => Some(text.into_owned()),
            other => mismatch(&other, field, "a string", faults),
        }
    }
}

/// Reads types that are written as a string in a form of their own.
macro_rules! from_text {
    ($name:ty) => {
        impl $crate::body::FromJson for $name {
            fn from_json(
                json: $crate::json::Json<'_>,
                field: &dyn std::fmt::Display,
                faults: &mut $crate::validate::Faults,
            ) -> Option<Self> {
                let text = String::from_json(json, field, faults)?;
                text.parse()
                    .map_err(|rule: <$name as std::str::FromStr>::Err| faults.push(field, rule))
                    .ok()
            }
        }
    };
}

pub(crate) use from_text;

/// Serialises a type as the text that it is displayed as, and reads it by its parser. With `as_str` the type has the text and no
/// formatter runs; with `read` it serialises itself.
macro_rules! serde_as_text {
    (read $name:ty) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
    (as_str $name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        $crate::body::serde_as_text!(read $name);
    };
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        $crate::body::serde_as_text!(read $name);
    };
}

pub(crate) use serde_as_text;

/// Reads a list of values that are written as strings.
macro_rules! list_from_json {
    ($name:ty) => {
        impl $crate::body::FromJson for Vec<$name> {
            fn from_json(
                json: $crate::json::Json<'_>,
                field: &dyn std::fmt::Display,
                faults: &mut $crate::validate::Faults,
            ) -> Option<Self> {
                let $crate::json::Json::Array(items) = json else {
                    return $crate::body::mismatch(&json, field, "an array of strings", faults);
                };
                // Each element is read, so that the faults of all are found.
                let read = |(i, item)| <$name>::from_json(item, &format_args!("{field}[{i}]"), faults);
                let values: Vec<Option<$name>> = items.into_iter().enumerate().map(read).collect();
                values.into_iter().collect()
            }
        }
    };
}

pub(crate) use list_from_json;

/// Types that are one of a set of words.
impl<T: OpenSet + FromStr<Err = UnknownWord>> FromJson for T {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        let word = String::from_json(json, field, faults)?;
        word.parse().map_err(|rule| faults.push(field, rule)).ok()
    }

    fn check_word(&self, field: &str, faults: &mut Faults) {
        if let Err(invalid) = self.known(field) {
            faults.add(invalid);
        }
    }
}

impl FromJson for bool {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        match json {
            Json::Bool(value) => Some(value),
            other => mismatch(&other, field, "true or false", faults),
        }
    }
}

impl FromJson for u32 {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        let number = match json {
            Json::Number(number) => number,
            Json::Huge => return Some(Self::MAX),
            other => return mismatch(&other, field, "an integer", faults),
        };
        // As in JSON Schema, a number without a fraction is an integer however it is written. Any other
        // number becomes the maximum, which the field's own rule refuses with its bounds.
        let is_whole = |number: f64| number.fract() == 0.0 && number >= 0.0;
        let whole = |number: f64| if is_whole(number) { number as Self } else { Self::MAX };
        Some(match number.as_u64() {
            Some(value) => Self::try_from(value).unwrap_or(Self::MAX),
            None => number.as_f64().map_or(Self::MAX, whole),
        })
    }
}

impl FromJson for u64 {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        // The least double that is too large.
        const END: f64 = 18_446_744_073_709_551_616.0;
        let number = match json {
            Json::Number(number) => number,
            Json::Huge => {
                faults.push(field, format_args!("must be from 0 to {}", Self::MAX));
                return None;
            }
            other => return mismatch(&other, field, "an integer", faults),
        };
        // As in JSON Schema, a number without a fraction is an integer however it is written.
        let whole = number.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0);
        match (number.as_u64(), whole) {
            (Some(value), _) => return Some(value),
            (None, Some(number)) if number < END => return Some(number as Self),
            (None, Some(_)) => faults.push(field, format_args!("must be at most {}", Self::MAX)),
            (None, None) => faults.push(field, "must be a whole number that is not negative"),
        }
        None
    }
}

impl FromJson for Vec<String> {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        let Json::Array(items) = json else {
            return mismatch(&json, field, "an array of strings", faults);
        };
        let texts = items.into_iter().enumerate().map(|(i, item)| {
            // The placeholder keeps the positions of the other elements, so that their faults are found as well.
            String::from_json(item, &format_args!("{field}[{i}]"), faults).unwrap_or_else(|| "-".to_owned())
        });
        Some(texts.collect())
    }
}

/// Personality sliders.
impl FromJson for BTreeMap<String, Number> {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        map(
            json,
            field,
            "an object of numbers",
            faults,
            |value, place, faults| match value {
                Json::Number(number) => number,
                Json::Huge => {
                    faults.push(place, "must be a number that a finite double can hold");
                    Number::from(0)
                }
                other => {
                    faults.push(place, format!("must be a number, got {}", other.kind()));
                    Number::from(0)
                }
            },
        )
    }
}

/// Values of variables.
impl FromJson for BTreeMap<String, String> {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        map(json, field, "an object of strings", faults, |value, place, faults| {
            String::from_json(value, place, faults).unwrap_or_default()
        })
    }
}

/// Reads an object whose values are of one type. Where a value is wrong, `read` notes the fault and returns a
/// placeholder, with which the rules for the whole value find the other faults.
fn map<T>(
    json: Json<'_>,
    field: &dyn Display,
    wanted: &str,
    faults: &mut Faults,
    read: impl Fn(Json<'_>, &dyn Display, &mut Faults) -> T,
) -> Option<BTreeMap<String, T>> {
    let Json::Object(entries) = json else {
        return mismatch(&json, field, wanted, faults);
    };
    let mut values = BTreeMap::new();
    let mut repeated = HashSet::new();
    for (name, value) in entries {
        let value = read(value, &format_args!("{field}.{}", shown(&name)), faults);
        if values.contains_key(&*name) && repeated.insert(name.clone()) {
            let place = format_args!("{field}.{}", shown(&name));
            faults.push(place, "must not appear more than once");
        }
        values.insert(name.into_owned(), value);
    }
    Some(values)
}
