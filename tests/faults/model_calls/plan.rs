//! What providers do with a call, and how the call must end then. Providers and judge compute both from the number of
//! the call.

use agentcfg_tests::harness::Dice;
use serde_json::{Value, json};

/// The attempts of a call at most.
pub const MOST: usize = 3;

/// The API of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    OpenAi,
    Anthropic,
}

impl Api {
    pub const ALL: [Self; 2] = [Self::OpenAi, Self::Anthropic];

    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "v1/responses",
            Self::Anthropic => "v1/messages",
        }
    }

    /// The provider of an attempt, counted from 1. One that is gone refuses the connection.
    pub fn provider(self, attempt: usize, is_gone: bool) -> String {
        match (is_gone, attempt) {
            (true, _) => format!("{}-gone", self.name()),
            (false, 1) => self.name().to_owned(),
            (false, _) => format!("{}-{attempt}", self.name()),
        }
    }

    /// The model of an attempt. Its last letter is the number of the attempt.
    pub fn model(self, attempt: usize, is_gone: bool) -> String {
        let kind = if is_gone { "gone" } else { "here" };
        format!("{}-{kind}-{attempt}", self.name())
    }
}

/// What happens to one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The connection is refused.
    Gone,
    /// The provider answers with a status that is not 200.
    Refused(u16),
    /// It reads the request and never answers.
    Hangs,
    /// It reads the request and closes the connection.
    CutBefore,
    /// It closes the connection after this many pieces of its answer, of which the head is none.
    CutAfter(usize),
    /// It sends this many pieces and then nothing more.
    Stalls(usize),
    /// It answers.
    Whole,
}

impl Fate {
    /// Whether the next model is to be asked.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Gone | Self::Hangs | Self::CutBefore => true,
            Self::Refused(status) => matches!(status, 408 | 429 | 500..),
            Self::CutAfter(_) | Self::Stalls(_) | Self::Whole => false,
        }
    }

    /// Whether the provider may bill what it did not report.
    pub fn is_estimated(self) -> bool {
        matches!(
            self,
            Self::Hangs | Self::CutBefore | Self::CutAfter(_) | Self::Stalls(_)
        )
    }

    /// The status of the attempt in the ledger.
    pub fn status(self) -> u16 {
        match self {
            Self::Gone | Self::CutBefore => 502,
            Self::Hangs => 504,
            Self::Refused(status) => status,
            Self::CutAfter(_) | Self::Stalls(_) | Self::Whole => 200,
        }
    }
}

/// One call.
#[derive(Debug, Clone)]
pub struct Plan {
    pub number: usize,
    pub api: Api,
    pub is_stream: bool,
    /// Whether the answer has a length or comes in chunks.
    pub has_length: bool,
    /// Whether the request names the model, so that no other one is asked.
    pub is_named: bool,
    /// What happens to the agent's model and its fallback models, if they are asked.
    pub fates: Vec<Fate>,
    pieces: usize,
}

/// The order of the parts of an answer: a beginning, these pieces, and an end with the usage.
const PIECES: usize = 12;

impl Plan {
    pub fn of(seed: u64, number: usize) -> Self {
        let mut dice = Dice::new(seed).split(number);
        let api = Api::ALL[dice.below(2)];
        let is_stream = dice.once_in(2);
        let pieces = 2 + dice.below(PIECES);
        let models = 1 + dice.below(MOST);
        let fates = (0..models).map(|_| match dice.below(100) {
            0..10 => Fate::Gone,
            10..45 => Fate::Refused([400, 408, 429, 500, 503, 529][dice.below(6)]),
            45..55 => Fate::CutBefore,
            55..65 => Fate::CutAfter(dice.below(pieces)),
            // These take seconds.
            65 => Fate::Hangs,
            66 => Fate::Stalls(1 + dice.below(pieces - 1)),
            _ => Fate::Whole,
        });
        let fates = fates.collect();
        Self {
            number,
            api,
            is_stream,
            has_length: !is_stream && dice.once_in(2),
            is_named: dice.once_in(8),
            fates,
            pieces,
        }
    }

    /// The agent with the models of this call: `h` for each that is there, `g` for each that is gone.
    pub fn agent(&self) -> String {
        let kinds = self
            .fates
            .iter()
            .map(|fate| if *fate == Fate::Gone { 'g' } else { 'h' });
        format!("{}-{}", self.api.name(), kinds.collect::<String>())
    }

    pub fn model(&self, attempt: usize) -> String {
        self.api.model(attempt, self.fates[attempt - 1] == Fate::Gone)
    }

    pub fn provider(&self, attempt: usize) -> String {
        self.api.provider(attempt, self.fates[attempt - 1] == Fate::Gone)
    }

    /// The fates of the attempts that must be made, in their order. The last one decides how the call ends.
    pub fn attempts(&self) -> &[Fate] {
        let most = if self.is_named { 1 } else { self.fates.len() };
        let last = self.fates[..most].iter().position(|fate| !fate.is_failure());
        &self.fates[..last.map_or(most, |last| last + 1)]
    }

    pub fn request_id(&self) -> String {
        format!("call-{}", self.number)
    }

    /// The body of the request.
    pub fn request(&self) -> Value {
        let prompt = format!("call {}", self.number);
        let mut body = match self.api {
            Api::OpenAi => json!({"input": prompt}),
            Api::Anthropic => json!({"messages": [{"role": "user", "content": prompt}], "max_tokens": 1000}),
        };
        if self.is_stream {
            body["stream"] = json!(true);
        }
        if self.is_named {
            body["model"] = json!(self.model(1));
        }
        body
    }

    /// The number of the call with this body.
    pub fn number(body: &Value) -> usize {
        let prompt = body["input"].as_str().or(body["messages"][0]["content"].as_str());
        let number = prompt.and_then(|prompt| prompt.strip_prefix("call ")?.parse().ok());
        number.unwrap_or_else(|| panic!("no prompt of a call: {body}"))
    }

    /// The tokens that an attempt reports: of its input and its output.
    pub fn tokens(&self, attempt: usize) -> (u64, u64) {
        let number = self.number as u64;
        (1 + number % 1009, 1 + number % 997 + 1000 * attempt as u64)
    }

    /// The pieces of the whole answer of an attempt. Each names the attempt, which no other one does.
    pub fn answer(&self, attempt: usize) -> Vec<String> {
        let id = format!("answer-{}-{attempt}", self.number);
        let (input, output) = self.tokens(attempt);
        let usage = json!({"input_tokens": input, "output_tokens": output});
        let mut answer = Vec::new();
        match (self.is_stream, self.api) {
            (false, _) => {
                answer.push(format!(r#"{{"id":"{id}","parts":["#));
                answer.extend((1..self.pieces).map(|piece| format!(r#""{id} {piece}","#)));
                answer.push(format!(r#""{id}"],"usage":{usage}}}"#));
            }
            (true, Api::OpenAi) => {
                let event = |kind: &str, response: Value| {
                    let data = json!({"type": kind, "id": id, "response": response});
                    format!("event: {kind}\ndata: {data}\n\n")
                };
                answer.push(event("response.created", json!({"usage": null})));
                answer.extend((1..self.pieces).map(|_| event("response.output_text.delta", Value::Null)));
                answer.push(event("response.completed", json!({"usage": usage})));
            }
            (true, Api::Anthropic) => {
                let event = |kind: &str, member: &str, value: Value| {
                    let data = json!({"type": kind, "id": id, member: value});
                    format!("event: {kind}\ndata: {data}\n\n")
                };
                let begun = json!({"usage": {"input_tokens": input, "output_tokens": 1}});
                answer.push(event("message_start", "message", begun));
                answer.extend((1..self.pieces).map(|_| event("content_block_delta", "delta", json!({}))));
                answer.push(event("message_delta", "usage", json!({"output_tokens": output})));
            }
        }
        answer
    }

    /// What a refusal of an attempt says.
    pub fn refusal(&self, attempt: usize) -> String {
        json!({"error": {"message": format!("refusal-{}-{attempt}", self.number)}}).to_string()
    }
}
