//! Budgets through the real binary: what a call reserves, how its cap is lowered, and how it is refused.

use agentcfg_tests::harness::{Server, Studio, until};
use serde_json::{Value, json};

use crate::calls::Call;
use crate::fixture::{MANAGED, new_key, save_key, stage, stage_with};
use crate::upstream::{Reply, Upstream, events, whole};

/// `PUT /api/budgets` as the owner.
fn set(studio: &Studio<'_>, budget: &str, limit: &Value) -> Value {
    let target = format!("/api/budgets?workspace_id={}&{budget}", studio.id);
    let request = studio.server.put(target).bearer(&studio.owner);
    request.json(limit).send().expect(200).json()
}

fn budgets(studio: &Studio<'_>) -> Vec<Value> {
    let target = format!("/api/budgets?workspace_id={}", studio.id);
    let answer = studio.server.get(target).bearer(&studio.owner).send().expect(200);
    answer.json().as_array().unwrap().clone()
}

fn spent(studio: &Studio<'_>) -> String {
    budgets(studio)[0]["spent_usd"].as_str().unwrap().to_owned()
}

fn used(input: u64, output: u64) -> Reply {
    let body = json!({"output": [], "usage": {"input_tokens": input, "output_tokens": output}});
    whole(200, &[("content-type", "application/json")], body.to_string())
}

fn key(studio: &Studio<'_>) -> String {
    studio.key_with(&json!({"scope": "write", "rate_limit": 100_000})).key
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_held_to_what_the_budget_pays_for() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = key(&studio);
    let call = |body: &Value| stage.call_with("openai/v1/responses", &key).json(body);
    let month = set(&studio, "scope=workspace&period=month", &json!({"limit_usd": 0.1}));
    assert_eq!(
        (
            &month["limit_usd"],
            &month["action"],
            &month["scope_id"],
            &month["spent_usd"]
        ),
        (&json!("0.1"), &json!("refuse"), &json!(null), &json!("0"))
    );

    // The cap of the body is passed on as it is while the budget pays for it: gpt-5.5 costs 5 and 30 USD a million
    // tokens.
    stage.upstream.next(used(100, 1000));
    let sent = json!({"input": "x", "max_output_tokens": 2000});
    call(&sent).send().await.whole().await.expect(200);
    assert_eq!(stage.upstream.seen().await.json()["max_output_tokens"], 2000);
    assert_eq!(spent(&studio), "0.0305");

    // A body without one gets what was reserved, which is lowered to what the rest pays for: 0.0695 USD less the input.
    stage.upstream.next(used(10, 10));
    call(&json!({"input": "x"})).send().await.whole().await.expect(200);
    let seen = stage.upstream.seen().await;
    let tokens = (seen.body.len() as u64).div_ceil(3);
    let expected = (69_500_000 - tokens * 5_000) / 30_000;
    assert_eq!(seen.json()["max_output_tokens"], expected, "{seen:?}");
    assert_eq!(spent(&studio), "0.03085");

    // Less than 256 tokens are not worth a call.
    stage.upstream.next(used(0, 2290));
    call(&json!({"input": "x"})).send().await.whole().await.expect(200);
    stage.upstream.seen().await;
    let refused = call(&sent).refused(
        402,
        &["the budget of the workspace does not pay for this call: its limit is 0.1 USD a month"],
    );
    let refused = refused.await;
    let error = &refused.json()["error"];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("insufficient_quota"), &json!("insufficient_quota"))
    );
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    assert_eq!(refused.header("agent-model"), Some("gpt-5.5"));
    let poet = stage
        .call_with("anthropic/v1/messages", &key)
        .json(&json!({"max_tokens": 50_000, "messages": []}));
    let refused = poet.refused(402, &["0.1 USD a month"]).await;
    assert_eq!(refused.json()["error"]["type"], "billing_error");
    // What costs nothing is passed on.
    let counted = stage.call_with("anthropic/v1/messages/count_tokens", &key);
    counted
        .json(&json!({"messages": []}))
        .send()
        .await
        .whole()
        .await
        .expect(200);
    stage.upstream.seen().await;

    // A failure of the provider costs nothing.
    set(&studio, "scope=workspace&period=month", &json!({"limit_usd": "0.2"}));
    let before = spent(&studio);
    stage.upstream.next(whole(500, &[], "broken"));
    assert_eq!(call(&sent).send().await.whole().await.status, 500);
    stage.upstream.seen().await;
    assert_eq!(spent(&studio), before);
    assert_eq!(budgets(&studio)[0]["reserved_usd"], "0");

    // A body that does not say what it can cost is refused.
    call(&json!({"input": "x", "max_output_tokens": "many"}))
        .refused(400, &["max_output_tokens must be a whole number"])
        .await;
    set(
        &studio,
        "scope=agent&scope_id=writer&period=day",
        &json!({"limit_usd": 1000}),
    );
    call(&json!({"input": "x", "model": "unpriced"}))
        .refused(402, &["the model \"unpriced\" has no price"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_holds_what_it_reserves_until_its_end() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = key(&studio);
    set(&studio, "scope=workspace&period=total", &json!({"limit_usd": "1"}));
    let (reply, feed) = events();
    stage.upstream.next(reply);
    let body = json!({"messages": [], "stream": true, "max_completion_tokens": 1000});
    let mut answer = stage
        .call_with("openai/v1/chat/completions", &key)
        .json(&body)
        .send()
        .await;
    let seen = stage.upstream.seen().await;
    let reserved = (seen.body.len() as u64).div_ceil(3) * 5_000 + 1000 * 30_000;
    let expected = format!("0.{reserved:09}");
    assert_eq!(budgets(&studio)[0]["reserved_usd"], expected.trim_end_matches('0'));
    feed.send("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10}}\n\n")
        .await;
    feed.send("data: [DONE]\n\n").await;
    drop(feed);
    while answer.next().await.unwrap().is_some() {}
    until("the budget has the cost", || (spent(&studio) == "0.0008").then_some(()));
    assert_eq!(budgets(&studio)[0]["reserved_usd"], "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_spent_survives_a_restart_and_a_kill_is_settled() {
    let data = tempfile::tempdir().unwrap();
    let stage = stage_with(|builder| builder.data(data.path())).await;
    let studio = stage.studio();
    let key = key(&studio);
    set(&studio, "scope=workspace&period=total", &json!({"limit_usd": "1"}));
    stage.upstream.next(used(100, 1000));
    let sent = json!({"input": "x", "max_output_tokens": 2000});
    let call = stage.call_with("openai/v1/responses", &key).json(&sent);
    call.send().await.whole().await.expect(200);
    stage.upstream.seen().await;
    let (id, owner) = (studio.id, studio.owner.clone());
    let read = |server: &Server, method: &str| {
        let target = format!("/api/budgets{method}?workspace_id={id}");
        let request = if method.is_empty() {
            server.get(target)
        } else {
            server.post(target)
        };
        let answer = request.bearer(&owner).send().expect(200).json();
        ["spent_usd", "reserved_usd", "unsettled_usd"].map(|name| answer[0][name].as_str().unwrap().to_owned())
    };
    let again = |upstream: &Upstream| {
        Server::builder()
            .set("openai_base_url", upstream.url())
            .set("openai_api_key", MANAGED)
            .data(data.path())
            .start()
    };
    stage.server.stop();
    let server = again(&stage.upstream);
    assert_eq!(read(&server, ""), ["0.0305", "0", "0"], "a graceful stop gives back");

    // A call is in flight when the server is killed: it may have cost what it had reserved.
    let (reply, feed) = events();
    stage.upstream.next(reply);
    let target = "/api/agents/model-calls/openai/v1/responses?agent_id=writer";
    let call = Call::to(server.address(), target).bearer(&key).json(&sent);
    let answer = call.send().await;
    stage.upstream.seen().await;
    server.kill();
    drop((answer, feed));
    let server = again(&stage.upstream);
    let [spent, reserved, unsettled] = read(&server, "");
    assert_eq!((&*spent, &*reserved), ("0.0305", "0"));
    assert!(
        unsettled.as_str() >= "0.06",
        "the slice with the reservation: {unsettled}"
    );
    assert_eq!(read(&server, "/settle"), ["0.0305", "0", "0"]);
}

/// A response that is made in the background is answered before it is made, and is paid for up to its cap.
#[tokio::test(flavor = "multi_thread")]
async fn a_background_response_costs_its_cap_where_no_usage_is_reported() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = key(&studio);
    set(&studio, "scope=workspace&period=month", &json!({"limit_usd": "1"}));
    let call = |body: &Value| stage.call_with("openai/v1/responses", &key).json(body);
    let queued = r#"{"id":"resp_1","status":"queued","usage":null}"#;
    stage
        .upstream
        .next(whole(200, &[("content-type", "application/json")], queued));
    let sent = json!({"input": "x", "background": true, "max_output_tokens": 1000});
    call(&sent).send().await.whole().await.expect(200);
    stage.upstream.seen().await;
    let usd: f64 = spent(&studio).parse().unwrap();
    assert!(
        (0.03..0.0305).contains(&usd),
        "1,000 tokens of output at 30 USD a million: {usd}"
    );
    // What is reported counts instead.
    stage.upstream.next(used(0, 10));
    call(&sent).send().await.whole().await.expect(200);
    stage.upstream.seen().await;
    let both: f64 = spent(&studio).parse().unwrap();
    assert!((both - usd - 0.0003).abs() < 1e-9, "{both}");
    // A cap may be written with a fraction of zeros.
    stage
        .upstream
        .next(whole(200, &[("content-type", "application/json")], queued));
    let sent = json!({"input": "x", "background": true, "max_output_tokens": 1000.0});
    call(&sent).send().await.whole().await.expect(200);
    stage.upstream.seen().await;
    let all: f64 = spent(&studio).parse().unwrap();
    assert!((0.03..0.0305).contains(&(all - both)), "{all}");
}

/// Which of several models a gateway chooses, and so what it costs, is not known.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_models_is_refused_by_a_budget_that_refuses() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = key(&studio);
    save_key(&studio, "openai", &new_key());
    let body = json!({"messages": [], "models": ["gpt-5.5-pro"]});
    let call = || stage.call_with("openai/v1/chat/completions", &key).json(&body);
    let place = "scope=workspace&period=month";
    set(&studio, place, &json!({"limit_usd": "1"}));
    let refused = call().send().await.whole().await;
    let text = refused.json()["error"]["message"].to_string();
    assert_eq!(refused.status, 402, "{text}");
    assert!(text.contains("list of models"), "{text}");
    set(&studio, place, &json!({"limit_usd": "1", "action": "warn"}));
    stage.upstream.next(used(10, 10));
    call().send().await.whole().await.expect(200);
}

/// A call that no budget covers may say what it wants: its body is the provider's.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_no_budget_covers_is_not_read() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = key(&studio);
    save_key(&studio, "openai", &new_key());
    let body = json!({"messages": [], "model": "gpt-5.5", "max_tokens": -1, "n": true});
    let call = || stage.call_with("openai/v1/chat/completions", &key).json(&body);
    studio.create("other", &json!({})).expect(201);
    set(
        &studio,
        "scope=agent&scope_id=other&period=month",
        &json!({"limit_usd": "1"}),
    );
    stage.upstream.next(used(10, 10));
    call().send().await.whole().await.expect(200);
    assert_eq!(stage.upstream.seen().await.json()["max_tokens"], -1);
    set(&studio, "scope=workspace&period=month", &json!({"limit_usd": "1"}));
    call()
        .refused(
            400,
            &["max_tokens must be a whole number", "because a budget covers this call"],
        )
        .await;
}
