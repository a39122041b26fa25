//! JSON whose objects keep the order in which their members were added, since a description is read from top to bottom.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
    Leaf(Value),
}

impl Node {
    /// An object without members.
    pub(super) const fn object() -> Self {
        Self::Object(Vec::new())
    }

    /// Reads a JSON text.
    pub(super) fn parse(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
    }

    /// A reference to a component.
    pub(super) fn reference(kind: &str, name: &str) -> Self {
        Self::object().with("$ref", format!("#/components/{kind}/{name}"))
    }

    /// Adds a member.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: impl Into<Node>) -> Self {
        self.add(name, value);
        self
    }

    /// Adds a member, if there is a value.
    #[must_use]
    pub(super) fn with_some(self, name: &str, value: Option<impl Into<Node>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a member.
    pub(super) fn add(&mut self, name: &str, value: impl Into<Node>) {
        match self {
            Self::Object(members) => members.push((name.to_owned(), value.into())),
            _ => panic!("{name} is added to what is no object"),
        }
    }

    /// A member of an object.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// A member of an object, which is made where there is none.
    pub(super) fn entry(&mut self, name: &str, new: impl FnOnce() -> Node) -> &mut Self {
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
    pub(super) fn without(self, name: &str) -> Self {
        match self {
            Self::Object(members) => Self::Object(members.into_iter().filter(|(known, _)| known != name).collect()),
            other => other,
        }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Leaf(text.into())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::Leaf(text.into())
    }
}

impl From<u64> for Node {
    fn from(number: u64) -> Self {
        Self::Leaf(number.into())
    }
}

impl From<bool> for Node {
    fn from(value: bool) -> Self {
        Self::Leaf(value.into())
    }
}

impl<T: Into<Node>> From<Vec<T>> for Node {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl Serialize for Node {
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

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Node::Object(members))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Node::Array(items))
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Leaf(Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Leaf(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Leaf(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Leaf(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Leaf(value.into()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Node, E> {
                Ok(value.into())
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
