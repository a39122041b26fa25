//! Bodies of requests: each is declared once, by [`body!`](declare).
//!
//! Reading reports every fault in one message, in the order of the fields. A value that was made in Rust is checked by
//! the same rules.

pub(crate) mod change;
pub(crate) mod create;
mod declare;
mod field;
mod rule;
#[cfg(feature = "schema")]
pub(crate) mod schema;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;

pub(crate) use self::declare::{body, field_type, name, readable, record, rule, schema};
pub(crate) use self::field::{Change, Field};
pub(crate) use self::rule::Rule;
pub(crate) use self::value::{FromJson, from_text, list_from_json, mismatch, serde_as_text};
use crate::json::{self, Json};
use crate::validate::{Faults, Invalid, nearest, shown};

/// The body of a request.
pub(crate) trait Body: Sized {
    /// The fields that a body may have.
    const FIELDS: &'static [&'static str];

    /// Fields of the resource that a body must not name.
    const READ_ONLY: &'static [&'static str];

    /// Reads every field. `None` when a required one is missing or invalid; the fault is noted.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;

    /// Notes every fault, in the order of the fields.
    fn check(&self, faults: &mut Faults);
}

/// Reads a body from its JSON text.
pub(crate) fn from_json<T: Body>(bytes: &[u8], max_persona: u32) -> Result<T, Invalid> {
    let mut fields = Fields::parse(bytes)?;
    fields.faults = Faults::within(max_persona);
    let body = T::read(&mut fields);
    fields.finish::<T>(body)
}

/// Reads an object within a body, whose faults are noted under its place.
pub(crate) fn from_entry<T: Body>(json: Json<'_>, place: &dyn Display, faults: &mut Faults) -> Option<T> {
    let Json::Object(entries) = json else {
        faults.push(place, format_args!("must be an object, got {}", json.kind()));
        return None;
    };
    let mut fields = Fields::of(entries);
    fields.faults = faults.of_part();
    let body = T::read(&mut fields);
    fields.refuse_others::<T>();
    faults.add_under(place, fields.faults);
    body
}

/// Checks a body that was made in Rust.
pub(crate) fn check<T: Body>(body: &T) -> Result<(), Invalid> {
    let mut faults = Faults::default();
    body.check(&mut faults);
    faults.into_result()
}

/// The fields of a JSON object, taken one by one, with the faults that were found.
pub(crate) struct Fields<'a> {
    /// A field that was taken is `None`.
    entries: Vec<(Cow<'a, str>, Option<Json<'a>>)>,
    faults: Faults,
}

/// What a body has under the name of a field.
pub(crate) enum Given<T> {
    Absent,
    Null,
    Value(T),
    /// Given twice, of the wrong type or against the rule: the fault is noted.
    Wrong,
}

impl<'a> Fields<'a> {
    fn of(entries: json::Entries<'a>) -> Self {
        Self {
            entries: entries.into_iter().map(|(name, value)| (name, Some(value))).collect(),
            faults: Faults::default(),
        }
    }

    /// Parses a text that must be a JSON object.
    fn parse(bytes: &'a [u8]) -> Result<Self, Invalid> {
        match json::parse(bytes)? {
            Json::Object(entries) => Ok(Self::of(entries)),
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

    fn take(&mut self, name: &str) -> Given<Json<'a>> {
        let mut under = self.entries.iter_mut().filter(|(key, _)| key == name);
        let Some((_, value)) = under.next() else {
            return Given::Absent;
        };
        let value = value.take();
        if under.fold(false, |twice, (_, value)| value.take().is_some() || twice) {
            self.faults.push(name, "must not appear more than once");
            return Given::Wrong;
        }
        match value {
            None => Given::Absent,
            Some(Json::Null) => Given::Null,
            Some(value) => Given::Value(value),
        }
    }

    /// Checks whether a field may be given, or left out, next to the value of another field.
    pub(crate) fn fits<T: Copy>(&mut self, name: &str, other: &Option<T>, fits: fn(T, &str, bool, &mut Faults)) {
        if let Some(other) = *other {
            fits(other, name, self.is_given(name), &mut self.faults);
        }
    }

    /// Applies a rule that concerns several fields.
    pub(crate) fn whole<T>(&mut self, body: &T, check: fn(&T, &mut Faults)) {
        check(body, &mut self.faults);
    }

    fn fault(&mut self, name: &str, rule: &str) {
        self.faults.push(name, rule);
    }

    /// Takes a field and checks its value by a rule.
    fn read<R: Rule>(&mut self, name: &str) -> Given<R::Value> {
        let json = match self.take(name) {
            Given::Value(json) => json,
            Given::Absent => return Given::Absent,
            Given::Null => return Given::Null,
            Given::Wrong => return Given::Wrong,
        };
        let Some(value) = R::Value::from_json(json, &name, &mut self.faults) else {
            return Given::Wrong;
        };
        R::check(&value, name, &mut self.faults);
        Given::Value(value)
    }

    /// A field that must not be null. `None` where it is, or is wrong: the fault is noted.
    fn not_null<R: Rule>(&mut self, name: &str) -> Option<Option<R::Value>> {
        match self.read::<R>(name) {
            Given::Value(value) => Some(Some(value)),
            Given::Absent => Some(None),
            Given::Null => {
                self.fault(name, "must not be null");
                None
            }
            Given::Wrong => None,
        }
    }

    /// Reports fields that were not taken, and returns the value when there are no faults.
    fn finish<T: Body>(mut self, value: Option<T>) -> Result<T, Invalid> {
        self.refuse_others::<T>();
        self.faults.into_result()?;
        value.ok_or_else(|| Invalid::new("body", "is incomplete"))
    }

    /// Notes a fault for each field that was not taken; one that is given several times has one fault.
    fn refuse_others<T: Body>(&mut self) {
        // A body can have a hundred thousand unknown fields.
        let mut suggestions = 0..5;
        let mut named = HashSet::new();
        let entries = std::mem::take(&mut self.entries);
        for (name, _) in entries.iter().filter(|(_, value)| value.is_some()) {
            if !named.insert(name) {
                continue;
            }
            if T::READ_ONLY.contains(&&**name) {
                self.faults.push(shown(name), "is read-only");
                continue;
            }
            let suggestion = suggestions.next().filter(|_| self.faults.has_room());
            match suggestion.and_then(|_| nearest(name, T::FIELDS)) {
                Some(meant) => {
                    let rule = format_args!("is not a known field (did you mean {meant}?)");
                    self.faults.push(shown(name), rule);
                }
                None => self.faults.push(shown(name), "is not a known field"),
            }
        }
    }
}
