//! The body of a model call: what it names, and the agent's model and persona put in where it names none.
//!
//! The caller's text is never written anew. What is added is spliced into it, so that everything else arrives at the
//! provider byte for byte: the order of members, blanks, numbers that no type holds, even members that are there twice.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::de::{self, Deserializer, MapAccess};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::target::Format;
use crate::errors::Failure;

/// A body that has been read and not changed yet.
#[derive(Debug)]
pub struct Draft {
    body: Bytes,
    requested_model: Option<String>,
    /// Where the model goes, when the body names none.
    model: Option<Place>,
    /// Where the persona goes, when the body has none.
    persona: Option<Place>,
    /// Where new members go: behind the opening brace.
    opening: usize,
    is_empty: bool,
}

/// A place for something that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// The member of this name, which is not there.
    Member(&'static str),
    /// A value that stands for nothing.
    Null(Range<usize>),
    /// The beginning of the list of messages.
    Message { at: usize, is_only: bool },
}

impl Draft {
    /// Reads a body of a known format.
    ///
    /// # Errors
    ///
    /// 400 when it is no JSON object.
    pub fn read(format: Format, body: &Bytes) -> Result<Self, Failure> {
        let (text, members) = object(body)?;
        let persona = match format {
            Format::ChatCompletions => members.last("messages").and_then(|list| first_message(text, list)),
            Format::Responses => members.missing(text, "instructions"),
            Format::Messages => members.missing(text, "system"),
        };
        Ok(Self {
            body: body.clone(),
            requested_model: members.last("model").and_then(string),
            model: members.missing(text, "model"),
            persona,
            opening: text.find('{').map_or(0, |brace| brace + 1),
            is_empty: members.0.is_empty(),
        })
    }

    /// Takes a body of a format that is not known. It stays as it is; a model that it names is seen where it is JSON.
    pub fn opaque(body: &Bytes) -> Self {
        Self {
            body: body.clone(),
            requested_model: object(body)
                .ok()
                .and_then(|(_, members)| members.last("model").and_then(string)),
            model: None,
            persona: None,
            opening: 0,
            is_empty: true,
        }
    }

    /// The model that the body names.
    pub fn requested_model(&self) -> Option<&str> {
        self.requested_model.as_deref()
    }

    /// The body with the agent's model and persona where it has none of its own.
    pub fn fill(self, model: Option<&str>, persona: Option<&str>) -> Bytes {
        let mut members = Vec::new();
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for (place, text) in [(&self.model, model), (&self.persona, persona)] {
            let (Some(place), Some(text)) = (place, text) else {
                continue;
            };
            let text = serde_json::Value::from(text).to_string();
            match place {
                Place::Member(name) => members.push(format!("\"{name}\":{text}")),
                Place::Null(range) => edits.push((range.clone(), text)),
                Place::Message { at, is_only } => {
                    let comma = if *is_only { "" } else { "," };
                    edits.push((*at..*at, format!("{{\"role\":\"system\",\"content\":{text}}}{comma}")));
                }
            }
        }
        if !members.is_empty() {
            let comma = if self.is_empty { "" } else { "," };
            edits.push((self.opening..self.opening, members.join(",") + comma));
        }
        if edits.is_empty() {
            return self.body;
        }
        edits.sort_by_key(|(range, _)| range.start);
        let added: usize = edits.iter().map(|(_, text)| text.len()).sum();
        let mut filled = Vec::with_capacity(self.body.len() + added);
        let mut copied = 0;
        for (range, text) in edits {
            filled.extend_from_slice(&self.body[copied..range.start]);
            filled.extend_from_slice(text.as_bytes());
            copied = range.end;
        }
        filled.extend_from_slice(&self.body[copied..]);
        filled.into()
    }
}

/// The members of an object as they were written.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The value of a member; of several with one name, the one that most readers take.
    fn last(&self, name: &str) -> Option<&'a RawValue> {
        let mut members = self.0.iter().rev();
        members
            .find(|(key, _)| string(key).as_deref() == Some(name))
            .map(|(_, value)| *value)
    }

    /// The place of a member that is absent or null.
    fn missing(&self, text: &str, name: &'static str) -> Option<Place> {
        match self.last(name) {
            None => Some(Place::Member(name)),
            Some(value) if value.get() == "null" => Some(Place::Null(range(text, value))),
            Some(_) => None,
        }
    }
}

/// The place before the first message, unless one gives instructions already.
fn first_message(text: &str, list: &RawValue) -> Option<Place> {
    let messages: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    let instructs = |message: &&RawValue| {
        let members = read_object(message.get()).ok();
        let role = members.and_then(|members| members.last("role").and_then(string));
        matches!(role.as_deref(), Some("system" | "developer"))
    };
    (!messages.iter().any(instructs)).then(|| Place::Message {
        at: range(text, list).start + 1,
        is_only: messages.is_empty(),
    })
}

fn string(value: &RawValue) -> Option<String> {
    // A string with half a surrogate pair is none that anything here is compared with.
    serde_json::from_str(value.get()).ok()
}

/// Where a part of a text is in it.
fn range(text: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + part.get().len()
}

fn object(body: &[u8]) -> Result<(&str, Members<'_>), Failure> {
    let text = std::str::from_utf8(body).map_err(|_| Failure::bad_request("the body must be UTF-8"))?;
    let members = read_object(text).map_err(|error| {
        Failure::bad_request(match error.classify() {
            Category::Data => "the body must be a JSON object".to_owned(),
            _ => format!(
                "the body must be JSON, it breaks at line {} column {}",
                error.line(),
                error.column()
            ),
        })
    })?;
    Ok((text, members))
}

fn read_object(text: &str) -> serde_json::Result<Members<'_>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = reader.deserialize_map(Visitor)?;
    reader.end()?;
    Ok(members)
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
#[path = "draft_tests.rs"]
mod tests;
