//! A value of a source with its place, in the order of the source.

use std::fmt::Write as _;

use crate::agent_file::Place;

/// A value and its place.
#[derive(Debug, Clone)]
pub struct Node {
    pub place: Place,
    pub value: Value,
}

/// A value. A number is kept as it was written.
#[derive(Debug, Clone)]
pub enum Value {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map with its value.
#[derive(Debug, Clone)]
pub struct Entry {
    pub key: String,
    pub place: Place,
    pub node: Node,
}

/// The order of the keys of a map does not count, nor how a number is written.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::List(one), Self::List(other)) => one == other,
            (Self::Number(one), Self::Number(other)) => {
                one == other
                    || matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one == other)
            }
            (Self::Map(one), Self::Map(other)) => {
                one.len() == other.len() && one.iter().all(|entry| find(other, &entry.key) == Some(&entry.node))
            }
            _ => false,
        }
    }
}

/// Two values are the same wherever they stand.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.node == other.node
    }
}

impl Entry {
    pub fn new(key: impl Into<String>, node: Node) -> Self {
        Self {
            key: key.into(),
            place: node.place,
            node,
        }
    }
}

impl Node {
    pub fn at(place: Place, value: Value) -> Self {
        Self { place, value }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::at(Place::START, Value::Text(text.into()))
    }

    pub fn number(number: u64) -> Self {
        Self::at(Place::START, Value::Number(number.to_string()))
    }

    pub fn list(items: Vec<Self>) -> Self {
        Self::at(Place::START, Value::List(items))
    }

    pub fn map(entries: Vec<Entry>) -> Self {
        Self::at(Place::START, Value::Map(entries))
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    pub fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    pub fn get(&self, key: &str) -> Option<&Self> {
        find(self.entries(), key)
    }

    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Self::as_text)
    }

    pub fn entries_mut(&mut self) -> Option<&mut Vec<Entry>> {
        match &mut self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of a key, which is made as an empty map where it is absent. `None` where this is no map.
    pub fn map_at(&mut self, key: &str) -> Option<&mut Self> {
        let entries = self.entries_mut()?;
        let at = match entries.iter().position(|entry| entry.key == key) {
            Some(at) => at,
            None => {
                entries.push(Entry::new(key, Self::map(Vec::new())));
                entries.len() - 1
            }
        };
        Some(&mut entries[at].node)
    }

    /// A scalar as the text that was written; `None` for null, lists and maps.
    pub fn scalar(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) | Value::Number(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            _ => None,
        }
    }

    /// The value as JSON on one line.
    pub fn json(&self) -> String {
        let mut json = String::new();
        self.write(&mut json, None);
        json
    }

    /// The value as JSON with an indentation of two spaces, and a line feed.
    pub fn pretty(&self) -> String {
        let mut json = String::new();
        self.write(&mut json, Some(0));
        json + "\n"
    }

    fn write(&self, json: &mut String, indent: Option<usize>) {
        match &self.value {
            Value::Null => json.push_str("null"),
            Value::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
            Value::Number(text) => json.push_str(text),
            Value::Text(text) => quote(json, text),
            Value::List(items) => group(json, indent, ['[', ']'], items, |json, item, inner| {
                item.write(json, inner)
            }),
            Value::Map(entries) => group(json, indent, ['{', '}'], entries, |json, entry, inner| {
                quote(json, &entry.key);
                json.push_str(if inner.is_some() { ": " } else { ":" });
                entry.node.write(json, inner);
            }),
        }
    }
}

/// Takes the value of a key out.
pub fn take(entries: &mut Vec<Entry>, key: &str) -> Option<Node> {
    let at = entries.iter().position(|entry| entry.key == key)?;
    Some(entries.remove(at).node)
}

/// Sets the value of a key.
pub fn put(entries: &mut Vec<Entry>, key: &str, node: Node) {
    match entries.iter_mut().find(|entry| entry.key == key) {
        Some(entry) => entry.node = node,
        None => entries.push(Entry::new(key, node)),
    }
}

/// The value of a key.
pub fn find<'a>(entries: &'a [Entry], key: &str) -> Option<&'a Node> {
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
}

fn quote(json: &mut String, text: &str) {
    json.push_str(&serde_json::Value::from(text).to_string());
}

fn group<T>(
    json: &mut String,
    indent: Option<usize>,
    [open, close]: [char; 2],
    items: &[T],
    write: impl Fn(&mut String, &T, Option<usize>),
) {
    json.push(open);
    let inner = indent.map(|indent| indent + 1);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            json.push(',');
        }
        new_line(json, inner);
        write(json, item, inner);
    }
    if !items.is_empty() {
        new_line(json, indent);
    }
    json.push(close);
}

fn new_line(json: &mut String, indent: Option<usize>) {
    if let Some(indent) = indent {
        let _ = write!(json, "\n{:width$}", "", width = indent * 2);
    }
}
