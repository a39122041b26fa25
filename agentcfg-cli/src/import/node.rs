//! A value of a source with its place: JSON, with comments too, YAML and TOML, in the order of the source.

use std::fmt::Write as _;
use std::path::Path;

use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, ast};

use crate::agent_file::fault_places::number;
use crate::agent_file::yaml::{self, Yaml};
use crate::agent_file::{Place, Problem};

/// The greatest depth of a value. A definition has less.
const MAX_DEPTH: usize = 64;

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

/// Reads JSON; comments and commas after the last value are allowed.
pub fn from_json(file: &Path, text: &str) -> Result<Node, Problem> {
    let options = ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
        ..ParseOptions::default()
    };
    let mut places = Places::new(text);
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        let message = format!("must be valid JSON: {}", error.kind());
        Problem::new(file, places.place(error.range().start), message)
    })?;
    match parsed.value {
        Some(value) => of_json(file, value, &mut places, 0),
        None => Err(Problem::of(file, "must be valid JSON: there is no value")),
    }
}

fn of_json(file: &Path, value: ast::Value<'_>, places: &mut Places<'_>, depth: usize) -> Result<Node, Problem> {
    let place = places.place(value.range().start);
    too_deep(file, place, depth)?;
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.into_owned()),
        ast::Value::Array(array) => {
            let items = array.elements.into_iter();
            Value::List(
                items
                    .map(|item| of_json(file, item, places, depth + 1))
                    .collect::<Result<_, _>>()?,
            )
        }
        ast::Value::Object(object) => {
            let mut entries = Vec::new();
            for property in object.properties {
                let place = places.place(property.range.start);
                let key = property.name.into_string();
                let node = of_json(file, property.value, places, depth + 1)?;
                entries.push(Entry { key, place, node });
            }
            refuse_repeated(file, &entries)?;
            Value::Map(entries)
        }
    };
    Ok(Node { place, value })
}

/// Reads a text of YAML whose first line is this one of the file.
pub fn from_yaml(file: &Path, text: &str, first_line: usize) -> Result<Vec<Entry>, Problem> {
    let entries =
        yaml::parse(text, first_line).map_err(|malformed| Problem::new(file, malformed.place, malformed.message))?;
    let mut entries = of_entries(file, entries)?;
    // A block that ends with the text has no line feed at its end, but from the parser.
    if !text.ends_with(['\n', '"', '\'']) {
        end_with_text(entries.last_mut().map(|entry| &mut entry.node));
    }
    Ok(entries)
}

/// Removes the line feed at the end of the last scalar.
fn end_with_text(last: Option<&mut Node>) {
    match last.map(|node| &mut node.value) {
        Some(Value::Text(text)) if text.ends_with('\n') => {
            text.pop();
        }
        Some(Value::List(items)) => end_with_text(items.last_mut()),
        Some(Value::Map(entries)) => end_with_text(entries.last_mut().map(|entry| &mut entry.node)),
        _ => {}
    }
}

fn of_entries(file: &Path, entries: Vec<yaml::Entry>) -> Result<Vec<Entry>, Problem> {
    let of_entry = |entry: yaml::Entry| {
        Ok(Entry {
            key: entry.key,
            place: entry.place,
            node: of_yaml(file, entry.node)?,
        })
    };
    let entries: Vec<_> = entries.into_iter().map(of_entry).collect::<Result<_, _>>()?;
    refuse_repeated(file, &entries)?;
    Ok(entries)
}

fn of_yaml(file: &Path, node: yaml::Node) -> Result<Node, Problem> {
    let value = match node.value {
        Yaml::Scalar { text, is_plain: false } => Value::Text(text),
        Yaml::Scalar { text, is_plain: true } => match text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => Value::Null,
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            // Other writings of a number, such as 0x1f or 007, are kept as texts.
            _ => match number(&text).filter(|number| *number == text) {
                Some(number) => Value::Number(number),
                None => Value::Text(text),
            },
        },
        Yaml::List(items) => Value::List(
            items
                .into_iter()
                .map(|item| of_yaml(file, item))
                .collect::<Result<_, _>>()?,
        ),
        Yaml::Map(entries) => Value::Map(of_entries(file, entries)?),
    };
    Ok(Node::at(node.place, value))
}

/// Reads TOML.
pub fn from_toml(file: &Path, text: &str) -> Result<Vec<Entry>, Problem> {
    let mut places = Places::new(text);
    let table = toml::de::DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let message = format!("must be valid TOML: {}", error.message());
        Problem::new(file, places.place(at), message)
    })?;
    of_table(file, table.into_inner(), &mut places, 0)
}

fn of_table(
    file: &Path,
    table: toml::de::DeTable<'_>,
    places: &mut Places<'_>,
    depth: usize,
) -> Result<Vec<Entry>, Problem> {
    let mut pairs: Vec<_> = table.into_iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    let mut entries = Vec::new();
    for (key, value) in pairs {
        let place = places.place(key.span().start);
        let node = of_toml(file, value, places, depth + 1)?;
        entries.push(Entry {
            key: key.into_inner().into_owned(),
            place,
            node,
        });
    }
    Ok(entries)
}

fn of_toml(
    file: &Path,
    value: toml::Spanned<toml::de::DeValue<'_>>,
    places: &mut Places<'_>,
    depth: usize,
) -> Result<Node, Problem> {
    use toml::de::DeValue;

    let place = places.place(value.span().start);
    too_deep(file, place, depth)?;
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Value::Number(number.as_str().replace(['_', '+'], "")),
        DeValue::Integer(number) => Value::Text(number.to_string()),
        DeValue::Float(float) => {
            let text = float.as_str().replace(['_', '+'], "");
            match number(&text) {
                Some(number) => Value::Number(number),
                None => Value::Text(text),
            }
        }
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(time) => Value::Text(time.to_string()),
        DeValue::Array(items) => {
            let items = items.into_iter();
            Value::List(
                items
                    .map(|item| of_toml(file, item, places, depth + 1))
                    .collect::<Result<_, _>>()?,
            )
        }
        DeValue::Table(table) => Value::Map(of_table(file, table, places, depth)?),
    };
    Ok(Node { place, value })
}

fn too_deep(file: &Path, place: Place, depth: usize) -> Result<(), Problem> {
    match depth > MAX_DEPTH {
        true => Err(Problem::new(
            file,
            place,
            format!("must be at most {MAX_DEPTH} levels deep"),
        )),
        false => Ok(()),
    }
}

/// Refuses a key that appears twice, as every reader of the service does.
fn refuse_repeated(file: &Path, entries: &[Entry]) -> Result<(), Problem> {
    let mut lines = std::collections::HashMap::new();
    for entry in entries {
        if let Some(first) = lines.insert(entry.key.as_str(), entry.place.line) {
            let message = format!("{:?} must not appear more than once, see line {first}", entry.key);
            return Err(Problem::new(file, entry.place, message));
        }
    }
    Ok(())
}

/// Lines and columns of offsets that mostly grow, in one pass.
struct Places<'a> {
    text: &'a str,
    offset: usize,
    place: Place,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            place: Place::START,
        }
    }

    fn place(&mut self, offset: usize) -> Place {
        if offset < self.offset {
            (self.offset, self.place) = (0, Place::START);
        }
        let passed = self.text.get(self.offset..offset).unwrap_or_default();
        for c in passed.chars() {
            match c {
                '\n' => {
                    self.place = Place {
                        line: self.place.line + 1,
                        column: 1,
                    }
                }
                _ => self.place.column += 1,
            }
        }
        self.offset += passed.len();
        self.place
    }
}
