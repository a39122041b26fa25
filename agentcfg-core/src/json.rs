//! JSON as it was written: a tree that keeps duplicate keys, so that they can be refused and named.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::validate::Invalid;

/// The entries of an object, in their order.
pub(crate) type Entries<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// A JSON value whose objects keep every entry in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
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
            Self::Bool(value) => Json::Bool(value),
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

    /// The value without its spelling. `None` for a duplicate key and for a number that no finite double holds.
    fn into_value(self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(number) => Value::Number(number),
            Self::Huge => return None,
            Self::String(text) => Value::String(text.into_owned()),
            Self::Array(items) => Value::Array(items.into_iter().map(Json::into_value).collect::<Option<_>>()?),
            Self::Object(entries) => {
                let mut members = Map::new();
                for (name, value) in entries {
                    if members.insert(name.into_owned(), value.into_value()?).is_some() {
                        return None;
                    }
                }
                Value::Object(members)
            }
        })
    }

    /// What kind of value this is, with its article.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) | Self::Huge => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads an object that can be read in one way only, such as the claims of a token.
///
/// Two readers that take different ones of two members of the same name would see two different tokens.
pub(crate) fn object(text: &[u8]) -> Result<Map<String, Value>, &'static str> {
    match parse(text).ok().and_then(Json::into_value) {
        Some(Value::Object(members)) => Ok(members),
        Some(_) => Err("is no JSON object"),
        None => Err("is no JSON that can be read in one way only"),
    }
}

/// Reads a JSON text that can be read in one way only: a name given twice in an object is refused.
///
/// # Errors
///
/// [`Invalid`] with the fault of the text.
///
/// ```
/// use agentcfg_core::validate::read_json;
/// assert_eq!(read_json(br#"{"a": [1]}"#)?["a"][0], 1);
/// assert!(read_json(br#"{"a": 1, "a": 2}"#).is_err());
/// # Ok::<(), agentcfg_core::validate::Invalid>(())
/// ```
pub fn read_json(text: &[u8]) -> Result<Value, Invalid> {
    let once = || {
        Invalid::new(
            "body",
            "must name each member of an object once, and have numbers that a double holds",
        )
    };
    parse(text)?.into_value().ok_or_else(once)
}

/// Parses a JSON text. Duplicate keys stay in the tree.
pub(crate) fn parse(bytes: &[u8]) -> Result<Json<'_>, Invalid> {
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

/// How many arrays and objects may lie within each other: as many as the parser takes.
const MAX_LEVELS: usize = 127;

fn not_json(error: &serde_json::Error) -> Invalid {
    let error = error.to_string();
    match error.starts_with("recursion limit exceeded") {
        true => Invalid::new("body", format!("must be at most {MAX_LEVELS} levels deep")),
        false => Invalid::new("body", format!("must be valid JSON: {error}")),
    }
}

fn read<'a>(text: &'a str, huge: &[usize]) -> serde_json::Result<Json<'a>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let (count, values) = (Cell::new(0), Cell::new(0));
    let seed = Seed {
        huge,
        count: &count,
        values: &values,
    };
    let json = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(json)
}

/// Reads a text with numbers that no finite double holds, at which the parser would stop: each is replaced by a short
/// number, and identified by its index among the numbers of the text.
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

/// The number that a text begins with, or the invalid text in its place.
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

/// The `DeserializeSeed` of [`Json`], with counters that all values of a text share.
#[derive(Clone, Copy)]
struct Seed<'a> {
    /// The indices of the numbers that replace one that no finite double holds.
    huge: &'a [usize],
    /// How many numbers were read.
    count: &'a Cell<usize>,
    /// How many elements and members were read.
    values: &'a Cell<usize>,
}

/// The greatest number of elements and members of a text. A value takes many times the memory of its text, so a text of
/// some megabytes could take a gigabyte.
const MAX_VALUES: usize = 1_000_000;

impl Seed<'_> {
    /// Counts an element or a member, and fails above [`MAX_VALUES`].
    fn count_value<E: serde::de::Error>(self) -> Result<(), E> {
        let values = self.values.get() + 1;
        self.values.set(values);
        match values > MAX_VALUES {
            true => Err(E::custom(format_args!("more than {MAX_VALUES} elements and members"))),
            false => Ok(()),
        }
    }

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

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
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
            self.count_value()?;
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            self.count_value()?;
            let value = map.next_value_seed(self)?;
            entries.push((name.0, value));
        }
        Ok(Json::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_appears_twice_spoils_everything() {
        assert!(object(br#"{"a": 1, "b": {"a": [1, 2.5, -1, null, true]}}"#).is_ok());
        for text in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"a": 1, "\u0061": 1}"#,
            r#"{"b": [{"a": 1, "a": 2}]}"#,
            r#"{"a": 1e999}"#,
            r#"{"a": NaN}"#,
            r#"{"a": 1} {}"#,
            "[]",
            "1",
            "",
            "\u{feff}{}",
        ] {
            assert!(object(text.as_bytes()).is_err(), "{text}");
        }
        assert!(object(b"{\"a\": \"\xff\"}").is_err());
        let deep = format!("{}{}", "{\"a\":".repeat(500), "}".repeat(500));
        assert!(object(deep.as_bytes()).is_err());
    }
}
