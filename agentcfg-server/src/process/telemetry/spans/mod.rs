//! Spans for OpenTelemetry: of each request, and of each attempt of a model call by the conventions for generative AI.
//! They say who called which model and what it took, never what was sent or answered.

mod collector;
mod export;
mod queue;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use hyper::{Method, Uri};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanEvents, SpanLinks};

pub use self::export::SpanExport;
use self::queue::Queue;
use super::access::PROBES;
use crate::api::{Answered, Observer, Span, TraceContext, TracedCall};

/// The name of what makes the spans.
const SCOPE: &str = "agentcfg";

/// Makes spans of what it observes, and leaves them to a [`SpanExport`]. It never waits.
#[derive(Debug)]
pub struct Spans {
    ids: RandomIdGenerator,
    queue: Queue,
}

impl Spans {
    fn new(queue: Queue) -> Self {
        Self {
            ids: RandomIdGenerator::default(),
            queue,
        }
    }
}

impl Observer for Spans {
    fn wants_traces(&self) -> bool {
        true
    }

    /// What is not recorded makes no spans, so that the identifier of the caller's own is passed on.
    fn new_span(&self, parent: Option<&TraceContext>) -> Option<TraceContext> {
        Some(match parent {
            Some(parent) if !parent.is_sampled() => *parent,
            Some(parent) => TraceContext {
                span_id: u64::from_be_bytes(self.ids.new_span_id().to_bytes()),
                ..*parent
            },
            None => TraceContext {
                trace_id: u128::from_be_bytes(self.ids.new_trace_id().to_bytes()),
                span_id: u64::from_be_bytes(self.ids.new_span_id().to_bytes()),
                flags: TraceFlags::SAMPLED.to_u8(),
            },
        })
    }

    fn answered(&self, answered: &Answered<'_>) {
        if let Some(span) = answered.span.filter(|span| span.context.is_sampled())
            && !PROBES.contains(&answered.route)
        {
            self.queue.add(of_request(answered, &span, now()));
        }
    }

    fn model_call_traced(&self, call: &TracedCall<'_>) {
        if call.span.context.is_sampled() {
            self.queue.add(of_call(call, now()));
        }
    }
}

/// The longest name of a model that a span has, in characters, so that the queue takes bounded memory.
const MODEL: usize = 256;

/// The span of a request to this server. Its path and query are not in it, the template of its path is.
fn of_request(answered: &Answered<'_>, span: &Span, end: SystemTime) -> SpanData {
    let method = match answered.method {
        &Method::GET
        | &Method::HEAD
        | &Method::POST
        | &Method::PUT
        | &Method::PATCH
        | &Method::DELETE
        | &Method::OPTIONS => answered.method.as_str(),
        _ => "_OTHER",
    };
    let status = answered.status;
    let mut attributes = vec![
        KeyValue::new("http.request.method", method.to_owned()),
        KeyValue::new("http.response.status_code", i64::from(status)),
        KeyValue::new("agentcfg.request.id", answered.request_id.to_owned()),
    ];
    let shown = if method == "_OTHER" { "HTTP" } else { method };
    // A route that is none has no template: the name of the span is the method alone.
    let name = match answered.route.starts_with('/') {
        true => {
            attributes.push(KeyValue::new("http.route", answered.route));
            format!("{shown} {}", answered.route)
        }
        false => shown.to_owned(),
    };
    let failure = (status >= 500).then(|| Cow::Owned(status.to_string()));
    span_data(span, SpanKind::Server, name, (answered.took, end), attributes, failure)
}

/// The span of an attempt of a model call.
fn of_call(call: &TracedCall<'_>, end: SystemTime) -> SpanData {
    let ended = call.ended;
    let mut attributes = vec![
        KeyValue::new("gen_ai.operation.name", call.operation),
        KeyValue::new("gen_ai.provider.name", ended.provider.to_string()),
        KeyValue::new("gen_ai.agent.id", call.agent_id.to_owned()),
        KeyValue::new("gen_ai.agent.name", call.agent_name.to_owned()),
        KeyValue::new("gen_ai.agent.version", call.version.to_string()),
        KeyValue::new("agentcfg.request.id", call.request_id.to_owned()),
        KeyValue::new("agentcfg.attempt", i64::from(call.attempt)),
    ];
    let mut add = |name: &'static str, value: Value| attributes.push(KeyValue::new(name, value));
    // The caller chooses the name.
    let model: Option<String> = ended.model.as_ref().map(|model| model.chars().take(MODEL).collect());
    if let Some(model) = &model {
        add("gen_ai.request.model", model.clone().into());
    }
    if let Some(model) = call.response_model {
        add("gen_ai.response.model", model.to_owned().into());
    }
    if let Ok(url) = call.base_url.parse::<Uri>() {
        let https = url.scheme_str() == Some("https");
        let port = url.port_u16().unwrap_or(if https { 443 } else { 80 });
        add("server.address", url.host().unwrap_or_default().to_owned().into());
        add("server.port", i64::from(port).into());
    }
    if let Some(is_estimated) = call.is_estimated {
        let usage = &ended.usage;
        for (name, count) in [
            ("gen_ai.usage.input_tokens", Some(usage.input)),
            ("gen_ai.usage.output_tokens", Some(usage.output)),
            ("gen_ai.usage.cache_read.input_tokens", known(usage.cached_input)),
            ("gen_ai.usage.cache_creation.input_tokens", known(usage.cache_write)),
            ("gen_ai.usage.reasoning.output_tokens", known(usage.reasoning)),
        ] {
            if let Some(count) = count {
                add(name, i64::try_from(count).unwrap_or(i64::MAX).into());
            }
        }
        if is_estimated {
            add("agentcfg.usage.estimated", true.into());
        }
    }
    if ended.first_byte.is_some() {
        add("http.response.status_code", i64::from(ended.status).into());
    }
    let failure = match call.error {
        Some(kind) => Some(Cow::Borrowed(kind)),
        None => (ended.status >= 400).then(|| Cow::Owned(ended.status.to_string())),
    };
    let name = match &model {
        Some(model) => format!("{} {model}", call.operation),
        None => call.operation.to_owned(),
    };
    span_data(
        &call.span,
        SpanKind::Client,
        name,
        (call.took, end),
        attributes,
        failure,
    )
}

/// A count that a provider reports only where it is not 0.
fn known(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}

fn span_data(
    span: &Span,
    span_kind: SpanKind,
    name: String,
    (took, end_time): (Duration, SystemTime),
    mut attributes: Vec<KeyValue>,
    failure: Option<Cow<'static, str>>,
) -> SpanData {
    let context = &span.context;
    let status = match &failure {
        Some(_) => Status::error(""),
        None => Status::Unset,
    };
    attributes.extend(failure.map(|kind| KeyValue::new("error.type", kind)));
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(context.trace_id.to_be_bytes()),
            SpanId::from_bytes(context.span_id.to_be_bytes()),
            TraceFlags::new(context.flags),
            false,
            TraceState::default(),
        ),
        parent_span_id: span
            .parent
            .map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.to_be_bytes())),
        parent_span_is_remote: span.has_remote_parent,
        span_kind,
        name: name.into(),
        start_time: end_time.checked_sub(took).unwrap_or(end_time),
        end_time,
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status,
        instrumentation_scope: InstrumentationScope::builder(SCOPE)
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a time to report, no time that a rule depends on"
)]
fn now() -> SystemTime {
    SystemTime::now()
}
