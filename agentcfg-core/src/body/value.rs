//! How each type of field is read from JSON.

use serde_json::Number;

use super::json::Json;
use super::shown;
use crate::model::{AgentType, Environment, LiveStatus, Parameters, Plan, Role, Scope, Timestamp, WorkspaceId};
use crate::validate::Faults;

/// A type that a field of a body can have. A fault is noted under the field's name.
pub(super) trait FromJson: Sized {
    fn from_json(json: Json, field: &str, faults: &mut Faults) -> Option<Self>;
}

fn mismatch<T>(json: &Json, field: &str, wanted: &str, faults: &mut Faults) -> Option<T> {
    faults.push(field, format!("must be {wanted}, got {}", json.kind()));
    None
}

impl FromJson for String {
    fn from_json(json: Json, field: &str, faults: &mut Faults) -> Option<Self> {
        match json {
            Json::String(text) => Some(text),
            other => mismatch(&other, field, "a string", faults),
        }
    }
}

/// Types that are written as a string in a form of their own.
macro_rules! from_text {
    ($($name:ty),+) => {$(
        impl FromJson for $name {
            fn from_json(json: Json, field: &str, faults: &mut Faults) -> Option<Self> {
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
    fn from_json(json: Json, field: &str, faults: &mut Faults) -> Option<Self> {
        let Json::Number(number) = json else {
            return mismatch(&json, field, "an integer", faults);
        };
        match number.as_u64() {
            Some(value) => Some(Self::try_from(value).unwrap_or(Self::MAX)),
            // Negative and fractional numbers: zero lets the field's own rule name its bounds.
            None if number.is_i64() => Some(0),
            None => {
                faults.push(field, format!("must be an integer, got {number}"));
                None
            }
        }
    }
}

impl FromJson for Vec<String> {
    fn from_json(json: Json, field: &str, faults: &mut Faults) -> Option<Self> {
        let Json::Array(items) = json else {
            return mismatch(&json, field, "an array of strings", faults);
        };
        let texts: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(i, item)| String::from_json(item, &format!("{field}[{i}]"), faults))
            .collect();
        texts.into_iter().collect()
    }
}

impl FromJson for Parameters {
    fn from_json(json: Json, field: &str, faults: &mut Faults) -> Option<Self> {
        let Json::Object(entries) = json else {
            return mismatch(&json, field, "an object of numbers", faults);
        };
        let mut parameters = Self::new();
        let mut whole = true;
        for (name, value) in entries {
            let place = format!("{field}.{}", shown(&name));
            match value {
                Json::Number(number) => {
                    let number: Number = number;
                    if parameters.insert(name, number).is_some() {
                        faults.push(place, "must not appear more than once");
                        whole = false;
                    }
                }
                other => {
                    faults.push(place, format!("must be a number, got {}", other.kind()));
                    whole = false;
                }
            }
        }
        whole.then_some(parameters)
    }
}
