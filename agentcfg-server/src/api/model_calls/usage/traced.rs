//! The span of an attempt, from its beginning to its end.

use std::sync::Arc;

use agentcfg_core::service::{EndedCall, ModelAttempt, ModelCall};
use hyper::header::HeaderValue;

use super::path::UsagePath;
use crate::api::model_calls::error::CALLER_LEFT;
use crate::api::observer::{Observer, Stopwatch};
use crate::api::request_trace::RequestTrace;
use crate::api::trace::{Span, TracedCall};

/// What the span of an attempt says of it. It is gathered only where the observer wants traces.
#[derive(Debug)]
pub(super) struct CallTrace {
    span: Span,
    stopwatch: Stopwatch,
    operation: &'static str,
    base_url: Arc<str>,
    agent_id: String,
    agent_name: String,
    version: u64,
    attempt: u32,
    request_id: String,
    /// How the attempt has failed.
    pub(super) error: Option<&'static str>,
    /// Whether all of the answer has arrived. Before the answer begins, a failure says how the attempt ended.
    pub(super) is_whole: bool,
}

impl CallTrace {
    pub(super) fn begin(
        trace: &RequestTrace,
        observer: &dyn Observer,
        call: &ModelCall,
        attempt: &ModelAttempt,
    ) -> Option<Self> {
        Some(Self {
            span: trace.begin_call(observer)?,
            stopwatch: Stopwatch::start(),
            operation: "other",
            base_url: Arc::clone(&attempt.base_url),
            agent_id: call.agent_id.clone(),
            agent_name: call.agent_name.clone(),
            version: call.version,
            attempt: 1,
            request_id: String::new(),
            error: None,
            is_whole: false,
        })
    }

    /// What the request says of it: the path at the provider, and what is known of that; the number of the attempt.
    pub(super) fn of(self, (path, known): (&str, Option<UsagePath>), attempt: usize, request_id: &str) -> Self {
        Self {
            operation: known.map_or_else(|| other_operation(path), UsagePath::operation),
            attempt: u32::try_from(attempt).unwrap_or(u32::MAX),
            request_id: request_id.to_owned(),
            ..self
        }
    }

    /// The header field that continues the trace at the provider.
    pub(super) fn traceparent(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.span.context.to_string()).ok()
    }

    /// The head of the answer has arrived, and perhaps all of it.
    pub(super) fn answer_began(&mut self, is_whole: bool) {
        self.is_whole = is_whole;
    }

    /// The attempt has ended. A caller that lets go of an answer before its end has left.
    pub(super) fn ended<'a>(
        &'a self,
        ended: &'a EndedCall,
        response_model: Option<&'a str>,
        is_estimated: Option<bool>,
    ) -> TracedCall<'a> {
        // A refusal is not read to its end where another model is asked.
        let is_refused = ended.first_byte.is_some() && ended.status >= 400;
        let has_left = !self.is_whole && !is_refused;
        TracedCall {
            span: self.span,
            took: self.stopwatch.elapsed(),
            operation: self.operation,
            base_url: &self.base_url,
            agent_id: &self.agent_id,
            agent_name: &self.agent_name,
            version: self.version,
            attempt: self.attempt,
            request_id: &self.request_id,
            response_model,
            is_estimated,
            error: self.error.or_else(|| has_left.then_some(CALLER_LEFT)),
            ended,
        }
    }
}

/// The operation of a path that reports no usage.
fn other_operation(path: &str) -> &'static str {
    match path.strip_prefix("v1/").unwrap_or(path) {
        "completions" => "text_completion",
        "messages/count_tokens" => "count_tokens",
        _ => "other",
    }
}
