//! The usage of model calls through the real binary: what providers report, what is estimated, and where it shows.

use agentcfg_tests::harness::{Server, Studio, Wire, free_address, until};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::calls::Call;
use crate::fixture::{Stage, stage, stage_with};
use crate::upstream::{Reply, events, events_with, whole};

/// A call by the owner's API key of this studio.
fn call(stage: &Stage, key: &str, path: &str) -> Call {
    stage.call_with(path, key)
}

/// The rows of `GET /api/usage` with this query, once there are `calls` calls.
pub async fn usage(studio: &Studio<'_>, query: &str, calls: u64) -> Vec<Value> {
    let read = |query: &str| {
        let target = format!("/api/usage?workspace_id={}&{query}", studio.id);
        studio
            .server
            .get(target)
            .bearer(&studio.owner)
            .send()
            .expect(200)
            .json()
    };
    until("the ledger has the calls", || {
        let all = read("by=day");
        let count: u64 = all
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["calls"].as_u64().unwrap())
            .sum();
        (count >= calls).then_some(())
    });
    read(query).as_array().unwrap().clone()
}

fn calls(studio: &Studio<'_>) -> Vec<Value> {
    let target = format!("/api/usage/calls?workspace_id={}", studio.id);
    let answer = studio
        .server
        .get(target)
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json();
    answer.as_array().unwrap().clone()
}

fn answer(status: u16, body: &Value) -> Reply {
    whole(status, &[("content-type", "application/json")], body.to_string())
}

fn key(studio: &Studio<'_>) -> String {
    studio.key_with(&json!({"scope": "write", "rate_limit": 100_000})).key
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_each_api_are_counted_as_the_provider_reports_them() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = key(&studio);
    let reports = [
        (
            "openai/v1/chat/completions",
            json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100,
                   "prompt_tokens_details": {"cached_tokens": 400}, "completion_tokens_details": {"reasoning_tokens": 60}}}),
        ),
        (
            "openai/v1/responses",
            json!({"output": [], "usage": {"input_tokens": 10, "output_tokens": 1}}),
        ),
        (
            "openai/v1/embeddings",
            json!({"data": [], "usage": {"prompt_tokens": 8, "total_tokens": 8}}),
        ),
        (
            "anthropic/v1/messages",
            json!({"content": [], "usage": {"input_tokens": 10, "cache_creation_input_tokens": 100,
                   "cache_read_input_tokens": 1000, "output_tokens": 20}}),
        ),
    ];
    for (path, report) in &reports {
        stage.upstream.next(answer(200, report));
        let body = match *path {
            "openai/v1/embeddings" => json!({"model": "text-embedding-3-small", "input": "x"}),
            _ => json!({"messages": [], "input": "x", "max_tokens": 9}),
        };
        call(&stage, &key, path)
            .json(&body)
            .header("x-request-id", "my-id")
            .send()
            .await
            .whole()
            .await
            .expect(200);
    }
    let rows = usage(&studio, "by=provider,model", 4).await;
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            let number = |name: &str| row[name].as_u64().unwrap();
            (
                row["model"].as_str().unwrap(),
                [
                    number("input_tokens"),
                    number("cached_input_tokens"),
                    number("cache_write_tokens"),
                    number("output_tokens"),
                    number("reasoning_tokens"),
                ],
                row["cost_usd"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            // 10 × 2 + 1000 × 0.1 + 100 × 2.5 + 20 × 10
            ("claude-sonnet-5-5", [1110, 1000, 100, 20, 0], "0.00057"),
            // 610 × 5 + 400 × 0.5 + 101 × 30
            ("gpt-5.5", [1010, 400, 0, 101, 60], "0.00628"),
            ("text-embedding-3-small", [8, 0, 0, 0, 0], "0.00000016"),
        ]
    );
    let listed = calls(&studio);
    assert_eq!(listed.len(), 4);
    let first = &listed[3];
    for (field, expected) in [
        ("agent_id", json!("writer")),
        ("version", json!(1)),
        ("label", json!(null)),
        ("provider", json!("openai")),
        ("path", json!("v1/chat/completions")),
        ("credential", json!("managed")),
        ("status", json!(200)),
        ("stream", json!(false)),
        ("attempts", json!(1)),
        ("estimated", json!(false)),
        ("request_id", json!("my-id")),
    ] {
        assert_eq!(first[field], expected, "{field}");
    }
    assert_eq!(first["actor"]["type"], "api_key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_asked_for_its_usage_and_the_client_sees_nothing_of_it() {
    const CHUNK: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n";
    const EXTRA: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";
    let stage = stage().await;
    let studio = stage.studio();
    let key = key(&studio);
    let (without, with) = ([CHUNK, DONE].concat(), [CHUNK, EXTRA, DONE].concat());
    for (asks, coding, expected) in [(false, "", &without), (true, "", &with), (false, "Identity", &without)] {
        let (reply, feed) = events_with("content-encoding", coding);
        stage.upstream.next(reply);
        let mut body = json!({"messages": [], "stream": true});
        if asks {
            body["stream_options"] = json!({"include_usage": true});
        }
        let answer = call(&stage, &key, "openai/v1/chat/completions")
            .json(&body)
            .header("accept-encoding", "gzip")
            .send()
            .await;
        for piece in [CHUNK, &EXTRA[..20], &EXTRA[20..], DONE] {
            feed.send(piece.to_owned()).await;
        }
        drop(feed);
        assert_eq!(answer.whole().await.body, expected.as_bytes());
        let seen = stage.upstream.seen().await;
        assert_eq!(seen.json()["stream_options"], json!({"include_usage": true}));
        let coding = if asks { "gzip" } else { "identity" };
        assert_eq!(seen.header("accept-encoding"), Some(coding));
    }
    let rows = usage(&studio, "by=agent", 3).await;
    assert_eq!(
        (rows[0]["input_tokens"].as_u64(), rows[0]["output_tokens"].as_u64()),
        (Some(21), Some(9))
    );
    assert_eq!(rows[0]["estimated_calls"], 0);
    assert!(calls(&studio).iter().all(|call| call["stream"] == true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_reported_is_estimated_and_refusals_cost_nothing() {
    let stage = stage_with(|builder| builder.set("model_call_first_byte_timeout", "1")).await;
    let studio = stage.studio();
    let key = key(&studio);
    let body = json!({"model": "gpt-5.5", "input": "x"});
    let sent = body.to_string().len() as u64;
    let (_silent, released) = tokio::sync::oneshot::channel();
    // A provider that refuses; one that reports nothing; one that closes; one that is silent; a path without usage.
    for (path, reply, status) in [
        ("openai/v1/responses", answer(429, &json!({"error": {}})), 429),
        ("openai/v1/responses", answer(200, &json!({"output": "12345678"})), 200),
        ("openai/v1/responses", Reply::Close, 502),
        ("openai/v1/responses", Reply::Delayed(released), 504),
        (
            "anthropic/v1/messages/count_tokens",
            answer(200, &json!({"input_tokens": 7})),
            200,
        ),
    ] {
        stage.upstream.next(reply);
        let body = match path {
            "openai/v1/responses" => body.clone(),
            _ => json!({"messages": []}),
        };
        call(&stage, &key, path)
            .json(&body)
            .send()
            .await
            .whole()
            .await
            .expect(status);
    }
    let rows = usage(&studio, "by=status", 5).await;
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["status"].as_u64().unwrap(),
                row["calls"].as_u64().unwrap(),
                row["errors"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(shown, [(200, 2, 0), (429, 1, 1), (502, 1, 1), (504, 1, 1)]);
    let listed = calls(&studio);
    let of = |index: usize| {
        let call = &listed[listed.len() - 1 - index];
        let number = |name: &str| call[name].as_u64().unwrap();
        (
            number("input_tokens"),
            number("output_tokens"),
            call["estimated"].as_bool().unwrap(),
        )
    };
    assert_eq!(of(0), (0, 0, false), "the provider's refusal");
    // The body got the persona too.
    let passed = listed[listed.len() - 2]["input_tokens"].as_u64().unwrap();
    assert!(passed * 4 >= sent, "{passed} tokens of {sent} bytes");
    assert_eq!(of(1), (passed, 6, true), "{{\"output\":\"12345678\"}} has 21 bytes");
    for index in [2, 3] {
        assert_eq!(of(index), (passed, 0, true), "it may have been bought");
    }
    assert_eq!(of(4), (0, 0, false), "the path reports no usage");
    // No provider at all: nothing was bought.
    let unreachable = stage_with(|builder| builder.set("openai_base_url", "http://127.0.0.1:9")).await;
    let studio = unreachable.studio();
    let key = studio.key_with(&json!({"scope": "write"})).key;
    call(&unreachable, &key, "openai/v1/responses")
        .json(&body)
        .send()
        .await
        .whole()
        .await
        .expect(502);
    let rows = usage(&studio, "", 1).await;
    assert_eq!(
        (rows[0]["input_tokens"].as_u64(), rows[0]["cost_usd"].as_str()),
        (Some(0), Some("0"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_early_is_estimated() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = key(&studio);
    let begin =
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":700,\"output_tokens\":1}}}\n\n";
    // One stream breaks, of another one the caller leaves.
    for breaks in [true, false] {
        let (reply, feed) = events();
        stage.upstream.next(reply);
        let body = json!({"messages": [], "max_tokens": 9, "stream": true});
        let mut answer = call(&stage, &key, "anthropic/v1/messages").json(&body).send().await;
        feed.send(begin).await;
        answer.expect(begin).await;
        if breaks {
            feed.cut().await;
            assert!(answer.next().await.is_err());
        } else {
            drop(answer);
            feed.cancelled().await;
        }
    }
    let rows = usage(&studio, "by=model", 2).await;
    assert_eq!(
        (rows[0]["input_tokens"].as_u64(), rows[0]["estimated_calls"].as_u64()),
        (Some(1400), Some(2))
    );
    assert_eq!(
        rows[0]["output_tokens"].as_u64(),
        Some(2 * (begin.len() as u64).div_ceil(4))
    );
}

/// The provider takes the connection, and its TLS handshake never ends: it has got no request that it could bill.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_leaves_before_the_request_is_sent_buys_nothing() {
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", provider.local_addr().unwrap());
    let stage = stage_with(|builder| builder.set("openai_base_url", url)).await;
    let studio = stage.studio();
    let key = key(&studio);
    let body = json!({"input": "x".repeat(1000)});
    let silent = tokio::select! {
        answer = call(&stage, &key, "openai/v1/responses").json(&body).send() => panic!("{}", answer.status()),
        accepted = provider.accept() => accepted.unwrap(),
    };
    let rows = usage(&studio, "by=status", 1).await;
    let number = |name: &str| rows[0][name].as_u64().unwrap();
    let shown = ["status", "input_tokens", "output_tokens", "estimated_calls"].map(number);
    assert_eq!(shown, [499, 0, 0, 0]);
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graceful_stop_writes_all_and_metrics_name_no_agent() {
    let place = tempfile::tempdir().unwrap();
    let metrics = free_address();
    let data = place.path().join("data");
    let stage = stage_with(|builder| builder.data(&data).set("metrics_listen", metrics.to_string())).await;
    let (owner, id, key) = {
        let studio = stage.studio();
        (studio.owner.clone(), studio.id, key(&studio))
    };
    for _ in 0..3 {
        let report = json!({"usage": {"input_tokens": 10, "output_tokens": 2}});
        stage.upstream.next(answer(200, &report));
        let body = json!({"input": "x"});
        let call = stage.call_with("openai/v1/responses", &key).json(&body);
        call.send().await.whole().await.expect(200);
    }
    let shown = Wire::connect(metrics)
        .send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .receive("GET");
    let shown = String::from_utf8(shown.unwrap().body).unwrap();
    for line in [
        "agentcfg_model_calls_total{provider=\"openai\",model=\"gpt-5.5\",status=\"200\"} 3",
        "agentcfg_model_tokens_total{provider=\"openai\",model=\"gpt-5.5\",type=\"input\"} 30",
        "agentcfg_model_tokens_total{provider=\"openai\",model=\"gpt-5.5\",type=\"output\"} 6",
        "agentcfg_model_cost_usd_total{provider=\"openai\",model=\"gpt-5.5\"} 0.00033",
        "agentcfg_model_call_duration_seconds_count{provider=\"openai\",model=\"gpt-5.5\"} 3",
        "agentcfg_model_call_first_byte_seconds_count{provider=\"openai\",model=\"gpt-5.5\"} 3",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert!(!shown.contains("writer"));
    stage.server.stop();
    let server = Server::builder().data(&data).start();
    let target = format!("/api/usage?workspace_id={id}&by=version,label");
    let rows = server.get(target).bearer(&owner).send().expect(200).json();
    assert_eq!(
        (rows[0]["calls"].as_u64(), rows[0]["input_tokens"].as_u64()),
        (Some(3), Some(30))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_attempt_of_a_fallback_is_a_call() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = key(&studio);
    let fields = json!({"model": "gpt-5.5", "definition": {"fallback_models": ["gpt-6-sol", "gpt-5.4-mini"]}});
    studio.create("careful", &fields).expect(201);
    stage.upstream.next(answer(429, &json!({"error": {}})));
    stage.upstream.next(Reply::Close);
    let report = json!({"usage": {"input_tokens": 10, "output_tokens": 2}});
    stage.upstream.next(answer(200, &report));
    let target = "/api/agents/model-calls/openai/@careful/v1/responses";
    let call = Call::to(stage.server.address(), target).bearer(&key);
    let answered = call.json(&json!({"input": "x"})).send().await.whole().await.expect(200);
    assert_eq!(answered.header("agent-attempts"), Some("3"));
    usage(&studio, "", 3).await;
    let shown: Vec<_> = calls(&studio)
        .iter()
        .rev()
        .map(|call| {
            (
                call["model"].clone(),
                call["status"].clone(),
                call["attempts"].clone(),
                call["estimated"].clone(),
            )
        })
        .collect();
    let expected = [
        (json!("gpt-5.5"), json!(429), json!(1), json!(false)),
        (json!("gpt-6-sol"), json!(502), json!(2), json!(true)),
        (json!("gpt-5.4-mini"), json!(200), json!(3), json!(false)),
    ];
    assert_eq!(shown, expected);
}
