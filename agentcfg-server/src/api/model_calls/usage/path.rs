//! The paths whose answers report their usage, and what is asked of their providers.

use agentcfg_core::model::TokenUsage;
use hyper::header::{self, HeaderMap, HeaderValue};

/// The paths whose answers report their usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsagePath {
    /// `chat/completions` of OpenAI.
    ChatCompletions,
    /// `responses` of OpenAI.
    Responses,
    /// `embeddings` of OpenAI.
    Embeddings,
    /// `messages` of Anthropic.
    Messages,
}

impl UsagePath {
    /// The path, with or without a version such as `v1` in front; `None` for one that reports no usage.
    pub fn of(path: &str) -> Option<Self> {
        let is_version = |part: &str| {
            let digits = part.strip_prefix('v').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let path = match path.split_once('/') {
            Some((version, rest)) if is_version(version) => rest,
            _ => path,
        };
        match path {
            "chat/completions" => Some(Self::ChatCompletions),
            "responses" => Some(Self::Responses),
            "embeddings" => Some(Self::Embeddings),
            "messages" => Some(Self::Messages),
            _ => None,
        }
    }

    /// The tokens of a call of which nothing was reported: a quarter of the bytes. Always marked as an estimate.
    pub fn estimate(self, sent: u64, received: u64) -> (TokenUsage, bool) {
        let output = match self {
            Self::Embeddings => 0,
            _ => received.div_ceil(4),
        };
        let usage = TokenUsage {
            input: sent.div_ceil(4),
            output,
            ..TokenUsage::default()
        };
        (usage, true)
    }
}

/// Lets the provider answer in a coding that is read here: gzip where the caller takes it, and none where events are taken out.
pub fn limit_codings(headers: &mut HeaderMap, takes_out_events: bool) {
    let mut accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let takes_gzip = accepted.any(|value| {
        let mut codings = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        // One with a weight of 0 is refused; a client that writes weights otherwise gets the answer plain.
        codings.any(|coding| coding.eq_ignore_ascii_case(b"gzip"))
    });
    headers.remove(header::ACCEPT_ENCODING);
    if takes_gzip && !takes_out_events {
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
}
