//! Model calls with API keys that are limited to an agent and pinned to a label.

use serde_json::{Value, json};

use crate::calls::Call;
use crate::fixture::stage;
use crate::usage::usage;

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_one_agent_says_which_agent_and_which_label() {
    let stage = stage().await;
    let studio = stage.studio();
    studio.create("other", &json!({"model": "gpt-5.5"})).expect(201);
    studio.change("writer", &json!({"model": "gpt-5.4-mini"})).expect(200);
    let target = format!(
        "/api/agents/labels?workspace_id={}&agent_id=writer&label=production",
        studio.id
    );
    let set = studio.server.put(target).bearer(&studio.owner);
    set.json(&json!({"version": 1})).send().expect(200);
    let key = |more: Value| {
        let mut fields = json!({"scope": "write", "rate_limit": 100_000, "agents": ["writer"]});
        fields
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        studio.key_with(&fields).key
    };
    let pinned = key(json!({"label": "production", "permissions": ["models:invoke"]}));
    let call = |key: &str, path: &str| {
        let call = Call::to(
            stage.server.address(),
            &format!("/api/agents/model-calls/openai/{path}"),
        );
        call.bearer(key).json(&json!({"input": "x"}))
    };
    for path in [
        "v1/responses",
        "v1/responses?agent_id=writer",
        "v1/responses?label=production",
        "@writer/v1/responses",
        "@writer:production/v1/responses",
    ] {
        let answer = call(&pinned, path).send().await.whole().await.expect(200);
        assert_eq!(answer.header("agent-version"), Some("1"), "{path}");
        let seen = stage.upstream.seen().await;
        assert_eq!(
            (&*seen.target, &seen.json()["model"]),
            ("/v1/responses", &json!("gpt-5.5")),
            "{path}"
        );
    }
    let not_the_pin = "pinned to the label \"production\"";
    for (path, said) in [
        ("@writer:latest/v1/responses", not_the_pin),
        ("@writer:1/v1/responses", not_the_pin),
        ("v1/responses?label=latest", not_the_pin),
        ("v1/responses?version=1", not_the_pin),
        ("@other/v1/responses", "\"other\" is none of them"),
        ("v1/responses?agent_id=other", "\"other\" is none of them"),
        ("v1/responses?agent_id=No%20Agent", "is none of them"),
    ] {
        call(&pinned, path).refused(403, &[said]).await;
    }
    // The call counts for the label that the key is pinned to.
    let rows = usage(&studio, "by=agent,label,version", 5).await;
    assert_eq!(
        (&rows[0]["agent"], &rows[0]["label"], &rows[0]["version"], rows.len()),
        (&json!("writer"), &json!("production"), &json!(1), 1)
    );

    let free = key(json!({}));
    let answer = call(&free, "v1/responses").send().await.whole().await.expect(200);
    assert_eq!(answer.header("agent-version"), Some("2"));
    stage.upstream.seen().await;
    let answer = call(&free, "v1/responses?label=production")
        .send()
        .await
        .whole()
        .await
        .expect(200);
    assert_eq!(answer.header("agent-version"), Some("1"));
    stage.upstream.seen().await;
    for more in [json!({"agents": ["writer", "other"]}), json!({"agents": null})] {
        call(&key(more), "v1/responses")
            .refused(400, &["agent_id is required"])
            .await;
    }
    assert!(stage.upstream.has_no_unseen_request().await);
}
