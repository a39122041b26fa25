//! JSON as it was written: a tree that keeps duplicate keys, so that they can be refused by name.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use crate::validate::{Invalid, shown};

/// The entries of an object, in their order.
pub(super) type Entries<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// A JSON value whose objects keep every entry in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool,
    Number(Number),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Entries<'a>),
}

impl Json<'_> {
    /// What kind of value this is, with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number(_) => "a number",
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
    let path = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Seed(&path)
        .deserialize(&mut deserializer)
        .and_then(|json| deserializer.end().map(|()| json));
    value.map_err(|error| {
        let path: String = path.take().into_iter().rev().collect();
        if error.to_string().starts_with("number out of range") && !path.is_empty() {
            return Invalid::new(
                path.trim_start_matches('.'),
                "must be a number that a finite double can hold",
            );
        }
        Invalid::new("body", format!("must be valid JSON: {error}"))
    })
}

/// The name of an entry, which is copied only where the text has escapes in it.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Deserialises a value. When it fails, the steps to the place are noted, the innermost first.
struct Seed<'a>(&'a RefCell<Vec<String>>);

impl Seed<'_> {
    /// Notes the step that a failure was behind.
    fn behind<T, E>(&self, step: impl fmt::Display, result: Result<T, E>) -> Result<T, E> {
        if result.is_err() {
            self.0.borrow_mut().push(step.to_string());
        }
        result
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
        Ok(Json::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Json<'de>, E> {
        Number::from_f64(number)
            .map(Json::Number)
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
        loop {
            let next = seq.next_element_seed(Seed(self.0));
            let Some(item) = self.behind(format_args!("[{}]", items.len()), next)? else {
                break;
            };
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let value = map.next_value_seed(Seed(self.0));
            let value = self.behind(format_args!(".{}", shown(&name.0)), value)?;
            entries.push((name.0, value));
        }
        Ok(Json::Object(entries))
    }
}
