//! Reading the body of a request: every fault of it in one message, in the order of the fields.
//!
//! The rules for values are those of [`validate`](crate::validate), so that a record made in Rust
//! and one read from JSON get the same answer. (Interface specification, *Endpoints*.)

mod json;
mod requests;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;

use self::json::Json;
use self::value::FromJson;
use crate::model::Patch;
use crate::validate::{Faults, Invalid, shown};

/// The fields of a JSON object, taken one by one, with the faults found on the way.
struct Fields<'a> {
    /// What was taken is gone from its place.
    entries: Vec<(Cow<'a, str>, Option<Json<'a>>)>,
    faults: Faults,
}

/// What stands under a name.
enum Found<'a> {
    Absent,
    Null,
    Value(Json<'a>),
    /// More than once: that is already a fault.
    Twice,
}

impl<'a> Fields<'a> {
    /// Reads a JSON object.
    fn parse(bytes: &'a [u8]) -> Result<Self, Invalid> {
        match json::parse(bytes)? {
            Json::Object(entries) => Ok(Self {
                entries: entries.into_iter().map(|(name, value)| (name, Some(value))).collect(),
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
            .any(|(key, value)| key == name && value.as_ref().is_some_and(|value| *value != Json::Null))
    }

    fn take(&mut self, name: &str) -> Found<'a> {
        let mut under = self.entries.iter_mut().filter(|(key, _)| key == name);
        let Some((_, value)) = under.next() else {
            return Found::Absent;
        };
        let value = value.take();
        if under.fold(false, |twice, (_, value)| value.take().is_some() || twice) {
            self.faults.push(name, "must not appear more than once");
            return Found::Twice;
        }
        match value {
            None => Found::Absent,
            Some(Json::Null) => Found::Null,
            Some(value) => Found::Value(value),
        }
    }

    fn read<T: FromJson>(&mut self, name: &str, json: Json<'a>, rule: impl Fn(&T, &mut Faults)) -> Option<T> {
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
        let entries = std::mem::take(&mut self.entries);
        for (name, _) in entries.into_iter().filter(|(_, value)| value.is_some()) {
            let rule = if read_only.contains(&&*name) {
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
