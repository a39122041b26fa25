//! The cap of a body on the tokens of its output: how it is read, lowered, and put in.

use std::ops::Range;

use agentcfg_core::model::{CredentialHeader, Provider};
use agentcfg_core::service::{ModelAttempt, OutputCap};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::raw_json::{is_object, present, range};
use super::path::UsagePath;
use crate::http::errors::Failure;

/// The members of a body that bound what its answers cost.
#[derive(Debug)]
pub struct OutputMembers {
    /// The caps that the path knows, with their names and places: `None` where they are null.
    caps: Vec<(&'static str, Range<usize>, Option<u64>)>,
    /// The name and the place of a cap that is put in.
    insertion: Option<(&'static str, usize)>,
    is_empty: bool,
    has_output: bool,
    /// How many answers are asked for.
    pub answers: u64,
}

/// The name of the cap that a provider's chat completions know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatCap {
    /// `max_completion_tokens`, of OpenAI and of Azure, whose newer models refuse the other one.
    New,
    /// `max_tokens`, which all others with OpenAI's API know.
    Old,
}

impl ChatCap {
    /// The one of a provider. Azure is the one whose credential stands in `api-key`.
    pub fn of(attempt: &ModelAttempt) -> Self {
        match attempt.provider == Provider::OPENAI || attempt.credential_header == CredentialHeader::ApiKey {
            true => Self::New,
            false => Self::Old,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::New => "max_completion_tokens",
            Self::Old => "max_tokens",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Members<'a> {
    #[serde(borrow, deserialize_with = "present")]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    max_output_tokens: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    n: Option<&'a RawValue>,
}

impl OutputMembers {
    /// Reads the body of a call to a path that reports usage.
    ///
    /// # Errors
    ///
    /// 400 where a cap or the number of answers is there twice or is no whole number: what the call can cost would not
    /// be known.
    pub fn read(path: UsagePath, chat_cap: ChatCap, body: &Bytes) -> Result<Self, Failure> {
        let mut read = Self {
            caps: Vec::new(),
            insertion: None,
            is_empty: false,
            has_output: path != UsagePath::Embeddings,
            answers: 1,
        };
        let text = std::str::from_utf8(body).ok().filter(|text| is_object(text));
        let Some(text) = text else { return Ok(read) };
        let members = match serde_json::from_str::<Members<'_>>(text) {
            Ok(members) => members,
            Err(error) if error.to_string().starts_with("duplicate field") => {
                let message =
                    "each of max_tokens, max_completion_tokens, max_output_tokens and n must appear at most once";
                return Err(Failure::bad_request(message));
            }
            Err(_) => {
                let message = "the names of members must be whole texts, without half of a surrogate pair, because a budget \
                               covers this call";
                return Err(Failure::bad_request(message));
            }
        };
        let names = match path {
            UsagePath::ChatCompletions => vec![
                ("max_completion_tokens", members.max_completion_tokens),
                ("max_tokens", members.max_tokens),
            ],
            UsagePath::Responses => vec![("max_output_tokens", members.max_output_tokens)],
            UsagePath::Messages => vec![("max_tokens", members.max_tokens)],
            UsagePath::Embeddings => Vec::new(),
        };
        for (name, value) in &names {
            if let Some(value) = value {
                let place = range(text, value);
                read.caps.push((name, place, whole_number(name, value)?));
            }
        }
        if path == UsagePath::ChatCompletions
            && let Some(answers) = members.n
        {
            read.answers = whole_number("n", answers)?.unwrap_or(1).max(1);
        }
        if let Some(brace) = text.find('{') {
            let name = match path {
                UsagePath::ChatCompletions => Some(chat_cap.name()),
                UsagePath::Messages => Some("max_tokens"),
                UsagePath::Responses => Some("max_output_tokens"),
                UsagePath::Embeddings => None,
            };
            read.insertion = name.map(|name| (name, brace + 1));
            read.is_empty = text[brace + 1..].trim_start().starts_with('}');
        }
        Ok(read)
    }

    /// The cap of the body; of two, the larger.
    pub fn cap(&self) -> OutputCap {
        if !self.has_output {
            return OutputCap::NoOutput;
        }
        let largest = self.caps.iter().filter_map(|(_, _, cap)| *cap).max();
        largest.map_or(OutputCap::Absent, OutputCap::Given)
    }

    /// The changes of the text with which the body has at most this cap.
    fn changes(&self, cap: u64) -> Vec<(Range<usize>, String)> {
        let mut changes: Vec<(Range<usize>, String)> = Vec::new();
        for (_, place, given) in &self.caps {
            if given.is_some_and(|given| given > cap) {
                changes.push((place.clone(), cap.to_string()));
            }
        }
        if self.cap() == OutputCap::Absent
            && let Some((name, at)) = self.insertion
        {
            let null = self.caps.iter().find(|(known, ..)| *known == name);
            changes.push(match null {
                Some((_, null, _)) => (null.clone(), cap.to_string()),
                None => {
                    let comma = if self.is_empty { "" } else { "," };
                    (at..at, format!("\"{name}\":{cap}{comma}"))
                }
            });
        }
        changes.sort_by_key(|(place, _)| place.start);
        changes
    }

    /// The length of the body with this cap.
    pub fn length_with(&self, body: &Bytes, cap: Option<u64>) -> usize {
        let Some(cap) = cap else { return body.len() };
        let changes = self.changes(cap);
        let (more, less) = changes.iter().fold((0, 0), |(more, less), (place, new)| {
            (more + new.len(), less + place.len())
        });
        body.len() + more - less
    }

    /// The body with this cap.
    pub fn with_cap(&self, body: Bytes, cap: u64) -> Bytes {
        let changes = self.changes(cap);
        if changes.is_empty() {
            return body;
        }
        let mut new = Vec::with_capacity(body.len() + 40);
        let mut at = 0;
        for (place, text) in changes {
            new.extend_from_slice(&body[at..place.start]);
            new.extend_from_slice(text.as_bytes());
            at = place.end;
        }
        new.extend_from_slice(&body[at..]);
        new.into()
    }
}

/// Reads a whole number, which may be written with a fraction of zeros; `None` for null.
pub(super) fn whole_number(name: &str, value: &RawValue) -> Result<Option<u64>, Failure> {
    let text = value.get();
    if text == "null" {
        return Ok(None);
    }
    let number: Option<serde_json::Number> = serde_json::from_str(text).ok();
    let whole = number.and_then(|number| {
        let float = |number: f64| (number.fract() == 0.0 && (0.0..1e18).contains(&number)).then_some(number as u64);
        number.as_u64().or_else(|| number.as_f64().and_then(float))
    });
    match whole {
        Some(whole) => Ok(Some(whole)),
        None => Err(Failure::bad_request(format!(
            "{name} must be a whole number that is not negative, because a budget covers this call"
        ))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(path: UsagePath, body: &str) -> (OutputMembers, Bytes) {
        let body = Bytes::copy_from_slice(body.as_bytes());
        (OutputMembers::read(path, ChatCap::New, &body).unwrap(), body)
    }

    #[test]
    fn a_cap_is_lowered_or_put_in_and_the_rest_stays() {
        use UsagePath::{ChatCompletions, Embeddings, Messages, Responses};
        for (path, body, cap, expected) in [
            (
                Messages,
                r#"{"max_tokens": 1000}"#,
                OutputCap::Given(1000),
                r#"{"max_tokens": 300}"#,
            ),
            (
                Messages,
                r#"{"max_tokens":200 , "a":1}"#,
                OutputCap::Given(200),
                r#"{"max_tokens":200 , "a":1}"#,
            ),
            (
                Messages,
                r#"{"max_tokens": 1e3}"#,
                OutputCap::Given(1000),
                r#"{"max_tokens": 300}"#,
            ),
            (
                Responses,
                r#"{"input":"x"}"#,
                OutputCap::Absent,
                r#"{"max_output_tokens":300,"input":"x"}"#,
            ),
            (
                Responses,
                r#"{"max_output_tokens":null}"#,
                OutputCap::Absent,
                r#"{"max_output_tokens":300}"#,
            ),
            (
                Responses,
                r#"{"max_tokens":9}"#,
                OutputCap::Absent,
                r#"{"max_output_tokens":300,"max_tokens":9}"#,
            ),
            (
                ChatCompletions,
                "{ }",
                OutputCap::Absent,
                r#"{"max_completion_tokens":300 }"#,
            ),
            (
                ChatCompletions,
                r#"{"max_tokens":500,"max_completion_tokens":100}"#,
                OutputCap::Given(500),
                r#"{"max_tokens":300,"max_completion_tokens":100}"#,
            ),
            (
                ChatCompletions,
                r#"{"max_completion_tokens":500,"x":"max_tokens","max_tokens":400}"#,
                OutputCap::Given(500),
                r#"{"max_completion_tokens":300,"x":"max_tokens","max_tokens":300}"#,
            ),
            // OpenAI refuses the older name with a value; null is as good as absent.
            (
                ChatCompletions,
                r#"{"max_tokens":null}"#,
                OutputCap::Absent,
                r#"{"max_completion_tokens":300,"max_tokens":null}"#,
            ),
            (
                Embeddings,
                r#"{"max_tokens":5}"#,
                OutputCap::NoOutput,
                r#"{"max_tokens":5}"#,
            ),
            (ChatCompletions, "no JSON", OutputCap::Absent, "no JSON"),
        ] {
            let (members, body) = read(path, body);
            assert_eq!(members.cap(), cap, "{body:?}");
            assert_eq!(members.length_with(&body, Some(300)), expected.len(), "{body:?}");
            assert_eq!(members.length_with(&body, None), body.len());
            assert_eq!(members.with_cap(body, 300), expected);
        }
    }

    #[test]
    fn other_providers_get_the_older_name() {
        let body = Bytes::from_static(b"{\"a\":1}");
        let members = OutputMembers::read(UsagePath::ChatCompletions, ChatCap::Old, &body).unwrap();
        assert_eq!(members.with_cap(body, 7), r#"{"max_tokens":7,"a":1}"#);
    }

    #[test]
    fn several_answers_multiply_and_what_is_no_number_is_refused() {
        let (members, _) = read(UsagePath::ChatCompletions, r#"{"n":3}"#);
        assert_eq!(members.answers, 3);
        let (members, _) = read(UsagePath::Responses, r#"{"n":3}"#);
        assert_eq!(members.answers, 1);
        for wrong in [
            r#"{"max_tokens":"9"}"#,
            r#"{"max_tokens":-1}"#,
            r#"{"max_tokens":1.5}"#,
            r#"{"n":"2"}"#,
            r#"{"n":1,"n":9}"#,
            // Some readers take such a name, and the members after it would not be seen here.
            r#"{"n":9,"\udead":1}"#,
        ] {
            let body = Bytes::copy_from_slice(wrong.as_bytes());
            assert!(
                OutputMembers::read(UsagePath::ChatCompletions, ChatCap::New, &body).is_err(),
                "{wrong}"
            );
        }
    }
}
