//! Further providers, other methods, and the models that managed credentials pay for.

use agentcfg_tests::harness::{Builder, Studio};
use hyper::Method;
use serde_json::{Value, json};

use crate::calls::Call;
use crate::fixture::{ConfigFile, MANAGED, PERSONA, Stage, new_key, save_key, stage, stage_with};
use crate::upstream::{Reply, Upstream, whole};

/// A stage with the providers `vllm` and `claude-proxy`, and one upstream for both.
pub async fn with_providers() -> (Stage, Upstream) {
    let further = Upstream::start().await;
    let url = further.url();
    let file = ConfigFile::new(&format!(
        r#"
        providers = [
            {{ id = "vllm", api = "openai", base_url = "{url}/serve/v1", auth_header = "api-key", display_name = "vLLM" }},
            {{ id = "claude-proxy", api = "anthropic", base_url = "{url}/proxy" }},
        ]
        provider_api_keys = {{ vllm = "sk-vllm" }}
        models = [
            {{ id = "gpt-5.5", provider = "openai", input_price = 1, output_price = 2 }},
            {{ id = "gpt-5.4-mini", provider = "openai", input_price = 1000, output_price = 1000 }},
            {{ id = "gpt-7", provider = "openai", status = "coming_soon" }},
            {{ id = "claude-sonnet-5-5", provider = "anthropic" }},
            {{ id = "llama-9", provider = "vllm" }},
            {{ id = "qwen-9", provider = "vllm", input_price = 1, output_price = 2 }},
        ]"#,
    ));
    let stage = stage_with(|builder| {
        let builder = file.arguments().into_iter().fold(builder, Builder::argument);
        builder
            .set("managed_models", "catalogue")
            .set("provider_api_key_claude_proxy", "sk-claude-proxy")
    });
    (stage.await, further)
}

/// A call with a credential, of an agent in the path.
pub fn to(stage: &Stage, key: &str, path: &str) -> Call {
    Call::to(stage.server.address(), &format!("/api/agents/model-calls/{path}")).bearer(key)
}

/// A workspace with an agent of this model and definition, and a key for calls.
pub fn with_agent<'a>(stage: &'a Stage, model: &str, definition: &serde_json::Value) -> (Studio<'a>, String) {
    let studio = stage.studio();
    let fields = json!({"model": model, "persona_prompt": PERSONA, "definition": definition});
    studio.create("agent", &fields).expect(201);
    let key = studio.key_with(&json!({"scope": "write", "rate_limit": 100_000})).key;
    (studio, key)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_further_provider_is_called_like_the_two() {
    let (stage, further) = with_providers().await;
    let (studio, key) = with_agent(&stage, "llama-9", &json!({"model_settings": {"temperature": 0.5}}));
    // With and without the version in the path; the base URL has it.
    for path in ["v1/chat/completions", "chat/completions"] {
        let call = to(&stage, &key, &format!("vllm/@agent/{path}?trace=1")).json(&json!({"messages": []}));
        let answer = call.send().await.whole().await.expect(200);
        assert_eq!(answer.header("agent-model"), Some("llama-9"));
        assert_eq!(answer.header("agent-attempts"), Some("1"));
        let seen = further.seen().await;
        assert_eq!(seen.target, "/serve/v1/chat/completions?trace=1");
        assert_eq!(
            (seen.header("api-key"), seen.header("authorization")),
            (Some("sk-vllm"), None)
        );
        let body = seen.json();
        assert_eq!((&body["model"], &body["temperature"]), (&json!("llama-9"), &json!(0.5)));
        assert_eq!(body["messages"][0]["content"], PERSONA);
    }
    // Where the model is filled in, it decides about the provider.
    let call = to(&stage, &key, "openai/@agent/v1/responses").json(&json!({"input": "x"}));
    call.send().await.whole().await.expect(200);
    assert_eq!(further.seen().await.target, "/serve/v1/responses");
    let call = to(&stage, &key, "openai/@agent/v1/responses").json(&json!({"model": "llama-9"}));
    call.refused(400, &["is one of vllm, this call goes to openai"]).await;
    let call = to(&stage, &key, "anthropic/@agent/v1/messages").json(&json!({"messages": []}));
    call.refused(400, &["does not speak the API"]).await;

    let call = to(&stage, &key, "claude-proxy/@agent/v1/messages").json(&json!({"model": "claude-x", "messages": []}));
    call.refused(403, &["\"claude-x\" needs the workspace's own key for claude-proxy"])
        .await;
    let own = new_key();
    save_key(&studio, "claude-proxy", &own);
    let call = to(&stage, &key, "claude-proxy/@agent/v1/messages").json(&json!({"model": "claude-x", "messages": []}));
    call.send().await.whole().await.expect(200);
    let seen = further.seen().await;
    assert_eq!(
        (&*seen.target, seen.header("x-api-key")),
        ("/proxy/v1/messages", Some(&*own))
    );
    assert!(seen.header("anthropic-version").is_some());

    let call = to(&stage, &key, "acme/@agent/v1/responses").json(&json!({}));
    let unknown = call.send().await.whole().await;
    let error = "a model call names its provider: openai, anthropic, or one of the setting providers";
    assert_eq!((unknown.status, unknown.json()), (404, json!({ "error": error })));
    let keys = stage
        .server
        .get(format!("/api/provider-keys?workspace_id={}", studio.id));
    let keys = keys.bearer(&studio.owner).send().expect(200).json();
    assert_eq!(keys[0]["provider"], "claude-proxy");
    let models = stage.server.get(format!("/api/models?workspace_id={}", studio.id));
    let models = models.bearer(&studio.owner).send().expect(200).json();
    assert_eq!(
        (&models[4]["provider"], &models[4]["credential"]),
        (&json!("vllm"), &json!("managed"))
    );
    assert!(stage.upstream.has_no_unseen_request().await && further.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_passed_on_with_the_workspaces_own_key() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = studio.key_with(&json!({"scope": "write", "rate_limit": 100_000})).key;
    let path = "/api/agents/model-calls/openai/@writer/v1/batches/b1?include[]=a&include[]=b";
    for method in ["GET", "PUT", "PATCH", "DELETE"] {
        let refused = stage.server.request(method, path).bearer(&key).send();
        refused.refused(403, &["other methods than POST", "own key for openai"]);
    }
    let own = new_key();
    save_key(&studio, "openai", &own);
    for (method, body) in [
        (Method::GET, ""),
        (Method::PUT, r#"{"a": 1}"#),
        (Method::PATCH, ""),
        (Method::DELETE, ""),
    ] {
        let mut request = stage.server.request(method.as_str(), path).bearer(&key);
        if !body.is_empty() {
            request = request.text(body);
        }
        request.send().expect(200);
        let seen = stage.upstream.seen().await;
        assert_eq!(
            (&seen.method, &*seen.target),
            (&method, "/v1/batches/b1?include[]=a&include[]=b")
        );
        assert_eq!(seen.body, body);
        assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {own}")));
    }
    // A path is passed on as it is written.
    for path in ["v1/models/ft:gpt-4o-mini:acme::abc", "v1/files/a%20b+c(1)%C3%A9"] {
        for target in [
            format!("openai/@writer/{path}"),
            format!("openai/{path}?agent_id=writer"),
        ] {
            let target = format!("/api/agents/model-calls/{target}");
            stage.server.request("GET", target).bearer(&key).send().expect(200);
            assert_eq!(stage.upstream.seen().await.target, format!("/{path}"));
        }
    }
    // Variables that the agent does not declare are refused whatever the method.
    let path = "/api/agents/model-calls/openai/@writer/v1/models";
    let request = stage
        .server
        .get(path)
        .bearer(&key)
        .header("agent-variables", r#"{"zz":"1"}"#);
    request
        .send()
        .refused(400, &["variables.zz is not a variable of the agent"]);
    // Nothing is filled in but with POST.
    let path = "/api/agents/model-calls/openai/@writer/v1/responses";
    stage
        .server
        .request("PUT", path)
        .bearer(&key)
        .text("{}")
        .send()
        .expect(200);
    assert_eq!(stage.upstream.seen().await.body, "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn managed_credentials_pay_for_the_catalogue_alone() {
    let stage = stage_with(|builder| builder.set("managed_models", "catalogue")).await;
    let key = stage.key();
    for (path, body, said) in [
        (
            "v1/chat/completions",
            r#"{"model": "o3-pro-expensive"}"#,
            "\"o3-pro-expensive\" needs",
        ),
        ("v1/embeddings", "{}", "names no model"),
        ("v1/embeddings", "no JSON", "names no model"),
    ] {
        let call = to(&stage, &key, &format!("openai/@writer/{path}")).text(body);
        let refused = call.refused(403, &[said, "own key for openai"]).await;
        assert_eq!(refused.json()["error"]["type"], "permission_error");
    }
    for (path, body) in [
        ("v1/embeddings", r#"{"model": "text-embedding-3-small"}"#),
        ("chat/completions", r#"{"messages": []}"#),
    ] {
        let call = to(&stage, &key, &format!("openai/@writer/{path}")).text(body);
        call.send().await.whole().await.expect(200);
        let paid = stage.upstream.seen().await;
        assert_eq!(paid.header("authorization"), Some(&*format!("Bearer {MANAGED}")));
    }
    assert!(stage.upstream.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_key_can_be_tested() {
    let (stage, further) = with_providers().await;
    let studio = stage.studio();
    let test = |provider: &str| {
        let path = format!("/api/provider-keys/test?workspace_id={}&provider={provider}", studio.id);
        stage.server.post(path).bearer(&studio.owner).send()
    };
    test("openai").refused(404, &["provider key"]);
    test("acme").refused(404, &["acme", "vllm"]);
    let own = new_key();
    save_key(&studio, "vllm", &own);
    assert_eq!(test("vllm").expect(200).json()["ok"], true);
    let seen = further.seen().await;
    assert_eq!((&seen.method, &*seen.target), (&Method::GET, "/serve/v1/models"));
    assert_eq!(seen.header("api-key"), Some(&*own));
    let no = json!({"error": {"message": format!("no such key: {own}")}}).to_string();
    further.next(whole(401, &[], no));
    let refused = test("vllm").expect(200);
    assert_eq!(
        refused.json(),
        json!({"ok": false, "status": 401, "message": "no such key: [the key]"})
    );
    further.next(Reply::Close);
    let silent = test("vllm").expect(200).json();
    assert_eq!((&silent["ok"], &silent["status"]), (&json!(false), &Value::Null));

    let keys = format!("/api/provider-keys?workspace_id={}", studio.id);
    let fingerprint = |studio: &Studio<'_>| {
        let keys = studio.server.get(&keys).bearer(&studio.owner).send().expect(200);
        keys.json()[0]["fingerprint"].as_str().unwrap().to_owned()
    };
    let first = fingerprint(&studio);
    assert!(
        first.len() == 8 && first.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{first}"
    );
    assert!(!own.contains(&first));
    save_key(&studio, "vllm", &own);
    assert_eq!(fingerprint(&studio), first, "it is the same key");
    save_key(&studio, "vllm", &new_key());
    assert_ne!(fingerprint(&studio), first);
}
