//! How each type of field is read from JSON.

use std::fmt::Display;

use serde_json::Number;

use crate::json::Json;
use crate::model::{AgentType, Environment, LiveStatus, Parameters, Plan, Role, Scope, Timestamp, WorkspaceId};
use crate::validate::{Faults, shown};

/// A type that a field of a body can have. A fault is noted under the field's name.
pub(crate) trait FromJson: Sized {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self>;
}

fn mismatch<T>(json: &Json<'_>, field: &dyn Display, wanted: &str, faults: &mut Faults) -> Option<T> {
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

/// Types that are written as a string in a form of their own.
macro_rules! from_text {
    ($($name:ty),+) => {$(
        impl FromJson for $name {
            fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
                let text = String::from_json(json, field, faults)?;
                text.parse().map_err(|rule: <$name as std::str::FromStr>::Err| faults.push(field, rule.to_string())).ok()
            }
        }
    )+};
}

from_text!(
    WorkspaceId,
    Timestamp,
    AgentType,
    LiveStatus,
    Plan,
    Role,
    Scope,
    Environment
);

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

impl FromJson for Parameters {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        let Json::Object(entries) = json else {
            return mismatch(&json, field, "an object of numbers", faults);
        };
        let mut parameters = Self::new();
        for (name, value) in entries {
            // The placeholder lets the rules for the whole value find the other faults.
            let number = match value {
                Json::Number(number) => number,
                Json::Huge => {
                    let place = format_args!("{field}.{}", shown(&name));
                    faults.push(place, "must be a number that a finite double can hold");
                    Number::from(0)
                }
                other => {
                    let place = format_args!("{field}.{}", shown(&name));
                    faults.push(place, format!("must be a number, got {}", other.kind()));
                    Number::from(0)
                }
            };
            if parameters.contains_key(&*name) {
                let place = format_args!("{field}.{}", shown(&name));
                faults.push(place, "must not appear more than once");
            }
            parameters.insert(name.into_owned(), number);
        }
        Some(parameters)
    }
}
