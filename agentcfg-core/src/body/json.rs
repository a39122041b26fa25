//! JSON as it was written: a tree that keeps duplicate keys, so that they can be refused by name.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use crate::validate::Invalid;

/// The entries of an object, in their order.
pub(crate) type Entries<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// A JSON value whose objects keep every entry in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool,
    Number(Number),
    /// A number that no finite double holds.
    Huge,
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Entries<'a>),
}

impl Json<'_> {
    fn into_owned(self) -> Json<'static> {
        match self {
            Self::Null => Json::Null,
            Self::Bool => Json::Bool,
            Self::Number(number) => Json::Number(number),
            Self::Huge => Json::Huge,
            Self::String(text) => Json::String(Cow::Owned(text.into_owned())),
            Self::Array(items) => Json::Array(items.into_iter().map(Json::into_owned).collect()),
            Self::Object(entries) => {
                let owned =
                    |(name, value): (Cow<'_, str>, Json<'_>)| (Cow::Owned(name.into_owned()), value.into_owned());
                Json::Object(entries.into_iter().map(owned).collect())
            }
        }
    }

    /// What kind of value this is, with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number(_) | Self::Huge => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads one JSON text.
pub(super) fn parse(bytes: &[u8]) -> Result<Json<'_>, Invalid> {
    if bytes.is_empty() {
        return Err(Invalid::new("body", "must be a JSON object, got nothing"));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(Invalid::new("body", "must not start with a byte order mark"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Invalid::new("body", "must be UTF-8"))?;
    match read(text, &[]) {
        Err(error) if error.to_string().starts_with("number out of range") => read_with_huge(text),
        other => other.map_err(|error| not_json(&error)),
    }
}

fn not_json(error: &serde_json::Error) -> Invalid {
    Invalid::new("body", format!("must be valid JSON: {error}"))
}

fn read<'a>(text: &'a str, huge: &[usize]) -> serde_json::Result<Json<'a>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let count = Cell::new(0);
    let json = Seed { huge, count: &count }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(json)
}

/// Reads a text with numbers that no finite double holds, at which the parser would stop: each is read as a short one
/// in its place, and known again by how many numbers there are before it.
fn read_with_huge(text: &str) -> Result<Json<'static>, Invalid> {
    let mut bytes = text.as_bytes().to_vec();
    let mut huge = Vec::new();
    let (mut at, mut count) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'"' => string_length(&bytes[at..]),
            b'-' | b'0'..=b'9' => {
                let number = number(&mut bytes[at..]);
                if is_huge(number) {
                    huge.push(count);
                    number.fill(b' ');
                    number[0] = b'0';
                }
                count += 1;
                number.len()
            }
            _ => 1,
        };
    }
    let text = String::from_utf8(bytes).map_err(|_| Invalid::new("body", "must be UTF-8"))?;
    read(&text, &huge)
        .map(Json::into_owned)
        .map_err(|error| not_json(&error))
}

/// The number that a text begins with, or what is there in place of one.
fn number(text: &mut [u8]) -> &mut [u8] {
    let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
    let length = text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len());
    &mut text[..length]
}

fn is_huge(number: &[u8]) -> bool {
    let number = std::str::from_utf8(number).map(str::parse::<f64>);
    matches!(number, Ok(Ok(number)) if number.is_infinite())
}

/// The length of the string that a text begins with.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// The name of an entry, which is copied only where the text has escapes in it.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Deserialises a value.
#[derive(Clone, Copy)]
struct Seed<'a> {
    /// Which numbers of the text stand for one that no finite double holds.
    huge: &'a [usize],
    /// How many numbers were read.
    count: &'a Cell<usize>,
}

impl Seed<'_> {
    fn number<'de>(self, number: Number) -> Json<'de> {
        let count = self.count.replace(self.count.get() + 1);
        match self.huge.binary_search(&count) {
            Ok(_) => Json::Huge,
            Err(_) => Json::Number(number),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(self.number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json<'de>, E> {
        Ok(self.number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Json<'de>, E> {
        Number::from_f64(number)
            .map(|number| self.number(number))
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let value = map.next_value_seed(self)?;
            entries.push((name.0, value));
        }
        Ok(Json::Object(entries))
    }
}
