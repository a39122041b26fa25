//! JSON whose objects keep the order of their members, because descriptions are read from top to bottom.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderedJson {
    Object(Vec<(String, OrderedJson)>),
    Array(Vec<OrderedJson>),
    Leaf(Value),
}

impl OrderedJson {
    /// The value of a member of an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.members().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The value that a reference such as `#/components/schemas/Agent` leads to.
    pub fn resolve(&self, reference: &str) -> Option<&Self> {
        let path = reference.strip_prefix("#/")?;
        path.split('/').try_fold(self, |node, name| node.get(name))
    }

    /// The members of an object, in order; none for any other value.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
        let members = match self {
            Self::Object(members) => members.as_slice(),
            _ => &[],
        };
        members.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The items of an array; none for any other value.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Leaf(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The text of a member that is a string, else an empty text.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Self::as_str).unwrap_or_default()
    }
}

impl fmt::Display for OrderedJson {
    /// Writes the value as JSON: on one line, or with `{:#}` with a line for each member of an object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = f.alternate().then_some(0);
        self.write(f, indent)
    }
}

impl OrderedJson {
    /// Writes the value. With an indentation, each member of an object and each object in an array has a line of its
    /// own.
    fn write(&self, f: &mut fmt::Formatter<'_>, indent: Option<usize>) -> fmt::Result {
        let (open, close, is_spread) = match self {
            Self::Leaf(value) => return write!(f, "{value}"),
            Self::Object(members) => ('{', '}', !members.is_empty()),
            Self::Array(items) => ('[', ']', items.iter().any(|item| matches!(item, Self::Object(_)))),
        };
        let inner = indent.filter(|_| is_spread).map(|indent| indent + 2);
        let members = self.members().map(|(name, value)| (Some(name), value));
        let items = self.items().iter().map(|item| (None, item));
        write!(f, "{open}")?;
        for (at, (name, value)) in members.chain(items).enumerate() {
            match (at, inner) {
                (0, None) => {}
                (_, None) => f.write_str(", ")?,
                (0, Some(inner)) => write!(f, "\n{:inner$}", "")?,
                (_, Some(inner)) => write!(f, ",\n{:inner$}", "")?,
            }
            if let Some(name) = name {
                write!(f, "{}: ", Value::from(name))?;
            }
            value.write(f, inner.or(indent))?;
        }
        if let (Some(_), Some(indent)) = (inner, indent) {
            write!(f, "\n{:indent$}", "")?;
        }
        write!(f, "{close}")
    }
}

impl OrderedJson {
    /// An object without members.
    pub const fn object() -> Self {
        Self::Object(Vec::new())
    }

    /// Reads a JSON text.
    pub fn parse(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
    }

    /// A reference to a component of the document.
    pub fn reference(kind: &str, name: &str) -> Self {
        Self::object().with("$ref", format!("#/components/{kind}/{name}"))
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OrderedJson>) -> Self {
        self.add(name, value);
        self
    }

    /// Adds a member if there is a value.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl Into<OrderedJson>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a member.
    pub fn add(&mut self, name: &str, value: impl Into<OrderedJson>) {
        match self {
            Self::Object(members) => members.push((name.to_owned(), value.into())),
            _ => panic!("{name} is added to what is no object"),
        }
    }

    /// The value of a member, which is added if it is absent.
    pub fn entry(&mut self, name: &str, new: impl FnOnce() -> OrderedJson) -> &mut Self {
        let Self::Object(members) = self else {
            panic!("{name} is looked up in what is no object")
        };
        let at = members.iter().position(|(known, _)| known == name);
        let at = at.unwrap_or_else(|| {
            members.push((name.to_owned(), new()));
            members.len() - 1
        });
        &mut members[at].1
    }

    /// The object without one member.
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        match self {
            Self::Object(members) => Self::Object(members.into_iter().filter(|(known, _)| known != name).collect()),
            other => other,
        }
    }
}

impl From<&str> for OrderedJson {
    fn from(text: &str) -> Self {
        Self::Leaf(text.into())
    }
}

impl From<String> for OrderedJson {
    fn from(text: String) -> Self {
        Self::Leaf(text.into())
    }
}

impl From<u64> for OrderedJson {
    fn from(number: u64) -> Self {
        Self::Leaf(number.into())
    }
}

impl From<bool> for OrderedJson {
    fn from(value: bool) -> Self {
        Self::Leaf(value.into())
    }
}

impl<T: Into<OrderedJson>> From<Vec<T>> for OrderedJson {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl Serialize for OrderedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
            Self::Array(items) => items.serialize(serializer),
            Self::Leaf(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for OrderedJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = OrderedJson;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedJson, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(OrderedJson::Object(members))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OrderedJson, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(OrderedJson::Array(items))
            }

            fn visit_unit<E>(self) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Leaf(Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Leaf(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Leaf(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Leaf(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Leaf(value.into()))
            }

            fn visit_str<E>(self, value: &str) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Leaf(value.into()))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_is_kept() {
        let text = r#"{"b": 1, "a": [{"c": null}, {}], "d": ["x", true], "e": {}, "\"": -0.5}"#;
        let node = OrderedJson::parse(text);
        assert_eq!(node.to_string(), text);
        let lines = "{\n  \"b\": 1,\n  \"a\": [\n    {\n      \"c\": null\n    },\n    {}\n  ],\n  \"d\": [\"x\", true],\n  \"e\": {},\n  \"\\\"\": -0.5\n}";
        assert_eq!(format!("{node:#}"), lines);
    }
}
