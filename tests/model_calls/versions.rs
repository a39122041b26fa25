//! Calls with the model and the persona of a version that the caller selects.

use serde_json::json;

use crate::fixture::{PERSONA, stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_takes_the_version_that_it_names_and_no_other() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = studio.key_with(&json!({"scope": "admin", "rate_limit": 100_000})).key;
    let second = json!({"model": "gpt-5.4-mini", "persona_prompt": "Second."});
    studio.change("writer", &second).expect(200);
    studio
        .change("writer", &json!({"model": null, "persona_prompt": null}))
        .expect(200);
    let target = "/api/agents/labels?agent_id=writer&label=production";
    let released = studio
        .server
        .put(target)
        .bearer(&key)
        .json(&json!({"version": 2}))
        .send();
    released.expect(200);
    let call = |more: &str| {
        let call = stage
            .call_with("openai/v1/responses", &key)
            .json(&json!({"input": "x"}));
        if more.is_empty() { call } else { call.and(more) }
    };
    for (more, version, model, persona) in [
        ("version=1", "1", json!("gpt-5.5"), json!(PERSONA)),
        ("version=2", "2", json!("gpt-5.4-mini"), json!("Second.")),
        ("label=production", "2", json!("gpt-5.4-mini"), json!("Second.")),
        ("label=latest", "3", json!(null), json!(null)),
        ("", "3", json!(null), json!(null)),
    ] {
        let answer = call(more).send().await.whole().await.expect(200);
        assert_eq!(answer.header("agent-version"), Some(version), "{more}");
        let seen = stage.upstream.seen().await;
        assert_eq!(seen.target, "/v1/responses", "neither parameter is passed on");
        let body = seen.json();
        assert_eq!((&body["model"], &body["instructions"]), (&model, &persona), "{more}");
    }
    for (more, status, said) in [
        ("version=4", 404, "has no version 4"),
        ("version=0", 404, "has no version 0"),
        ("label=staging", 404, "has no label"),
        ("version=1&label=production", 400, "must not be given together"),
        ("version=x", 400, "version must be a whole number"),
    ] {
        call(more).refused(status, &[said]).await;
    }
    // The model of the version is checked like that of a request.
    let other = stage
        .call_with("anthropic/v1/messages", &key)
        .of("writer")
        .and("version=1");
    other
        .json(&json!({"max_tokens": 1, "messages": []}))
        .refused(400, &["gpt-5.5"])
        .await;
    assert!(stage.upstream.has_no_unseen_request().await);
    studio.remove("writer").expect(200);
    call("version=1").refused(404, &["not found"]).await;
}
