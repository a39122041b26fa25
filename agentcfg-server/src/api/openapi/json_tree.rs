//! Short ways to build and read the JSON of a description. Objects keep the order of their members, because descriptions
//! are read from top to bottom.

use serde_json::{Value, json};

/// Reads a JSON text that is part of this program.
pub(super) fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
}

/// An object without members.
pub(super) fn object() -> Value {
    json!({})
}

/// A reference to a component of the document.
pub(super) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// What this module adds to a JSON value.
pub(super) trait JsonTree {
    /// The value that a reference such as `#/components/schemas/Agent` leads to.
    fn resolve(&self, reference: &str) -> Option<&Value>;

    /// The members of an object, in order; none for any other value.
    fn members(&self) -> impl Iterator<Item = (&str, &Value)>;

    /// The items of an array; none for any other value.
    fn items(&self) -> &[Value];

    /// The text of a member that is a string, else an empty text.
    fn text(&self, name: &str) -> &str;

    /// The object with one member more.
    #[must_use]
    fn with(self, name: &str, value: impl Into<Value>) -> Value;

    /// The object with one member more, if there is a value.
    #[must_use]
    fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Value;

    /// The value of a member, which is added if it is absent.
    fn entry(&mut self, name: &str, new: impl FnOnce() -> Value) -> &mut Value;
}

impl JsonTree for Value {
    fn resolve(&self, reference: &str) -> Option<&Value> {
        self.pointer(reference.strip_prefix('#')?)
    }

    fn members(&self) -> impl Iterator<Item = (&str, &Value)> {
        let members = self.as_object().into_iter().flatten();
        members.map(|(name, value)| (name.as_str(), value))
    }

    fn items(&self) -> &[Value] {
        self.as_array().map_or(&[], Vec::as_slice)
    }

    fn text(&self, name: &str) -> &str {
        self[name].as_str().unwrap_or_default()
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Value {
        self[name] = value.into();
        self
    }

    fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Value {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    fn entry(&mut self, name: &str, new: impl FnOnce() -> Value) -> &mut Value {
        let Self::Object(members) = self else {
            panic!("{name} is looked up in what is no object")
        };
        members.entry(name).or_insert_with(new)
    }
}
