//! Spans of requests and model calls, which an OpenTelemetry collector gets.

use agentcfg_tests::harness::{Builder, Run, Wire, eventually, free_address, hex, until};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::json;

use crate::calls::Call;
use crate::collector::{Collector, Span, attribute};
use crate::egress::{CREDENTIALS, Proxy};
use crate::fixture::{Stage, stage, stage_with};
use crate::upstream::{Reply, events, whole};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
const MODEL_CALLS: &str = "/api/agents/model-calls/{provider}/{path}";

fn traceparent() -> String {
    format!("00-{TRACE}-{CALLER}-01")
}

/// A stage whose spans go to a collector.
async fn traced(more: impl FnOnce(Builder) -> Builder) -> (Stage, Collector) {
    let collector = Collector::start().await;
    let url = collector.url();
    let stage = stage_with(|builder| more(builder.set("otlp_endpoint", url))).await;
    (stage, collector)
}

fn is_call(span: &Span) -> bool {
    span.kind == SpanKind::Client as i32
}

fn is_request(span: &Span) -> bool {
    span.kind == SpanKind::Server as i32
}

/// Whether a span is that of the request of a model call.
fn is_model_call(span: &Span) -> bool {
    is_request(span) && attribute(span, "http.route").as_deref() == Some(MODEL_CALLS)
}

#[track_caller]
fn has(span: &Span, attributes: &[(&str, &str)]) {
    for (name, value) in attributes {
        assert_eq!(attribute(span, name).as_deref(), Some(*value), "{name}: {span:#?}");
    }
}

#[track_caller]
fn has_not(span: &Span, attributes: &[&str]) {
    for name in attributes {
        assert_eq!(attribute(span, name), None, "{span:#?}");
    }
}

fn is_error(span: &Span) -> bool {
    span.status
        .as_ref()
        .is_some_and(|status| status.code == StatusCode::Error as i32)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_attempt_is_a_span_below_that_of_the_caller_and_the_provider_continues_it() {
    let (stage, collector) = traced(|builder| {
        builder
            .set("otlp_headers", "x-tenant=seven%20or%208")
            .env("OTEL_SERVICE_NAME", "models")
            .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    })
    .await;
    let studio = stage.studio();
    let fields = json!({
        "display_name": "The careful one", "model": "gpt-5.5", "persona_prompt": "canary-persona",
        "definition": {"fallback_models": ["gpt-5.4-mini"]},
    });
    studio.create("careful", &fields).expect(201);
    let key = studio.key_with(&json!({"scope": "write", "rate_limit": 100_000})).key;
    let report = json!({
        "model": "gpt-5.4-mini-2026-11-01", "choices": [{"message": {"content": "canary-answer"}}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}},
    });
    stage.upstream.next(whole(429, &[], "canary-refusal"));
    stage
        .upstream
        .next(whole(200, &[("content-type", "application/json")], report.to_string()));
    let target = "/api/agents/model-calls/openai/@careful/v1/chat/completions";
    let call = Call::to(stage.server.address(), target).bearer(&key);
    let call = call
        .header("traceparent", &traceparent())
        .header("x-request-id", "request-7");
    let body = json!({"messages": [{"role": "user", "content": "canary-prompt"}]});
    call.json(&body).send().await.whole().await.expect(200);

    let calls = collector.spans(2, is_call).await;
    for (span, attempt) in calls.iter().zip(["1", "2"]) {
        assert_eq!(
            (hex(&span.trace_id), hex(&span.parent_span_id)),
            (TRACE.to_owned(), CALLER.to_owned())
        );
        let seen = stage.upstream.seen().await;
        let expected = format!("00-{TRACE}-{}-01", hex(&span.span_id));
        assert_eq!(seen.header("traceparent"), Some(&*expected));
        has(
            span,
            &[
                ("gen_ai.operation.name", "chat"),
                ("gen_ai.provider.name", "openai"),
                ("gen_ai.agent.id", "careful"),
                ("gen_ai.agent.name", "The careful one"),
                ("gen_ai.agent.version", "1"),
                ("server.address", "127.0.0.1"),
                ("agentcfg.request.id", "request-7"),
                ("agentcfg.attempt", attempt),
            ],
        );
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
    }
    let [refused, answered] = &calls[..] else {
        unreachable!()
    };
    assert_eq!((&*refused.name, is_error(refused)), ("chat gpt-5.5", true));
    has(refused, &[("gen_ai.request.model", "gpt-5.5"), ("error.type", "429")]);
    has_not(refused, &["gen_ai.response.model", "gen_ai.usage.input_tokens"]);
    assert_eq!((&*answered.name, is_error(answered)), ("chat gpt-5.4-mini", false));
    has(
        answered,
        &[
            ("gen_ai.request.model", "gpt-5.4-mini"),
            ("gen_ai.response.model", "gpt-5.4-mini-2026-11-01"),
            ("gen_ai.usage.input_tokens", "20"),
            ("gen_ai.usage.output_tokens", "9"),
            ("gen_ai.usage.cache_read.input_tokens", "8"),
            ("http.response.status_code", "200"),
        ],
    );
    has_not(answered, &["error.type", "agentcfg.usage.estimated"]);

    let request = collector.spans(1, is_model_call).await.remove(0);
    assert_eq!(request.name, format!("POST {MODEL_CALLS}"));
    assert_eq!(
        (hex(&request.trace_id), hex(&request.parent_span_id)),
        (TRACE.to_owned(), CALLER.to_owned())
    );
    has(
        &request,
        &[
            ("http.request.method", "POST"),
            ("http.response.status_code", "200"),
            ("agentcfg.request.id", "request-7"),
        ],
    );

    let received = collector.received(0, |_| true).await;
    assert!(
        received.targets.iter().all(|target| target == "POST /v1/traces"),
        "{:?}",
        received.targets
    );
    for headers in &received.headers {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert_eq!(headers["x-tenant"], "seven or 8");
    }
    assert_eq!(received.resource("service.name").as_deref(), Some("models"));
    assert_eq!(
        received.resource("service.version").as_deref(),
        Some(env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(
        received.resource("deployment.environment.name").as_deref(),
        Some("test")
    );
    let text = String::from_utf8_lossy(&received.bytes);
    assert!(!text.contains("canary") && !text.contains(&key), "content in the spans");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_caller_the_request_begins_the_trace() {
    let collector = Collector::start().await;
    let url = collector.url();
    // By the standard variable.
    let stage = stage_with(|builder| builder.env("OTEL_EXPORTER_OTLP_ENDPOINT", url)).await;
    let call = stage
        .call("anthropic/v1/messages")
        .json(&json!({"stream": true, "max_tokens": 9}));
    call.send().await.whole().await.expect(200);
    let call = collector.spans(1, is_call).await.remove(0);
    assert_eq!(call.name, "chat claude-sonnet-5-5");
    has(
        &call,
        &[
            ("gen_ai.provider.name", "anthropic"),
            ("gen_ai.response.model", "claude-sonnet-5-5"),
            ("gen_ai.agent.id", "poet"),
        ],
    );
    let request = collector.spans(1, is_model_call).await.remove(0);
    assert_eq!(
        (&request.trace_id, &request.span_id),
        (&call.trace_id, &call.parent_span_id)
    );
    assert_eq!(hex(&request.parent_span_id), "");
    let seen = stage.upstream.seen().await;
    let expected = format!("00-{}-{}-01", hex(&call.trace_id), hex(&call.span_id));
    assert_eq!(seen.header("traceparent"), Some(&*expected));
    // Other requests have spans too, probes have none.
    stage.server.get("/readyz").send().expect(200);
    stage
        .server
        .get("/api/agents/configs?workspace_id=x")
        .send()
        .expect(401);
    let listed = |span: &Span| is_request(span) && span.name == "GET /api/agents/configs";
    let refused = collector.spans(1, listed).await.remove(0);
    has(&refused, &[("http.response.status_code", "401")]);
    assert!(!is_error(&refused));
    let probes = collector.received(0, |_| true).await.spans;
    assert!(probes.iter().all(|span| !span.name.contains("readyz")));
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_say_how_a_call_has_failed() {
    let (stage, collector) = traced(|builder| builder).await;
    let key = stage.key();
    let call = |body| stage.call_with("openai/v1/responses", &key).json(&body);
    stage.upstream.next(Reply::Close);
    assert_eq!(call(json!({"input": "x"})).send().await.status(), 502);
    let span = collector.spans(1, is_call).await.remove(0);
    has(&span, &[("error.type", "connection_broken")]);
    has_not(&span, &["http.response.status_code"]);

    // One that breaks off, and one whose caller leaves.
    for (index, kind) in ["connection_broken", "caller_left"].into_iter().enumerate() {
        let (reply, feed) = events();
        stage.upstream.next(reply);
        let mut answer = call(json!({"input": "x", "stream": true})).send().await;
        feed.send("data: {}\n\n").await;
        answer.expect("data: {}\n\n").await;
        if kind == "caller_left" {
            drop(answer);
            feed.cancelled().await;
        } else {
            feed.cut().await;
            assert!(answer.next().await.is_err());
        }
        let span = collector.spans(index + 2, is_call).await.pop().unwrap();
        has(
            &span,
            &[
                ("error.type", kind),
                ("http.response.status_code", "200"),
                ("agentcfg.usage.estimated", "true"),
            ],
        );
        assert!(is_error(&span));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_the_caller_does_not_record_passes_without_spans() {
    let (stage, collector) = traced(|builder| builder).await;
    let key = stage.key();
    let unsampled = format!("00-{TRACE}-{CALLER}-00");
    for traceparent in [&unsampled, &traceparent()] {
        let call = stage
            .call_with("openai/v1/embeddings", &key)
            .header("traceparent", traceparent);
        call.json(&json!({"model": "text-embedding-3-small", "input": "x"}))
            .send()
            .await
            .whole()
            .await
            .expect(200);
    }
    let span = collector.spans(1, is_call).await.remove(0);
    assert_eq!(span.name, "embeddings text-embedding-3-small");
    has(
        &span,
        &[
            ("gen_ai.operation.name", "embeddings"),
            ("gen_ai.usage.input_tokens", "1"),
        ],
    );
    collector.spans(1, is_model_call).await;
    assert_eq!(stage.upstream.seen().await.header("traceparent"), Some(&*unsampled));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_no_trace_goes_to_the_provider() {
    let stage = stage().await;
    let call = stage.call("openai/v1/responses").header("traceparent", &traceparent());
    call.json(&json!({"input": "x"})).send().await.whole().await.expect(200);
    assert_eq!(stage.upstream.seen().await.header("traceparent"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graceful_stop_sends_what_is_left() {
    let (stage, collector) = traced(|builder| builder).await;
    let key = stage.key();
    for _ in 0..20 {
        let call = stage
            .call_with("openai/v1/responses", &key)
            .json(&json!({"input": "x"}));
        call.send().await.whole().await.expect(200);
    }
    stage.server.stop();
    collector.spans(20, is_call).await;
    collector.spans(20, is_model_call).await;
    assert!(!stage.server.stderr().contains("dropped"), "{}", stage.server.stderr());
}

/// The number of dropped spans, by the metrics.
fn dropped(metrics: std::net::SocketAddr) -> u64 {
    let answer = Wire::connect(metrics)
        .send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .receive("GET");
    let text = String::from_utf8(answer.unwrap().body).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("agentcfg_spans_dropped_total "));
    line.expect("the metric").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_costs_its_spans_and_one_line() {
    let (metrics, nowhere) = (free_address(), free_address());
    let stage = stage_with(|builder| {
        builder
            .set("metrics_listen", metrics.to_string())
            .set("otlp_endpoint", format!("http://{nowhere}"))
    })
    .await;
    assert_eq!(dropped(metrics), 0);
    let key = stage.key();
    let mut last = 0;
    // Several batches fail.
    for _ in 0..3 {
        let call = stage
            .call_with("openai/v1/responses", &key)
            .json(&json!({"input": "x"}));
        call.send().await.whole().await.expect(200);
        last = until("spans are dropped", || {
            Some(dropped(metrics)).filter(|count| *count >= last + 2)
        });
    }
    stage.server.stop();
    let log = stage.server.stderr();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("dropped")).collect();
    assert!(matches!(lines.len(), 1 | 2), "one, and perhaps one at the stop: {log}");
    assert!(
        lines[0].contains("spans for otlp_endpoint were dropped: cannot connect"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collector_refuses_is_counted() {
    let metrics = free_address();
    let (stage, collector) = traced(|builder| builder.set("metrics_listen", metrics.to_string())).await;
    collector.answer(503);
    let call = stage.call("openai/v1/responses").json(&json!({"input": "x"}));
    call.send().await.whole().await.expect(200);
    collector.spans(1, is_call).await;
    collector.spans(1, is_model_call).await;
    let sent = collector.received(0, |_| true).await.spans.len() as u64;
    eventually("they are counted", || dropped(metrics) == sent);
    assert!(
        stage.server.stderr().contains("it answered 503"),
        "{}",
        stage.server.stderr()
    );
    // It is asked again.
    collector.answer(200);
    stage.server.get("/api/models").send().expect(401);
    collector.spans(1, |span| span.name == "GET /api/models").await;
    assert_eq!(dropped(metrics), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_collector_holds_up_neither_requests_nor_the_stop() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let stage = stage_with(|builder| builder.set("otlp_endpoint", url)).await;
    let key = stage.key();
    for _ in 0..20 {
        let call = stage
            .call_with("openai/v1/responses", &key)
            .json(&json!({"input": "x"}));
        call.send().await.whole().await.expect(200);
    }
    stage.server.stop();
    let log = stage.server.stderr();
    assert!(log.contains("spans for otlp_endpoint were dropped: "), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_go_through_the_proxy_of_the_deployment() {
    let proxy = Proxy::start().await;
    let url = proxy.url();
    let (stage, collector) = traced(|builder| builder.set("outbound_proxy", url)).await;
    stage.server.get("/api/models").send().expect(401);
    collector.spans(1, |span| span.name == "GET /api/models").await;
    let target = format!("POST {}/v1/traces {CREDENTIALS}", collector.url());
    assert_eq!(proxy.seen().first(), Some(&target));
}

#[test]
fn what_cannot_be_sent_refuses_the_start() {
    let data = tempfile::tempdir().unwrap();
    let run = Run::new(["serve"])
        .in_dir(data.path())
        .env("AGENTCFG_OTLP_ENDPOINT", "http://collector:4317");
    let run = run.env("AGENTCFG_OTLP_PROTOCOL", "grpc");
    run.finish()
        .failed_with(&["AGENTCFG_OTLP_PROTOCOL", "http/protobuf", "usually 4318"]);
}
