//! Clients that know a base URL and a key alone: the agent is in the path, and the key where their SDK sends it.

use agentcfg_tests::harness::Request;
use serde_json::{Value, json};

use crate::calls::Call;
use crate::fixture::{PERSONA, Stage, stage};

fn to(stage: &Stage, path: &str) -> Call {
    Call::to(stage.server.address(), &format!("/api/agents/model-calls/{path}")).json(&json!({"input": "x"}))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_names_the_agent_and_its_version() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = studio.key_with(&json!({"scope": "admin", "rate_limit": 100_000})).key;
    studio
        .change("writer", &json!({"persona_prompt": "Second."}))
        .expect(200);
    let label = "/api/agents/labels?agent_id=writer&label=production";
    let released = studio.server.put(label).bearer(&key).json(&json!({"version": 1}));
    released.send().expect(200);
    for (agent, version, persona) in [
        ("@writer", "2", "Second."),
        ("%40writer", "2", "Second."),
        ("@writer:production", "1", PERSONA),
        ("%40writer%3Aproduction", "1", PERSONA),
        ("@writer:1", "1", PERSONA),
        ("@writer:latest", "2", "Second."),
    ] {
        let call = to(&stage, &format!("openai/{agent}/v1/responses?trace=7")).bearer(&key);
        let answer = call.send().await.whole().await.expect(200);
        assert_eq!(answer.header("agent-version"), Some(version), "{agent}");
        assert_eq!(answer.header("agent-model"), Some("gpt-5.5"), "{agent}");
        let seen = stage.upstream.seen().await;
        assert_eq!(seen.target, "/v1/responses?trace=7", "{agent}");
        assert_eq!(seen.json()["instructions"], persona, "{agent}");
    }
    for (path, status, said) in [
        ("openai/@writer/v1/responses?agent_id=writer", 400, "once"),
        ("openai/@writer:1/v1/responses?version=1", 400, "once"),
        ("openai/@writer:1/v1/responses?label=production", 400, "once"),
        ("openai/@writer/v1/responses?version=9", 404, "has no version 9"),
        ("openai/@writer:none/v1/responses", 404, "has no label"),
        ("openai/@unknown/v1/responses", 404, "not found"),
        ("openai/v1/responses", 400, "agent_id"),
    ] {
        to(&stage, path).bearer(&key).refused(status, &[said]).await;
    }
    let by_query = to(&stage, "openai/@writer/v1/responses?version=1").bearer(&key);
    assert_eq!(
        by_query.send().await.whole().await.expect(200).header("agent-version"),
        Some("1")
    );
    stage.upstream.seen().await;
    assert!(stage.upstream.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_may_be_where_the_sdks_of_providers_send_it() {
    let stage = stage().await;
    let key = stage.key();
    let path = "anthropic/@poet/v1/messages";
    for field in ["x-api-key", "api-key"] {
        to(&stage, path)
            .header(field, &key)
            .send()
            .await
            .whole()
            .await
            .expect(200);
        let seen = stage.upstream.seen().await;
        assert!(!format!("{seen:?}").contains(&key), "the key stays here");
        // A cookie beside it counts for nothing.
        let call = to(&stage, path)
            .header(field, &key)
            .header("cookie", "agentcfg-session=x");
        call.send().await.whole().await.expect(200);
        stage.upstream.seen().await;
    }
    // With `Authorization`, that alone counts.
    let call = to(&stage, path).header("x-api-key", "placeholder").bearer(&key);
    call.send().await.whole().await.expect(200);
    stage.upstream.seen().await;
    let wrong = to(&stage, path).header("x-api-key", &key).bearer("svc_live_x");
    wrong.refused(401, &[]).await;
    for (first, second) in [
        ("x-api-key", "api-key"),
        ("x-api-key", "x-api-key"),
        ("api-key", "api-key"),
    ] {
        let call = to(&stage, path).header(first, &key).header(second, &key);
        call.refused(401, &["once"]).await;
    }
    to(&stage, path).header("x-api-key", "").refused(401, &["empty"]).await;
    to(&stage, path).refused(401, &["missing credentials"]).await;
    // Other endpoints take it in `Authorization` alone.
    let list = stage.server.get("/api/whoami").header("x-api-key", &key);
    list.send().refused(401, &["missing credentials"]);
    assert!(stage.upstream.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_the_form_of_the_provider() {
    let stage = stage().await;
    let key = stage.key();
    let send = |method: &str, path: &str, prepare: fn(Request, &str) -> Request| {
        let request = stage.server.request(method, format!("/api/agents/model-calls/{path}"));
        prepare(request.json(&json!({})), &key).send()
    };
    let with_key = |request: Request, key: &str| request.bearer(key);
    let without = |request: Request, _: &str| request;
    for (method, rest, status, openai, anthropic, prepare) in [
        (
            "POST",
            "v1/x",
            401,
            "authentication_error",
            "authentication_error",
            without as fn(Request, &str) -> Request,
        ),
        (
            "POST",
            "v1/x",
            400,
            "invalid_request_error",
            "invalid_request_error",
            with_key,
        ),
        (
            "POST",
            "@none/v1/x",
            404,
            "invalid_request_error",
            "not_found_error",
            with_key,
        ),
        ("POST", "..", 404, "invalid_request_error", "not_found_error", with_key),
        (
            "OPTIONS",
            "v1/x",
            405,
            "invalid_request_error",
            "invalid_request_error",
            with_key,
        ),
    ] {
        let of_openai = send(method, &format!("openai/{rest}"), prepare).expect(status);
        let body = of_openai.json();
        assert_eq!(
            (&body["error"]["type"], &body["error"]["param"]),
            (&json!(openai), &Value::Null),
            "{body}"
        );
        let of_anthropic = send(method, &format!("anthropic/{rest}"), prepare).expect(status);
        let body = of_anthropic.json();
        assert_eq!(
            (&body["type"], &body["error"]["type"]),
            (&json!("error"), &json!(anthropic)),
            "{body}"
        );
        assert_eq!(body["request_id"], of_anthropic.need("x-request-id"));
        assert_eq!(of_anthropic.need("request-id"), of_anthropic.need("x-request-id"));
        assert!(!of_anthropic.error().is_empty() && !of_openai.error().is_empty());
    }
    // Of a provider that is not known, there is no form.
    let unknown = send("POST", "other/v1/x", with_key).expect(404).json();
    assert!(unknown["error"].is_string(), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_that_are_counted_are_those_of_the_call() {
    let stage = stage().await;
    let call = to(&stage, "anthropic/@poet/v1/messages/count_tokens").bearer(&stage.key());
    call.send().await.whole().await.expect(200);
    let body = stage.upstream.seen().await.json();
    assert_eq!(
        (&body["model"], &body["system"]),
        (&json!("claude-sonnet-5-5"), &json!(PERSONA))
    );
}
