use std::collections::BTreeMap;

use agentcfg_core::AgentCfg;
use agentcfg_core::model::{NewAgent, NewWorkspace, Provider, TokenUsage};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::service::{CallFacts, EndedCall, ModelRequest};
use agentcfg_core::store::MemoryStore;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;

use super::*;

const CALLER: TraceContext = TraceContext {
    trace_id: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
    span_id: 0xb7ad_6b71_6920_3331,
    flags: 1,
};

fn spans() -> (Spans, mpsc::Receiver<SpanData>) {
    let (queue, receiver) = Queue::of_length(8, Counter::default());
    (Spans::new(queue), receiver)
}

/// A span below [`CALLER`].
fn child(spans: &Spans) -> Span {
    Span {
        context: spans.new_span(Some(&CALLER)).unwrap(),
        parent: Some(CALLER.span_id),
        has_remote_parent: true,
    }
}

fn answered<'a>(method: &'a Method, route: &'static str, status: u16, span: Span) -> Answered<'a> {
    Answered {
        method,
        route,
        status,
        refused: false,
        took: Duration::from_millis(30),
        request_id: "r-1",
        caller: None,
        refused_key: None,
        client: None,
        bytes: None,
        span: Some(span),
    }
}

pub(super) fn a_span() -> SpanData {
    let span = child(&spans().0);
    of_request(&answered(&Method::GET, "/api/models", 200, span), &span, now())
}

fn attributes(span: &SpanData) -> BTreeMap<String, String> {
    let shown = |pair: &KeyValue| (pair.key.to_string(), pair.value.to_string());
    span.attributes.iter().map(shown).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// A call of `gpt-5.5` that ends so.
async fn ended(status: u16, usage: Option<TokenUsage>, is_answered: bool) -> EndedCall {
    let service = AgentCfg::builder(MemoryStore::new())
        .managed_credential(Provider::OPENAI, ProviderCredential::new("sk-managed").unwrap())
        .build();
    let ada = service.trusted_user("ada").unwrap();
    let studio = service
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap();
    let mut writer = NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer");
    writer.model = Some("gpt-5.5".into());
    service.create_agent(&ada, writer).await.unwrap();
    let request = ModelRequest::new(Provider::OPENAI, "v1/responses");
    let call = service
        .resolve_model_call(&ada, None, "writer", &request)
        .await
        .unwrap();
    assert_eq!(call.agent_name, "Writer");
    let mut meter = service.meter(&call, &call.first, CallFacts::default().model("gpt-5.5".to_owned()));
    if is_answered {
        meter.answered(false);
    }
    meter.end(status, usage, false)
}

fn traced<'a>(span: Span, ended: &'a EndedCall) -> TracedCall<'a> {
    TracedCall {
        span,
        took: Duration::from_millis(250),
        operation: "chat",
        base_url: "https://api.openai.com",
        agent_id: "writer",
        agent_name: "Writer",
        version: 7,
        attempt: 2,
        request_id: "r-1",
        response_model: Some("gpt-5.5-2026-11-01"),
        is_estimated: Some(false),
        error: None,
        ended,
    }
}

#[test]
fn spans_are_of_the_trace_of_their_parent() {
    let (spans, _) = spans();
    let below = spans.new_span(Some(&CALLER)).unwrap();
    assert_eq!((below.trace_id, below.flags), (CALLER.trace_id, CALLER.flags));
    assert!(below.span_id != CALLER.span_id && below.span_id != 0);
    let (one, other) = (spans.new_span(None).unwrap(), spans.new_span(None).unwrap());
    assert!(one.is_sampled() && one.trace_id != other.trace_id && one.trace_id != 0);
    let unsampled = TraceContext { flags: 0, ..CALLER };
    assert_eq!(spans.new_span(Some(&unsampled)), Some(unsampled));
}

#[test]
fn a_request_is_a_server_span_by_its_route() {
    let (spans, mut queue) = spans();
    let span = child(&spans);
    let route = "/api/agents/configs/{agent_id}";
    spans.answered(&answered(&Method::PUT, route, 404, span));
    let made = queue.try_recv().unwrap();
    assert_eq!(
        (&*made.name, &made.span_kind),
        ("PUT /api/agents/configs/{agent_id}", &SpanKind::Server)
    );
    let expected = [
        ("http.request.method", "PUT"),
        ("http.route", route),
        ("http.response.status_code", "404"),
        ("agentcfg.request.id", "r-1"),
    ];
    assert_eq!(attributes(&made), pairs(&expected));
    assert_eq!((&made.status, made.parent_span_is_remote), (&Status::Unset, true));
    assert_eq!(u64::from_be_bytes(made.parent_span_id.to_bytes()), CALLER.span_id);
    assert_eq!(
        made.span_context.span_id().to_bytes(),
        span.context.span_id.to_be_bytes()
    );
    assert_eq!(made.span_context.trace_id().to_bytes(), CALLER.trace_id.to_be_bytes());
    assert_eq!(
        made.end_time.duration_since(made.start_time).unwrap(),
        Duration::from_millis(30)
    );

    let brew = Method::from_bytes(b"BREW").unwrap();
    let root = Span {
        parent: None,
        has_remote_parent: false,
        ..span
    };
    spans.answered(&answered(&brew, "none", 503, root));
    let made = queue.try_recv().unwrap();
    let all = attributes(&made);
    assert_eq!((&*made.name, made.parent_span_id), ("HTTP", SpanId::INVALID));
    assert_eq!(
        (&*all["http.request.method"], &*all["error.type"], all.get("http.route")),
        ("_OTHER", "503", None)
    );
    assert_eq!(made.status, Status::error(""));

    // Probes, and what the caller does not record, make none.
    spans.answered(&answered(&Method::GET, "/readyz", 200, span));
    let context = TraceContext {
        flags: 0,
        ..span.context
    };
    spans.answered(&answered(&Method::GET, "/api/models", 200, Span { context, ..span }));
    spans.answered(&Answered {
        span: None,
        ..answered(&Method::GET, "/api/models", 200, span)
    });
    assert!(queue.try_recv().is_err());
}

#[tokio::test]
async fn an_attempt_is_a_client_span_of_the_conventions_for_generative_ai() {
    let (spans, mut queue) = spans();
    let usage = TokenUsage {
        input: 20,
        cached_input: 8,
        cache_write: 0,
        output: 9,
        reasoning: 4,
    };
    let call = ended(200, Some(usage), true).await;
    spans.model_call_traced(&traced(child(&spans), &call));
    let made = queue.try_recv().unwrap();
    assert_eq!((&*made.name, &made.span_kind), ("chat gpt-5.5", &SpanKind::Client));
    assert_eq!(made.status, Status::Unset);
    assert_eq!(u64::from_be_bytes(made.parent_span_id.to_bytes()), CALLER.span_id);
    let expected = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "gpt-5.5"),
        ("gen_ai.response.model", "gpt-5.5-2026-11-01"),
        ("gen_ai.agent.id", "writer"),
        ("gen_ai.agent.name", "Writer"),
        ("gen_ai.agent.version", "7"),
        ("gen_ai.usage.input_tokens", "20"),
        ("gen_ai.usage.output_tokens", "9"),
        ("gen_ai.usage.cache_read.input_tokens", "8"),
        ("gen_ai.usage.reasoning.output_tokens", "4"),
        ("server.address", "api.openai.com"),
        ("server.port", "443"),
        ("http.response.status_code", "200"),
        ("agentcfg.request.id", "r-1"),
        ("agentcfg.attempt", "2"),
    ];
    assert_eq!(attributes(&made), pairs(&expected));
}

#[tokio::test]
async fn a_failed_attempt_says_how_it_failed() {
    let (spans, mut queue) = spans();
    for (status, is_answered, error, kind) in [
        (429, true, None, Some("429")),
        (502, false, Some("unreachable"), Some("unreachable")),
        (200, true, Some("connection_broken"), Some("connection_broken")),
        (200, true, None, None),
    ] {
        let call = ended(status, None, is_answered).await;
        let failed = TracedCall {
            error,
            response_model: None,
            is_estimated: None,
            ..traced(child(&spans), &call)
        };
        spans.model_call_traced(&failed);
        let made = queue.try_recv().unwrap();
        let all = attributes(&made);
        assert_eq!(all.get("error.type").map(String::as_str), kind);
        assert_eq!(made.status == Status::error(""), kind.is_some());
        assert_eq!(all.contains_key("http.response.status_code"), is_answered);
        assert!(!all.contains_key("gen_ai.usage.input_tokens"), "{all:?}");
    }
    let call = ended(200, Some(TokenUsage::default()), true).await;
    let estimated = TracedCall {
        is_estimated: Some(true),
        base_url: "http://10.0.0.7:8000/v1",
        ..traced(child(&spans), &call)
    };
    spans.model_call_traced(&estimated);
    let all = attributes(&queue.try_recv().unwrap());
    let of = |name: &str| all.get(name).map(String::as_str);
    assert_eq!(
        (of("agentcfg.usage.estimated"), of("gen_ai.usage.output_tokens")),
        (Some("true"), Some("0"))
    );
    assert_eq!(
        (of("server.address"), of("server.port")),
        (Some("10.0.0.7"), Some("8000"))
    );
}
