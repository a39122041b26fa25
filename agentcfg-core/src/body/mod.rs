//! Reading the body of a request: every fault of it in one message, in the order of the fields.
//!
//! The rules for values are those of [`validate`](crate::validate), so that a record made in Rust
//! and one read from JSON get the same answer. (Interface specification, *Endpoints*.)

mod json;
mod requests;
#[cfg(test)]
mod tests;
mod value;

use self::json::Json;
use self::value::FromJson;
use crate::model::Patch;
use crate::validate::{Faults, Invalid, shown};

/// The fields of a JSON object, taken one by one, with the faults found on the way.
struct Fields {
    entries: Vec<(String, Json)>,
    faults: Faults,
}

/// What stands under a name.
enum Found {
    Absent,
    Null,
    Value(Json),
    /// More than once: that is already a fault.
    Twice,
}

impl Fields {
    /// Reads a JSON object.
    fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        match json::parse(bytes)? {
            Json::Object(entries) => Ok(Self {
                entries,
                faults: Faults::default(),
            }),
            other => Err(Invalid::new(
                "body",
                format!("must be a JSON object, got {}", other.kind()),
            )),
        }
    }

    /// Whether the field is there and not null.
    fn is_given(&self, name: &str) -> bool {
        self.entries
            .iter()
            .any(|(key, value)| key == name && *value != Json::Null)
    }

    fn take(&mut self, name: &str) -> Found {
        let mut found = Found::Absent;
        let mut times = 0;
        self.entries.retain_mut(|(key, value)| {
            if key != name {
                return true;
            }
            times += 1;
            found = match std::mem::replace(value, Json::Null) {
                Json::Null => Found::Null,
                value => Found::Value(value),
            };
            false
        });
        if times > 1 {
            self.faults.push(name, "must not appear more than once");
            return Found::Twice;
        }
        found
    }

    fn read<T: FromJson>(&mut self, name: &str, json: Json, rule: impl Fn(&T, &mut Faults)) -> Option<T> {
        let value = T::from_json(json, &name, &mut self.faults)?;
        rule(&value, &mut self.faults);
        Some(value)
    }

    /// A field that must be there.
    fn required<T: FromJson>(&mut self, name: &str, rule: impl Fn(&T, &mut Faults)) -> Option<T> {
        match self.take(name) {
            Found::Absent => {
                self.faults.push(name, "is required");
                None
            }
            Found::Null => {
                self.faults.push(name, "must not be null");
                None
            }
            Found::Twice => None,
            Found::Value(json) => self.read(name, json, rule),
        }
    }

    /// A field that may be left out but not be null.
    fn optional<T: FromJson>(&mut self, name: &str, rule: impl Fn(&T, &mut Faults)) -> Option<T> {
        match self.take(name) {
            Found::Absent | Found::Twice => None,
            Found::Null => {
                self.faults.push(name, "must not be null");
                None
            }
            Found::Value(json) => self.read(name, json, rule),
        }
    }

    /// A field that may be left out, or be null and mean the same.
    fn nullable<T: FromJson>(&mut self, name: &str, rule: impl Fn(&T, &mut Faults)) -> Option<T> {
        match self.patch(name, rule) {
            Patch::Set(value) => Some(value),
            Patch::Absent | Patch::Null => None,
        }
    }

    /// A nullable field of a partial update.
    fn patch<T: FromJson>(&mut self, name: &str, rule: impl Fn(&T, &mut Faults)) -> Patch<T> {
        match self.take(name) {
            Found::Absent | Found::Twice => Patch::Absent,
            Found::Null => Patch::Null,
            Found::Value(json) => self.read(name, json, rule).map_or(Patch::Absent, Patch::Set),
        }
    }

    /// Refuses what was not taken, and gives the value when nothing was wrong.
    fn finish<T>(mut self, read_only: &[&str], value: Option<T>) -> Result<T, Invalid> {
        for (name, _) in std::mem::take(&mut self.entries) {
            let rule = if read_only.contains(&name.as_str()) {
                "is read-only"
            } else {
                "is not a known field"
            };
            self.faults.push(shown(&name), rule);
        }
        self.faults.into_result()?;
        value.ok_or_else(|| Invalid::new("body", "is incomplete"))
    }
}
