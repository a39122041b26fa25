//! Places in a trace, as W3C Trace Context has them, and what is known of a model call that has one.

use std::fmt;
use std::time::Duration;

use agentcfg_core::service::EndedCall;
use hyper::header::{HeaderMap, HeaderName};

/// The field that names the trace that a request belongs to.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The place of an operation in a trace: the field `traceparent` of W3C Trace Context.
///
/// ```
/// use agentcfg_server::TraceContext;
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let context = TraceContext::parse(text).expect("it has the right form");
/// assert!(context.is_sampled());
/// assert_eq!(context.span_id, 0x00f0_67aa_0ba9_02b7);
/// assert_eq!(context.to_string(), text);
/// assert_eq!(TraceContext::parse("00-4bf9-00f0-01"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The identifier of the trace, not 0.
    pub trace_id: u128,
    /// The identifier of the operation, not 0.
    pub span_id: u64,
    /// The flags: 1 where the trace is recorded, 2 where its identifier is random.
    pub flags: u8,
}

/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;
/// The flags that are known. Others do not pass.
const KNOWN: u8 = 3;

impl TraceContext {
    /// Reads a field `traceparent`. A later version of it may be longer.
    ///
    /// ```
    /// use agentcfg_server::TraceContext;
    /// assert!(TraceContext::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '-');
        let mut digits = |count: usize| {
            let part = parts.next()?;
            let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            (part.len() == count && part.bytes().all(is_hex))
                .then(|| u128::from_str_radix(part, 16).ok())
                .flatten()
        };
        let (version, trace_id) = (digits(2)?, digits(32)?);
        let (span_id, flags) = (u64::try_from(digits(16)?).ok()?, u8::try_from(digits(2)?).ok()?);
        let is_known_form = match version {
            0 => parts.next().is_none(),
            version => version != 0xff,
        };
        (is_known_form && trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            flags: flags & KNOWN,
        })
    }

    /// The place that the caller of a request names. Several fields name none.
    pub(super) fn of_caller(headers: &HeaderMap) -> Option<Self> {
        let mut fields = headers.get_all(TRACEPARENT).iter();
        match (fields.next(), fields.next()) {
            (Some(only), None) => Self::parse(only.to_str().ok()?.trim()),
            _ => None,
        }
    }

    /// Whether the trace is recorded.
    ///
    /// ```
    /// use agentcfg_server::TraceContext;
    /// let context = TraceContext { trace_id: 1, span_id: 2, flags: 0 };
    /// assert!(!context.is_sampled());
    /// ```
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

/// A span of a trace: an operation and the one that it is part of.
///
/// ```
/// use agentcfg_server::{Span, TraceContext};
/// let context = TraceContext { trace_id: 1, span_id: 2, flags: 1 };
/// let root = Span { context, parent: None, has_remote_parent: false };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The place of the operation.
    pub context: TraceContext,
    /// The identifier of the span that it is part of.
    pub parent: Option<u64>,
    /// Whether that one is of another process.
    pub has_remote_parent: bool,
}

/// One attempt of a model call that has ended, with its span. It has nothing of what was sent or answered.
///
/// ```
/// use agentcfg_server::TracedCall;
/// fn line(call: &TracedCall<'_>) -> String {
///     format!("{} {:?} of {}: {:?}", call.operation, call.ended.model, call.agent_id, call.took)
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TracedCall<'a> {
    /// The span of the attempt.
    pub span: Span,
    /// Time from its sending to its end.
    pub took: Duration,
    /// What is done, as the conventions of OpenTelemetry name it: `chat`, `embeddings`, `text_completion`;
    /// `count_tokens`, and `other` for all else.
    pub operation: &'static str,
    /// The address of the provider's API.
    pub base_url: &'a str,
    /// The agent that the call is made as.
    pub agent_id: &'a str,
    /// The name of the agent.
    pub agent_name: &'a str,
    /// The version of the agent.
    pub version: u64,
    /// Which attempt of the request it is, from 1.
    pub attempt: u32,
    /// The identifier of the request, as in `X-Request-Id`.
    pub request_id: &'a str,
    /// The model that has answered, where the answer says it.
    pub response_model: Option<&'a str>,
    /// Whether the tokens are an estimate; `None` where there are none to report.
    pub is_estimated: Option<bool>,
    /// How it has failed, if it has no whole answer.
    pub error: Option<&'static str>,
    /// The provider, the model, the status and the tokens.
    pub ended: &'a EndedCall,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

    #[test]
    fn what_breaks_the_form_names_no_trace() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
        let all_flags = TraceContext::parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff").unwrap();
        assert_eq!((all_flags.trace_id, all_flags.flags), (TRACE, 3));
    }
}
