//! What a provider reports of the tokens of a call, in any of the forms of the known APIs.

use agentcfg_core::model::TokenUsage;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::finder::Place;

/// No call has as many tokens. A report with more is none.
const MOST: u64 = 1_000_000_000_000;

/// The tokens that an answer has reported so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    /// The parts of Anthropic's input: what is not of a cache, what was read from one, and what was written to one.
    parts: [u64; 3],
    usage: TokenUsage,
    /// Whether the input is known.
    pub has_input: bool,
    /// Whether all is known.
    pub is_whole: bool,
}

/// `usage` in the forms of chat completions, responses, embeddings and messages. Of its details, what cannot be read is
/// left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Usage {
    #[serde(deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(deserialize_with = "details")]
    prompt_tokens_details: Option<Details>,
    #[serde(deserialize_with = "details")]
    completion_tokens_details: Option<Details>,
    #[serde(deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "detail")]
    total_tokens: Option<u64>,
    prompt_audio_seconds: Option<Value>,
    #[serde(deserialize_with = "details")]
    input_tokens_details: Option<Details>,
    #[serde(deserialize_with = "details")]
    output_tokens_details: Option<Details>,
    #[serde(deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    #[serde(deserialize_with = "detail")]
    audio_tokens: Option<u64>,
    #[serde(deserialize_with = "detail")]
    cached_tokens: Option<u64>,
    #[serde(deserialize_with = "detail")]
    cache_write_tokens: Option<u64>,
    #[serde(deserialize_with = "detail")]
    reasoning_tokens: Option<u64>,
}

/// A number of tokens, which some providers write as `11.0`.
fn tokens(value: &Value) -> Option<u64> {
    let whole = || {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        (0.0..=MOST as f64).contains(&number).then_some(number as u64)
    };
    value.as_u64().or_else(whole).filter(|tokens| *tokens <= MOST)
}

fn count<'de, D: Deserializer<'de>>(field: D) -> Result<Option<u64>, D::Error> {
    let tokens = |value| tokens(&value).ok_or_else(|| D::Error::custom("no number of tokens"));
    Option::<Value>::deserialize(field)?.map(tokens).transpose()
}

fn detail<'de, D: Deserializer<'de>>(field: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Value>::deserialize(field)?.as_ref().and_then(tokens))
}

fn details<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Details>, D::Error> {
    Ok(Option::<Value>::deserialize(field)?.and_then(|value| Details::deserialize(value).ok()))
}

impl Reported {
    /// Takes a `usage` of an answer of messages. Within `message` it is that of the beginning of a stream.
    pub fn take_messages(&mut self, place: Place, text: &[u8]) {
        let Some(usage) = read(text) else { return };
        let of_caches = [usage.cache_read_input_tokens, usage.cache_creation_input_tokens];
        let found = [usage.input_tokens, of_caches[0], of_caches[1]];
        for (part, found) in self.parts.iter_mut().zip(found) {
            *part = found.unwrap_or(*part);
        }
        let [plain, cached, written] = self.parts;
        self.usage.input = plain.saturating_add(cached).saturating_add(written);
        self.usage.cached_input = cached;
        self.usage.cache_write = written;
        self.has_input |= usage.input_tokens.is_some();
        if place == Place::Top {
            if let Some(output) = usage.output_tokens {
                self.usage.output = output;
                self.is_whole = self.has_input;
            }
            let details = usage.output_tokens_details.and_then(|details| details.reasoning_tokens);
            self.usage.reasoning = details.unwrap_or(self.usage.reasoning).min(self.usage.output);
        }
    }

    /// Takes a `usage` of an answer of OpenAI's API. A later one replaces it.
    pub fn take_openai(&mut self, text: &[u8]) {
        let Some(usage) = read(text) else { return };
        let Some(input) = usage.prompt_tokens.or(usage.input_tokens) else {
            return;
        };
        let beside = usage.beside_completion(input);
        let said = usage.completion_tokens.or(usage.output_tokens).unwrap_or_default();
        let output = said.saturating_add(beside);
        let inputs = usage
            .prompt_tokens_details
            .or(usage.input_tokens_details)
            .unwrap_or_default();
        let outputs = usage
            .completion_tokens_details
            .or(usage.output_tokens_details)
            .unwrap_or_default();
        let cached_input = inputs.cached_tokens.unwrap_or_default().min(input);
        self.usage = TokenUsage {
            input,
            cached_input,
            cache_write: inputs.cache_write_tokens.unwrap_or_default().min(input - cached_input),
            output,
            reasoning: outputs.reasoning_tokens.unwrap_or_default().max(beside).min(output),
        };
        (self.has_input, self.is_whole) = (true, true);
    }

    /// The tokens.
    pub fn usage(&self) -> TokenUsage {
        self.usage
    }
}

impl Usage {
    /// The tokens of output that the total has and the completion has not: some providers count reasoning so. What is of
    /// audio is input, which some count in the total alone as well.
    fn beside_completion(&self, input: u64) -> u64 {
        let completion = self.completion_tokens.or(self.output_tokens);
        let has_audio = self
            .prompt_audio_seconds
            .as_ref()
            .is_some_and(|seconds| !seconds.is_null());
        let (Some(total), Some(completion), false) = (self.total_tokens, completion, has_audio) else {
            return 0;
        };
        let details = self
            .prompt_tokens_details
            .as_ref()
            .or(self.input_tokens_details.as_ref());
        let audio = details.and_then(|details| details.audio_tokens);
        total
            .saturating_sub(input)
            .saturating_sub(audio.unwrap_or_default())
            .saturating_sub(completion)
    }
}

fn read(text: &[u8]) -> Option<Usage> {
    serde_json::from_slice(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(text: &str) -> Reported {
        let mut reported = Reported::default();
        reported.take_openai(text.as_bytes());
        reported
    }

    #[test]
    fn each_api_of_openai_is_read() {
        let chat = openai(
            r#"{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":0},
                "completion_tokens_details":{"reasoning_tokens":4}}"#,
        );
        let expected = TokenUsage {
            input: 20,
            cached_input: 8,
            cache_write: 0,
            output: 9,
            reasoning: 4,
        };
        assert_eq!((chat.usage(), chat.is_whole), (expected, true));
        let responses = openai(
            r#"{"input_tokens":20,"output_tokens":9,"input_tokens_details":{"cached_tokens":8},"output_tokens_details":{"reasoning_tokens":4}}"#,
        );
        assert_eq!(responses, chat);
        let embeddings = openai(r#"{"prompt_tokens":8,"total_tokens":8}"#);
        assert_eq!((embeddings.usage().input, embeddings.usage().output), (8, 0));
        for none in [
            "{}",
            "null",
            r#"{"prompt_tokens":-1}"#,
            r#"{"prompt_tokens":1000000000001}"#,
            r#"{"prompt_tokens":"8"}"#,
        ] {
            assert_eq!(openai(none), Reported::default(), "{none}");
        }
        // A detail that cannot be read is left out, and a whole number may have a point.
        let odd = openai(
            r#"{"prompt_tokens":11.0,"completion_tokens":7,"prompt_tokens_details":[],"total_tokens":"x","completion_tokens_details":{"reasoning_tokens":-1}}"#,
        );
        assert_eq!((odd.usage().input, odd.usage().output, odd.is_whole), (11, 7, true));
        assert_eq!(
            openai(r#"{"prompt_tokens":11.5,"completion_tokens":7}"#),
            Reported::default()
        );
        // Parts are never more than the whole.
        let odd = openai(
            r#"{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":9},"completion_tokens_details":{"reasoning_tokens":3}}"#,
        );
        assert_eq!((odd.usage().cached_input, odd.usage().reasoning), (5, 2));
    }

    #[test]
    fn reasoning_beside_the_completion_is_output() {
        // As xAI reports it, and as Gemini does, which names it nowhere.
        let tokens = r#""prompt_tokens":32,"completion_tokens":9,"total_tokens":135"#;
        let details = r#""completion_tokens_details":{"reasoning_tokens":94}"#;
        for text in [format!("{{{tokens},{details}}}"), format!("{{{tokens}}}")] {
            let usage = openai(&text).usage();
            assert_eq!((usage.input, usage.output, usage.reasoning), (32, 103, 94), "{text}");
        }
        for total in ["5", "41", "\"135\"", "-1", "1e99", "null"] {
            let text = format!(r#"{{"prompt_tokens":32,"completion_tokens":9,"total_tokens":{total}}}"#);
            let usage = openai(&text).usage();
            assert_eq!((usage.input, usage.output, usage.reasoning), (32, 9, 0), "{total}");
        }
        // Audio that the total has beside the prompt is input, as Mistral reports it.
        for audio in [
            r#""prompt_audio_seconds":203"#,
            r#""prompt_tokens_details":{"audio_tokens":375}"#,
        ] {
            let text = format!(r#"{{"prompt_tokens":4,"completion_tokens":87,"total_tokens":466,{audio}}}"#);
            assert_eq!(openai(&text).usage().output, 87, "{text}");
        }
    }

    #[test]
    fn input_of_messages_includes_what_is_of_caches() {
        let mut reported = Reported::default();
        let begin = br#"{"input_tokens":10,"cache_creation_input_tokens":300,"cache_read_input_tokens":2000,"output_tokens":1}"#;
        reported.take_messages(Place::Within, begin);
        assert!(reported.has_input && !reported.is_whole);
        reported.take_messages(Place::Top, br#"{"output_tokens":40}"#);
        let expected = TokenUsage {
            input: 2310,
            cached_input: 2000,
            cache_write: 300,
            output: 40,
            reasoning: 0,
        };
        assert_eq!((reported.usage(), reported.is_whole), (expected, true));
        // The last report of a stream is of the whole answer.
        reported.take_messages(
            Place::Top,
            br#"{"input_tokens":11,"output_tokens":90,"cache_read_input_tokens":null}"#,
        );
        assert_eq!((reported.usage().input, reported.usage().output), (2311, 90));
    }
}
