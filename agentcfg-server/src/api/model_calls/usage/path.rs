//! The paths whose answers report their usage.

use agentcfg_core::model::TokenUsage;
use hyper::Method;

use super::super::target::endpoint;

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
    /// The path of a call, with or without a version such as `v1` in front; `None` for one that reports no usage.
    pub fn of(method: &Method, path: &str) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        match &*endpoint(path) {
            "chat/completions" => Some(Self::ChatCompletions),
            "responses" => Some(Self::Responses),
            "embeddings" => Some(Self::Embeddings),
            "messages" => Some(Self::Messages),
            _ => None,
        }
    }

    /// The operation, as the conventions of OpenTelemetry name it.
    pub fn operation(self) -> &'static str {
        match self {
            Self::ChatCompletions | Self::Responses | Self::Messages => "chat",
            Self::Embeddings => "embeddings",
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
