//! The body of a model call: reads what it names, and inserts the agent's model, persona and settings where they are
//! absent.
//!
//! The caller's text is never serialised again. What is added is spliced into it, so everything else arrives at the
//! provider byte for byte: the order of members, white space, numbers that no type holds. A member that decides
//! something here must not appear twice, because readers differ in which one they take.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use agentcfg_core::model::ModelSettings;
use bytes::Bytes;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess};
use serde_json::error::Category;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::raw_json::range;
use super::target::Format;
use crate::http::errors::Failure;

/// A body that was read and not changed yet.
#[derive(Debug)]
pub struct Draft {
    body: Bytes,
    requested_model: Option<String>,
    lists_models: bool,
    /// Where the model is inserted when the body names none.
    model: Option<InsertionPoint>,
    /// Where the persona is inserted when the body has none.
    persona: Option<InsertionPoint>,
    /// Where new members are inserted: after the opening brace.
    opening: usize,
    /// Where the names of the members are.
    names: Names,
    is_empty: bool,
}

/// The ranges of the names of members, with their quotes.
type Names = SmallVec<[Range<usize>; 12]>;

/// A place where something absent is inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum InsertionPoint {
    /// A member of this name, which does not exist yet.
    Member(&'static str),
    /// A value that counts as absent: null or the empty string.
    Blank(Range<usize>),
    /// The beginning of the list of messages.
    Message { at: usize, is_only: bool },
}

impl Draft {
    /// Reads a body of a known format.
    ///
    /// # Errors
    ///
    /// 400 when it is not a JSON object, when a member that is looked for is in it twice, when its model has more than
    /// [`LONGEST_MODEL`] characters, or when it has more than [`MOST_MEMBERS`] members.
    pub fn read(format: Format, body: &Bytes) -> Result<Self, Failure> {
        let name = match format {
            Format::ChatCompletions => "messages",
            Format::Responses => "instructions",
            Format::Messages => "system",
        };
        let (text, members) = object(body, Some(name))?;
        members.require_once()?;
        let persona = match format {
            Format::ChatCompletions => members.persona.and_then(|list| first_message(text, list)),
            Format::Responses | Format::Messages => missing(text, name, members.persona),
        };
        Ok(Self {
            body: body.clone(),
            requested_model: model(members.model)?,
            lists_models: members.lists_models,
            model: missing(text, "model", members.model),
            persona,
            opening: text.find('{').map_or(0, |brace| brace + 1),
            names: members.names.iter().map(|name| range(text, name)).collect(),
            is_empty: members.is_empty,
        })
    }

    /// Takes a body of an unknown format. It is passed on unchanged; a model that it names is found if it is JSON.
    ///
    /// # Errors
    ///
    /// 400 when it names two models, and when its model has more than [`LONGEST_MODEL`] characters.
    pub fn opaque(body: &Bytes) -> Result<Self, Failure> {
        let members = object(body, None).map(|(_, members)| members).unwrap_or_default();
        members.require_once()?;
        Ok(Self {
            body: body.clone(),
            requested_model: model(members.model)?,
            lists_models: members.lists_models,
            model: None,
            persona: None,
            opening: 0,
            names: Names::new(),
            is_empty: true,
        })
    }

    /// Whether the body has a list of models beside the one that it names, of which a gateway such as OpenRouter may
    /// choose.
    pub fn lists_models(&self) -> bool {
        self.lists_models
    }

    /// The model that the body names.
    pub fn requested_model(&self) -> Option<&str> {
        self.requested_model.as_deref()
    }

    /// Whether a list of models can be inserted as a setting.
    pub fn takes_list_of_models(&self) -> bool {
        let is_list = |range: &Range<usize>| decoded(&self.body[range.clone()]).is_some_and(|name| name == "models");
        self.opening > 0 && !self.names.iter().any(is_list)
    }

    /// Whether a model can be inserted.
    pub fn takes_model(&self) -> bool {
        self.model.is_some()
    }

    /// Whether a persona can be inserted.
    pub fn takes_persona(&self) -> bool {
        self.persona.is_some()
    }

    /// The body, with the agent's model and persona inserted where it has none, and with the settings that it lacks.
    pub fn fill(&self, model: Option<&str>, persona: Option<&str>, settings: &ModelSettings) -> Bytes {
        let mut pieces: SmallVec<[Insertion<'_>; 4]> = SmallVec::new();
        for (at, text) in [(&self.model, model), (&self.persona, persona)] {
            if let (Some(at), Some(text)) = (at, text) {
                pieces.push(Insertion::Text { at, text });
            }
        }
        let mut settings = settings.members();
        if self.opening > 0 && !settings.is_empty() {
            let present: HashSet<_> = self
                .names
                .iter()
                .filter_map(|range| decoded(&self.body[range.clone()]))
                .collect();
            settings.retain(|(name, _)| decoded(name.as_bytes()).is_some_and(|name| !present.contains(&name)));
            let lacking = settings.into_iter();
            pieces.extend(lacking.map(|(name, value)| Insertion::Setting { name, value }));
        }
        if pieces.is_empty() {
            return self.body.clone();
        }
        // The sort is stable, so of new members the model comes first and the settings last.
        pieces.sort_by_key(|piece| self.place(piece).start);
        // Most of the added length is the text, of which few characters are escaped.
        let added: usize = pieces.iter().map(|piece| piece.length() + MEMBER).sum();
        let mut filled = Vec::with_capacity(self.body.len() + added);
        let mut copied = 0;
        let mut members = pieces.iter().filter(|piece| piece.is_member()).count();
        for piece in &pieces {
            let range = self.place(piece);
            filled.extend_from_slice(&self.body[copied..range.start]);
            copied = range.end;
            members -= usize::from(piece.is_member());
            piece.write(&mut filled);
            if piece.is_member() && (members > 0 || !self.is_empty) {
                filled.push(b',');
            }
        }
        filled.extend_from_slice(&self.body[copied..]);
        filled.into()
    }

    /// The range that a piece replaces; empty where it is inserted.
    fn place(&self, piece: &Insertion<'_>) -> Range<usize> {
        match piece {
            Insertion::Text { at, .. } => self.range(at),
            Insertion::Setting { .. } => self.opening..self.opening,
        }
    }

    /// The range that a piece replaces; empty where it is inserted.
    fn range(&self, point: &InsertionPoint) -> Range<usize> {
        match point {
            InsertionPoint::Member(_) => self.opening..self.opening,
            InsertionPoint::Blank(range) => range.clone(),
            InsertionPoint::Message { at, .. } => *at..*at,
        }
    }
}

/// What is inserted.
enum Insertion<'a> {
    /// A text, and where.
    Text { at: &'a InsertionPoint, text: &'a str },
    /// A member whose name and value are JSON.
    Setting { name: &'a str, value: &'a str },
}

impl Insertion<'_> {
    fn is_member(&self) -> bool {
        match self {
            Self::Text { at, .. } => matches!(at, InsertionPoint::Member(_)),
            Self::Setting { .. } => true,
        }
    }

    /// The length of its text and of its name.
    fn length(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Setting { name, value } => name.len() + value.len(),
        }
    }

    fn write(&self, filled: &mut Vec<u8>) {
        let (at, text) = match self {
            Self::Text { at, text } => (at, text),
            Self::Setting { name, value } => {
                filled.extend_from_slice(name.as_bytes());
                filled.push(b':');
                filled.extend_from_slice(value.as_bytes());
                return;
            }
        };
        let after = match at {
            InsertionPoint::Blank(_) => "",
            InsertionPoint::Member(name) => {
                filled.push(b'"');
                filled.extend_from_slice(name.as_bytes());
                filled.extend_from_slice(b"\":");
                ""
            }
            InsertionPoint::Message { is_only, .. } => {
                filled.extend_from_slice(br#"{"role":"system","content":"#);
                if *is_only { "}" } else { "}," }
            }
        };
        // Writing a text to memory does not fail.
        let _ = serde_json::to_writer(&mut *filled, text);
        filled.extend_from_slice(after.as_bytes());
    }
}

/// An upper bound of what surrounds the text of a piece.
const MEMBER: usize = 48;

/// The most members of a body of a known format: those of all APIs are fewer than a hundred.
const MOST_MEMBERS: usize = 10_000;
/// The longest model that a body may name: no provider has one of more than a hundred characters. It is in header
/// fields, in the log and in the usage that is kept.
const LONGEST_MODEL: usize = 256;

/// The members that are relevant here, as slices of the body.
#[derive(Default)]
struct Members<'a> {
    model: Option<&'a RawValue>,
    /// The member that holds the persona in this format.
    persona: Option<&'a RawValue>,
    is_empty: bool,
    /// Whether there is a member `models` that is not null.
    lists_models: bool,
    /// The names of all members, where they matter.
    names: SmallVec<[&'a RawValue; 12]>,
    /// A relevant member that appears twice: readers differ in which one they take.
    twice: Option<&'static str>,
}

/// The insertion point of a member that is absent or counts as absent.
fn missing(text: &str, name: &'static str, value: Option<&RawValue>) -> Option<InsertionPoint> {
    match value {
        None => Some(InsertionPoint::Member(name)),
        Some(value) if matches!(value.get(), "null" | "\"\"") => Some(InsertionPoint::Blank(range(text, value))),
        Some(_) => None,
    }
}

/// The place before the first message, unless a message gives instructions already.
fn first_message(text: &str, list: &RawValue) -> Option<InsertionPoint> {
    let mut reader = serde_json::Deserializer::from_str(list.get());
    let messages = reader.deserialize_seq(Messages).ok()?;
    (!messages.instruct).then(|| InsertionPoint::Message {
        at: range(text, list).start + 1,
        is_only: messages.is_empty,
    })
}

/// The model that is named; the empty string names none.
///
/// # Errors
///
/// 400 when it is longer than [`LONGEST_MODEL`].
fn model(value: Option<&RawValue>) -> Result<Option<String>, Failure> {
    let model = value.and_then(|value| decoded(value.get().as_bytes()));
    let model = model.filter(|model| !model.is_empty()).map(Cow::into_owned);
    match &model {
        Some(model) if model.chars().nth(LONGEST_MODEL).is_some() => Err(Failure::bad_request(format!(
            "model must have at most {LONGEST_MODEL} characters"
        ))),
        _ => Ok(model),
    }
}

/// The text of a JSON string; `None` for another value, and for half of a surrogate pair. Few strings have escapes, so
/// few are copied.
fn decoded(json: &[u8]) -> Option<Cow<'_, str>> {
    if json.contains(&b'\\') {
        return serde_json::from_slice::<String>(json).ok().map(Cow::Owned);
    }
    let text = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    std::str::from_utf8(text).ok().map(Cow::Borrowed)
}

/// Whether a value is this text.
fn says(value: &RawValue, wanted: &str) -> bool {
    decoded(value.get().as_bytes()).as_deref() == Some(wanted)
}

fn object<'a>(body: &'a [u8], persona: Option<&'static str>) -> Result<(&'a str, Members<'a>), Failure> {
    let text = std::str::from_utf8(body).map_err(|_| Failure::bad_request("the body must be UTF-8"))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = reader
        .deserialize_map(Wanted { persona })
        .and_then(|members| reader.end().map(|()| members));
    let members = members.map_err(|error| {
        Failure::bad_request(match error.classify() {
            Category::Data => "the body must be a JSON object".to_owned(),
            _ => format!(
                "the body must be JSON, it breaks at line {} column {}",
                error.line(),
                error.column()
            ),
        })
    })?;
    if members.names.len() > MOST_MEMBERS {
        return Err(Failure::bad_request(format!(
            "the body must have at most {MOST_MEMBERS} members"
        )));
    }
    Ok((text, members))
}

impl Members<'_> {
    /// Refuses a body in which a member that is looked for is twice: a provider might take the other one.
    fn require_once(&self) -> Result<(), Failure> {
        match self.twice {
            Some(name) => Err(Failure::bad_request(format!("{name} must not appear more than once"))),
            None => Ok(()),
        }
    }
}

/// Reads an object and keeps the relevant members.
struct Wanted {
    persona: Option<&'static str>,
}

impl<'de> de::Visitor<'de> for Wanted {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members {
            is_empty: true,
            ..Members::default()
        };
        while let Some(name) = map.next_key::<&RawValue>()? {
            members.is_empty = false;
            if self.persona.is_some() && members.names.len() <= MOST_MEMBERS {
                members.names.push(name);
            }
            let Some(name) = decoded(name.get().as_bytes()) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let (name, place) = match self.persona {
                _ if name == "model" => ("model", &mut members.model),
                Some(persona) if name == persona => (persona, &mut members.persona),
                _ if name == "models" => {
                    members.lists_models |= map.next_value::<&RawValue>()?.get() != "null";
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if place.replace(map.next_value()?).is_some() {
                members.twice = Some(name);
            }
        }
        Ok(members)
    }
}

/// Reads a list of messages and keeps what is relevant.
struct Messages;

struct InstructionScan {
    is_empty: bool,
    /// Whether a message has the role `system` or `developer`.
    instruct: bool,
}

impl<'de> de::Visitor<'de> for Messages {
    type Value = InstructionScan;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<InstructionScan, A::Error> {
        let mut seen = InstructionScan {
            is_empty: true,
            instruct: false,
        };
        while let Some(message) = list.next_element::<&RawValue>()? {
            seen.is_empty = false;
            // An element that is no object has no role. The provider refuses it.
            seen.instruct |= message.get().starts_with('{') && instructs(message);
        }
        Ok(seen)
    }
}

fn instructs(message: &RawValue) -> bool {
    let mut reader = serde_json::Deserializer::from_str(message.get());
    reader.deserialize_map(Role).unwrap_or(false)
}

/// Reads a message and says whether its role gives instructions; of several roles, the last.
struct Role;

impl<'de> de::Visitor<'de> for Role {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut instructs = false;
        while let Some(name) = map.next_key::<&RawValue>()? {
            if says(name, "role") {
                let role = map.next_value::<&RawValue>()?;
                instructs = says(role, "system") || says(role, "developer");
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(instructs)
    }
}

#[cfg(test)]
#[path = "request_body_tests.rs"]
mod tests;
