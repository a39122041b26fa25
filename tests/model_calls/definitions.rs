//! What a definition adds to model calls: settings, and values of variables in the persona.

use serde_json::{Value, json};

use crate::fixture::stage;

const VARIABLES: &str = "agent-variables";

fn persona_of(path: &str, body: &Value) -> Value {
    match path {
        "openai/v1/chat/completions" => body["messages"][0]["content"].clone(),
        "openai/v1/responses" => body["instructions"].clone(),
        _ => body["system"].clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_gets_the_settings_that_it_lacks_and_stays_as_it_is_otherwise() {
    let stage = stage().await;
    let studio = stage.studio();
    let settings = json!({"temperature": 0.2, "tools": [{"type": "web_search"}], "reasoning_effort": "low"});
    for agent in ["writer", "poet"] {
        let definition = json!({"model_settings": settings, "tools": ["not sent"]});
        let change = json!({"definition": definition, "model": null, "persona_prompt": null});
        studio.change(agent, &change).expect(200);
    }
    for path in [
        "openai/v1/chat/completions",
        "openai/v1/responses",
        "anthropic/v1/messages",
    ] {
        let body = r#"{ "model":"claude-next", "temperature":1.50, "tools" : null, "messages":[] }"#;
        let call = stage.call_with(path, &studio.owner).text(body);
        let answer = call.send().await.whole().await;
        answer.expect(200);
        let seen = stage.upstream.seen().await;
        let expected = body.replacen('{', r#"{"reasoning_effort":"low","#, 1);
        assert_eq!(String::from_utf8_lossy(&seen.body), expected, "{path}");
    }
    // At other paths nothing is filled in.
    let call = stage.call_with("openai/v1/embeddings", &studio.owner);
    let body = json!({"model": "text-embedding-3-small", "input": "x"});
    call.json(&body).send().await.whole().await.expect(200);
    assert_eq!(stage.upstream.seen().await.json(), body);
}

#[tokio::test(flavor = "multi_thread")]
async fn declared_variables_of_the_persona_are_replaced() {
    let stage = stage().await;
    let studio = stage.studio();
    let definition = json!({"variables": {"product": {"required": true}, "tone": {"default": "dry"}, "rest": {}}});
    let persona = "For {{product}}, {{ tone }}{{rest}}, {{other}}. {{product}}";
    for agent in ["writer", "poet"] {
        let change = json!({"definition": definition, "persona_prompt": persona});
        studio.change(agent, &change).expect(200);
    }
    for path in [
        "openai/v1/chat/completions",
        "openai/v1/responses",
        "anthropic/v1/messages",
    ] {
        let call = || stage.call_with(path, &studio.owner).json(&json!({"messages": []}));
        let values = r#"{"product":"{{tone}} \u00e9","rest":"!"}"#;
        call().header(VARIABLES, values).send().await.whole().await.expect(200);
        let seen = stage.upstream.seen().await;
        assert_eq!(
            persona_of(path, &seen.json()),
            "For {{tone}} é, dry!, {{other}}. {{tone}} é"
        );
        assert_eq!(seen.header(VARIABLES), None, "it is not passed on");
        call().refused(400, &["variables.product is required"]).await;
    }
    // Without a place for the persona nothing is required, and a name that is not declared is refused all the same.
    let own = json!({"instructions": "mine", "input": "x"});
    let call = || stage.call_with("openai/v1/responses", &studio.owner).json(&own);
    call().send().await.whole().await.expect(200);
    assert_eq!(stage.upstream.seen().await.json()["instructions"], "mine");
    call()
        .header(VARIABLES, r#"{"unknown":"x"}"#)
        .refused(400, &["variables.unknown is not a variable of the agent"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persona_of_an_agent_without_variables_is_untouched() {
    let stage = stage().await;
    let studio = stage.studio();
    let persona = "{{product}} {{ tone }}";
    for definition in [Value::Null, json!({}), json!({"variables": {}})] {
        let change = json!({"definition": definition, "persona_prompt": persona});
        studio.change("writer", &change).expect(200);
        let call = || {
            stage
                .call_with("openai/v1/responses", &studio.owner)
                .json(&json!({"input": "x"}))
        };
        call().header(VARIABLES, "{}").send().await.whole().await.expect(200);
        assert_eq!(stage.upstream.seen().await.json()["instructions"], persona);
        call()
            .header(VARIABLES, r#"{"product":"x"}"#)
            .refused(400, &["variables.product is not a variable of the agent"])
            .await;
    }
    // Nothing is left of this one, so that it counts as absent.
    let change = json!({"definition": {"variables": {"all": {}}}, "persona_prompt": "{{all}}"});
    studio.change("writer", &change).expect(200);
    let call = stage.call_with("openai/v1/responses", &studio.owner);
    call.json(&json!({"input": "x"})).send().await.whole().await.expect(200);
    assert_eq!(stage.upstream.seen().await.json().get("instructions"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_cannot_be_read_are_refused() {
    let stage = stage().await;
    let studio = stage.studio();
    studio
        .change("writer", &json!({"definition": {"variables": {"a": {}}}}))
        .expect(200);
    let call = || {
        stage
            .call_with("openai/v1/responses", &studio.owner)
            .json(&json!({"input": "x"}))
    };
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(8192));
    for (values, said) in [
        ("", "Agent-Variables"),
        ("x", "Agent-Variables must be valid JSON"),
        ("[]", "Agent-Variables must be a JSON object of texts"),
        (r#"{"a":1}"#, "Agent-Variables must have a text as a"),
        (
            r#"{"a":"1","a":"2"}"#,
            "Agent-Variables must name each member of an object once",
        ),
        (
            r#"{"a":"\u0000"}"#,
            "Agent-Variables must not have a NUL character in a",
        ),
        (r#"{"a":"\ud800"}"#, "Agent-Variables must be valid JSON"),
        (r#"{"a":"é"}"#, "Agent-Variables must be ASCII"),
        (&long, "Agent-Variables must be at most 8192 bytes"),
    ] {
        let words = ["the header Agent-Variables", said];
        call().header(VARIABLES, values).refused(400, &words).await;
    }
    let twice = call().header(VARIABLES, "{}").header(VARIABLES, "{}");
    twice
        .refused(400, &["Agent-Variables must not be there more than once"])
        .await;
    let longest = format!(r#"{{"a":"{}"}}"#, "x".repeat(8192 - 8));
    call()
        .header(VARIABLES, &longest)
        .send()
        .await
        .whole()
        .await
        .expect(200);
    assert!(stage.upstream.seen().await.json()["instructions"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_what_a_call_would_fill_in() {
    let stage = stage().await;
    let studio = stage.studio();
    let render = |more: &str, body: Option<Value>| {
        let target = format!("/api/agents/prompt?agent_id=writer{more}");
        let request = studio.server.post(target).bearer(&studio.owner);
        match body {
            Some(body) => request.json(&body).send(),
            None => request.send(),
        }
    };
    let first = render("", None).expect(200).json();
    let expected = json!({
        "agent_id": "writer", "version": 1, "model": "gpt-5.5", "prompt": crate::fixture::PERSONA, "model_settings": {},
    });
    assert_eq!(first, expected);
    let definition = json!({"variables": {"p": {"required": true}}, "model_settings": {"b": 1, "a": [2]}});
    let change = json!({"definition": definition, "persona_prompt": "For {{p}}.", "model": ""});
    studio.change("writer", &change).expect(200);
    let text = render("", Some(json!({"variables": {"p": "x"}}))).expect(200);
    let expected =
        r#"{"agent_id":"writer","version":2,"model":null,"prompt":"For x.","model_settings":{"b":1,"a":[2]}}"#;
    assert_eq!(String::from_utf8(text.plain_body()).unwrap(), expected);
    for body in [None, Some(json!({})), Some(json!({"variables": null}))] {
        render("", body).refused(400, &["variables.p is required"]);
    }
    render("", Some(json!({"variables": {"q": "x", "r": 1}}))).refused(400, &["variables.r must be a string"]);
    render("", Some(json!({"variables": {"q": "x"}}))).refused(
        400,
        &["variables.q is not a variable of the agent; variables.p is required"],
    );
    render("", Some(json!({"variable": {}})))
        .refused(400, &["variable is not a known field (did you mean variables?)"]);
    assert_eq!(render("&version=1", None).expect(200).json()["version"], 1);
    assert_eq!(
        render("&label=latest", Some(json!({"variables": {"p": ""}})))
            .expect(200)
            .json()["prompt"],
        "For ."
    );
    render("&label=none", None).refused(404, &["has no label"]);
    render("&version=1&label=latest", None).refused(400, &["must not be given together"]);
    let client = studio.server.client(&studio.owner);
    let values = agentcfg_client::model::PromptValues::default();
    let rendered = client
        .render_prompt(Some(studio.id), "writer", 1, &values)
        .await
        .unwrap();
    assert_eq!(rendered.prompt.as_deref(), Some(crate::fixture::PERSONA));
    studio.change("writer", &json!({"persona_prompt": null})).expect(200);
    let without = render("", None).expect(200).json();
    assert_eq!(without["prompt"], Value::Null);
    studio.remove("writer").expect(200);
    render("", None).refused(404, &["writer"]);
}
