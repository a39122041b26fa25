//! The agent's model and persona in the bodies of model calls.

use serde_json::{Value, json};

use crate::fixture::{PERSONA, stage};

#[tokio::test(flavor = "multi_thread")]
async fn missing_fields_are_filled_in_from_the_agent() {
    let stage = stage().await;
    let key = stage.key();
    let system = json!({"role": "system", "content": PERSONA});
    let user = json!({"role": "user", "content": "hi"});
    let cases = [
        (
            "openai/v1/chat/completions",
            json!({"messages": [user], "stream": false}),
            json!({"model": "gpt-5.5", "messages": [system, user], "stream": false}),
        ),
        (
            "openai/v1/chat/completions",
            json!({"model": "gpt-6-sol", "messages": [{"role": "developer", "content": "mine"}]}),
            json!({"model": "gpt-6-sol", "messages": [{"role": "developer", "content": "mine"}]}),
        ),
        (
            "openai/v1/responses",
            json!({"input": "hi", "model": null}),
            json!({"input": "hi", "model": "gpt-5.5", "instructions": PERSONA}),
        ),
        (
            "openai/v1/responses",
            json!({"input": "hi", "instructions": "mine"}),
            json!({"input": "hi", "model": "gpt-5.5", "instructions": "mine"}),
        ),
        (
            "anthropic/v1/messages",
            json!({"max_tokens": 5, "messages": [user]}),
            json!({"max_tokens": 5, "messages": [user], "model": "claude-sonnet-5-5", "system": PERSONA}),
        ),
        (
            "anthropic/v1/messages",
            json!({"model": "claude-next", "system": [{"type": "text", "text": "mine"}], "messages": []}),
            json!({"model": "claude-next", "system": [{"type": "text", "text": "mine"}], "messages": []}),
        ),
    ];
    for (path, sent, expected) in cases {
        let answer = stage
            .call_with(path, &key)
            .json(&sent)
            .send()
            .await
            .whole()
            .await
            .expect(200);
        assert_eq!(stage.upstream.seen().await.json(), expected);
        assert_eq!(answer.json()["model"], expected["model"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_uses_the_current_record_of_the_agent() {
    let stage = stage().await;
    let studio = stage.studio();
    let call = || {
        stage
            .call_with("openai/v1/responses", &studio.owner)
            .json(&json!({"input": "hi"}))
    };
    let mut seen = Vec::new();
    for change in [
        json!({"model": "gpt-6-sol"}),
        json!({"persona_prompt": "new"}),
        json!({"persona_prompt": null}),
        json!({"persona_prompt": ""}),
        json!({"model": null}),
    ] {
        studio.change("writer", &change).expect(200);
        call().send().await.whole().await.expect(200);
        let body = stage.upstream.seen().await.json();
        seen.push((body["model"].clone(), body["instructions"].clone()));
    }
    let none = Value::Null;
    let expected = [
        (json!("gpt-6-sol"), json!(PERSONA)),
        (json!("gpt-6-sol"), json!("new")),
        (json!("gpt-6-sol"), none.clone()),
        (json!("gpt-6-sol"), none.clone()),
        (none.clone(), none),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_be_called_here_is_refused() {
    let stage = stage().await;
    let studio = stage.studio();
    let call = |path: &str, body: Value| stage.call_with(path, &studio.owner).json(&body);
    // The agent's own model, and one that the request names.
    studio.change("writer", &json!({"model": "gpt-7"})).expect(200);
    call("openai/v1/chat/completions", json!({"messages": []}))
        .refused(400, &["gpt-7", "coming soon"])
        .await;
    call("openai/v1/embeddings", json!({"model": "gpt-7", "input": "x"}))
        .refused(400, &["gpt-7", "coming soon"])
        .await;
    studio
        .change("writer", &json!({"model": "claude-haiku-5-5"}))
        .expect(200);
    call("openai/v1/responses", json!({}))
        .refused(400, &["claude-haiku-5-5", "anthropic", "openai"])
        .await;
    call("anthropic/v1/messages", json!({"model": "gpt-5.5"}))
        .refused(400, &["gpt-5.5", "openai"])
        .await;
    // Escapes in the name do not matter, and a duplicate is refused.
    let escaped = r#"{"m\u006fdel":"gpt-\u0037"}"#;
    let call_text = |body: &'static str| stage.call_with("openai/v1/responses", &studio.owner).text(body);
    call_text(escaped).refused(400, &["gpt-7", "coming soon"]).await;
    call_text(r#"{"model":"gpt-5.5","model":"gpt-7"}"#)
        .refused(400, &["model", "more than once"])
        .await;
    assert!(stage.upstream.has_no_unseen_request().await);
    // A model in the request replaces the agent's, and one that the catalogue does not know passes.
    call("openai/v1/responses", json!({"model": "gpt-5.5"}))
        .send()
        .await
        .whole()
        .await
        .expect(200);
    call("openai/v1/responses", json!({"model": "o9"}))
        .send()
        .await
        .whole()
        .await
        .expect(200);
}
