//! Fallback models, when the agent's fails before it answers.

use agentcfg_tests::harness::{Builder, free_address};
use serde_json::{Value, json};

use crate::fixture::{ConfigFile, Stage, stage_with};
use crate::providers::{to, with_agent, with_providers};
use crate::upstream::{Reply, events, whole};

fn fallbacks(models: &[&str]) -> Value {
    json!({"fallback_models": models})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_model_answers_where_the_agents_fails() {
    let (stage, further) = with_providers().await;
    let (_studio, key) = with_agent(
        &stage,
        "gpt-5.5",
        &fallbacks(&["gpt-7", "claude-sonnet-5-5", "llama-9", "qwen-9"]),
    );
    let call = || to(&stage, &key, "openai/@agent/v1/responses").json(&json!({"input": "x"}));
    for failure in [
        whole(408, &[], "slow"),
        whole(429, &[("retry-after", "9")], "busy"),
        whole(500, &[], "broken"),
        whole(529, &[], "overloaded"),
        Reply::Close,
    ] {
        stage.upstream.next(failure);
        let answer = call().send().await.whole().await.expect(200);
        assert_eq!(answer.header("agent-model"), Some("llama-9"));
        assert_eq!(answer.header("agent-attempts"), Some("2"));
        assert_eq!(stage.upstream.seen().await.json()["model"], "gpt-5.5");
        let second = further.seen().await;
        assert_eq!(
            (&*second.target, &second.json()["model"]),
            ("/serve/v1/responses", &json!("llama-9"))
        );
        assert_eq!(second.header("api-key"), Some("sk-vllm"));
        assert_eq!(second.header("authorization"), None);
    }
    // Three are asked, and the last failure is answered as it came.
    stage.upstream.next(whole(500, &[], "first"));
    further.next(whole(503, &[], "second"));
    further.next(whole(429, &[("retry-after", "7")], "third"));
    let answer = call().send().await.whole().await;
    assert_eq!((answer.status, &*answer.body), (429, &b"third"[..]));
    assert_eq!(answer.header("retry-after"), Some("7"));
    assert_eq!(
        (answer.header("agent-model"), answer.header("agent-attempts")),
        (Some("qwen-9"), Some("3"))
    );
    for _ in 0..2 {
        further.seen().await;
    }
    stage.upstream.seen().await;
    // Other refusals, and models that the request names, are not repeated.
    stage.upstream.next(whole(400, &[], "wrong"));
    assert_eq!(call().send().await.whole().await.status, 400);
    stage.upstream.next(whole(500, &[], "broken"));
    let named = to(&stage, &key, "openai/@agent/v1/responses").json(&json!({"model": "gpt-5.4-mini"}));
    let answer = named.send().await.whole().await;
    assert_eq!((answer.status, answer.header("agent-attempts")), (500, Some("1")));
    assert!(further.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fallback_that_no_budget_pays_for_is_passed_over() {
    let (stage, further) = with_providers().await;
    // Without a price, too dear, and one that the rest pays for.
    let models = ["llama-9", "gpt-5.4-mini", "qwen-9"];
    let (studio, key) = with_agent(&stage, "gpt-5.5", &fallbacks(&models));
    let budget = format!("/api/budgets?workspace_id={}&scope=workspace&period=total", studio.id);
    let budget = stage.server.request("PUT", budget).bearer(&studio.owner);
    budget.json(&json!({"limit_usd": "0.01"})).send().expect(200);
    stage.upstream.next(whole(500, &[], "broken"));
    let call = to(&stage, &key, "openai/@agent/v1/responses");
    let call = call.json(&json!({"input": "x", "max_output_tokens": 300}));
    let answer = call.send().await.whole().await.expect(200);
    assert_eq!(
        (answer.header("agent-model"), answer.header("agent-attempts")),
        (Some("qwen-9"), Some("2"))
    );
    assert_eq!(stage.upstream.seen().await.json()["model"], "gpt-5.5");
    assert_eq!(further.seen().await.json()["model"], "qwen-9");
    assert!(stage.upstream.has_no_unseen_request().await && further.has_no_unseen_request().await);
    // No call was refused, so that the budget has reached no threshold.
    let reached = |entry: &serde_json::Value| entry["action"] == "budget.threshold_reached";
    assert!(!studio.audit().iter().any(reached));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_first_byte_there_is_no_fallback() {
    let (stage, further) = with_providers().await;
    let (_studio, key) = with_agent(&stage, "gpt-5.5", &fallbacks(&["llama-9"]));
    let (reply, feed) = events();
    stage.upstream.next(reply);
    let call = to(&stage, &key, "openai/@agent/v1/responses").json(&json!({"stream": true}));
    let mut answer = call.send().await;
    feed.send("data: 1\n\n").await;
    answer.expect("data: 1\n\n").await;
    feed.cut().await;
    assert!(answer.next().await.is_err(), "a cut stream is a broken connection");
    assert!(further.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_bought_is_not_to_be_repeated() {
    let gone = free_address();
    let (stage, further) = with_providers().await;
    let (_studio, key) = with_agent(&stage, "llama-9", &fallbacks(&["gpt-5.5"]));
    let refused = async |first: Reply, stage: &Stage| {
        further.next(first);
        stage.upstream.next(Reply::Close);
        let call = to(stage, &key, "openai/@agent/v1/responses").json(&json!({"input": "x"}));
        call.refused(502, &["openai broke the connection"]).await
    };
    let answer = refused(whole(500, &[], "first"), &stage).await;
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(
        (answer.header("agent-model"), answer.header("agent-attempts")),
        (Some("gpt-5.5"), Some("2"))
    );

    // An attempt that reached nothing was not bought.
    let stage = stage_with(|builder| builder.set("openai_base_url", format!("http://{gone}"))).await;
    let (_studio, key) = with_agent(&stage, "gpt-5.5", &fallbacks(&["gpt-5.4-mini"]));
    let call = to(&stage, &key, "openai/@agent/v1/responses").json(&json!({"input": "x"}));
    let answer = call.refused(502, &["openai cannot be reached"]).await;
    assert_eq!(answer.header("x-should-retry"), Some("true"));
    assert_eq!(answer.header("agent-attempts"), Some("2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_model_without_a_credential_is_503() {
    let file = ConfigFile::new(
        r#"
        providers = [{ id = "vllm", api = "openai", base_url = "http://127.0.0.1:9" }]
        models = [{ id = "llama-9", provider = "vllm" }, { id = "gpt-5.5", provider = "openai" }]"#,
    );
    let stage = stage_with(|builder| file.arguments().into_iter().fold(builder, Builder::argument)).await;
    let (_studio, key) = with_agent(&stage, "llama-9", &fallbacks(&["gpt-5.5"]));
    let call = to(&stage, &key, "vllm/@agent/v1/responses").json(&json!({"input": "x"}));
    let refused = call.refused(503, &["no managed access to vllm"]).await;
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    assert!(stage.upstream.has_no_unseen_request().await);
}
