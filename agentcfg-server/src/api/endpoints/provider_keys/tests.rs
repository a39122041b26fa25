//! Provider keys and models as a client sees them.

use agentcfg_core::AgentCfg;
use agentcfg_core::clock::{Clock, SystemClock, SystemEntropy};
use agentcfg_core::model::{Plan, Provider};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::session::LocalSessions;
use agentcfg_core::store::MemoryStore;
use agentcfg_core::vault::{MasterKey, Vault};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request};
use serde_json::{Value, json};
use std::collections::BTreeSet;

use crate::api::App;
use crate::http::Cors;

const CANARY: &str = "sk-canary-0123456789-abcdefghij";

struct Api {
    app: App,
    sessions: LocalSessions,
    workspace: String,
}

struct Answer {
    status: u16,
    body: Value,
    headers: HeaderMap,
}

impl Api {
    async fn new(vault: bool) -> Self {
        let sessions = || LocalSessions::new(&[7; 32]).unwrap();
        let mut builder = AgentCfg::builder(MemoryStore::new())
            .settings(
                agentcfg_core::Settings::default()
                    .operators(BTreeSet::from(["olga".to_owned()]))
                    .default_plan(Plan::Pro),
            )
            .unwrap()
            .sessions(sessions())
            .managed_credential(Provider::OPENAI, ProviderCredential::new("sk-managed").unwrap());
        if vault {
            let key = MasterKey::generate(&SystemEntropy).unwrap();
            builder = builder.vault(Vault::new(vec![key]).unwrap());
        }
        let mut api = Self {
            app: App::new(builder.build(), Cors::new(Vec::new())),
            sessions: sessions(),
            workspace: String::new(),
        };
        let made = api
            .session("ada", "POST", "/api/workspaces", &json!({"name": "Studio"}))
            .await;
        api.workspace = made.body["id"].as_str().unwrap().to_owned();
        api
    }

    async fn send(&self, credential: &str, method: &str, path: &str, body: &Value) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {credential}"));
        let mut bytes = Bytes::new();
        if !body.is_null() {
            request = request.header("content-type", "application/json");
            bytes = body.as_str().map_or_else(|| body.to_string(), str::to_owned).into();
        }
        let response = self.app.respond(request.body(Full::new(bytes)).unwrap()).await;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(!text.contains("canary"), "{text}");
        assert!(!format!("{:?}", head.headers).contains("canary"));
        Answer {
            status: head.status.as_u16(),
            body: serde_json::from_str(&text).unwrap_or_default(),
            headers: head.headers,
        }
    }

    async fn session(&self, user: &str, method: &str, path: &str, body: &Value) -> Answer {
        let token = self.sessions.issue(user, 600, SystemClock.now()).unwrap();
        self.send(&token, method, path, body).await
    }

    /// The path of the provider keys of the workspace.
    fn keys(&self, more: &str) -> String {
        format!("/api/provider-keys?workspace_id={}{more}", self.workspace)
    }

    async fn save(&self, user: &str, provider: &str, body: &Value) -> Answer {
        self.session(user, "PUT", &self.keys(&format!("&provider={provider}")), body)
            .await
    }

    async fn plan(&self, plan: &str) {
        let path = format!("/api/workspaces?workspace_id={}", self.workspace);
        let answer = self.session("olga", "PATCH", &path, &json!({"plan": plan})).await;
        assert_eq!(answer.status, 200);
    }

    async fn credential(&self, provider: &str) -> String {
        let path = format!("/api/models?workspace_id={}", self.workspace);
        let answer = self.session("ada", "GET", &path, &Value::Null).await;
        assert_eq!(answer.status, 200);
        let models = answer.body.as_array().unwrap();
        let one = models.iter().find(|model| model["provider"] == provider).unwrap();
        one["credential"].as_str().unwrap().to_owned()
    }
}

fn body() -> Value {
    json!({"api_key": CANARY})
}

#[tokio::test]
async fn a_key_is_saved_listed_replaced_and_deleted_and_never_shown() {
    let api = Api::new(true).await;
    let saved = api.save("ada", "anthropic", &body()).await;
    assert_eq!(saved.status, 200);
    let mut fields: Vec<&String> = saved.body.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["created_at", "fingerprint", "provider", "updated_at"]);
    assert_eq!(saved.body["created_at"], saved.body["updated_at"]);
    let again = api.save("ada", "anthropic", &body()).await;
    assert_eq!(again.body["created_at"], saved.body["created_at"]);
    let listed = api.session("ada", "GET", &api.keys(""), &Value::Null).await;
    assert_eq!((listed.status, &listed.body), (200, &json!([again.body])));

    let path = api.keys("&provider=anthropic");
    let deleted = api.session("ada", "DELETE", &path, &Value::Null).await;
    assert_eq!((deleted.status, deleted.body), (200, json!({"success": true})));
    assert_eq!(api.session("ada", "DELETE", &path, &Value::Null).await.status, 404);

    let path = format!("/api/audit-log?workspace_id={}&limit=3", api.workspace);
    let log = api.session("ada", "GET", &path, &Value::Null).await.body;
    let actions: Vec<&Value> = log.as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(
        actions,
        ["provider_key.deleted", "provider_key.saved", "provider_key.saved"]
    );
    assert_eq!(log[0]["target"], json!({"type": "provider_key", "id": "anthropic"}));
}

#[tokio::test]
async fn models_show_the_catalogue_and_the_credential_in_use() {
    let api = Api::new(true).await;
    let path = format!("/api/models?workspace_id={}", api.workspace);
    let models = api.session("ada", "GET", &path, &Value::Null).await.body;
    assert_eq!(models.as_array().unwrap().len(), 7);
    assert_eq!(
        models[0],
        json!({"id": "claude-opus-5-5", "provider": "anthropic", "provider_name": "Anthropic",
               "provider_api": "anthropic", "display_name": "Claude Opus 5.5",
               "status": "available", "credential": "none", "input_price": 4, "cached_input_price": 0.2,
               "cache_write_price": 5, "output_price": 20, "max_output_tokens": 128_000})
    );
    assert_eq!(models[6]["status"], "coming_soon");
    assert_eq!(models[6]["input_price"], Value::Null);
    assert_eq!(api.credential("openai").await, "managed");
    assert_eq!(api.save("ada", "openai", &body()).await.status, 200);
    assert_eq!(api.credential("openai").await, "workspace");
    api.plan("free").await;
    assert_eq!(api.credential("openai").await, "managed");
    api.plan("team").await;
    assert_eq!(api.credential("openai").await, "workspace");
    let none = api.session("ada", "GET", "/api/models", &Value::Null).await;
    assert_eq!(none.status, 400);
    assert_eq!(api.session("eve", "GET", &path, &Value::Null).await.status, 403);
}

#[tokio::test]
async fn the_error_on_the_free_plan_names_the_plans_that_allow_it() {
    let api = Api::new(true).await;
    api.save("ada", "openai", &body()).await;
    api.plan("free").await;
    let refused = api.save("ada", "openai", &body()).await;
    assert_eq!(refused.status, 403);
    for plan in ["pro", "team", "enterprise"] {
        assert!(
            refused.body["error"].as_str().unwrap().contains(plan),
            "{}",
            refused.body
        );
    }
    let path = api.keys("&provider=openai");
    assert_eq!(api.session("ada", "DELETE", &path, &Value::Null).await.status, 200);
}

#[tokio::test]
async fn without_a_master_key_saving_is_503_and_trying_again_is_not_suggested() {
    let api = Api::new(false).await;
    let refused = api.save("ada", "openai", &body()).await;
    assert_eq!(refused.status, 503);
    assert!(!refused.headers.contains_key("retry-after"));
    assert_eq!(
        api.session("ada", "GET", &api.keys(""), &Value::Null).await.body,
        json!([])
    );
    let path = api.keys("&provider=openai");
    assert_eq!(api.session("ada", "DELETE", &path, &Value::Null).await.status, 404);
}

#[tokio::test]
async fn faults_come_in_the_order_of_the_checks() {
    let api = Api::new(true).await;
    for (text, words) in [
        (json!({}), "api_key is required"),
        (json!({"api_key": null}), "must not be null"),
        (json!({"api_key": ""}), "1 to 500 characters, got 0"),
        (json!({"api_key": "x".repeat(501)}), "got 501"),
        (json!({"api_key": "sk canary"}), "visible ASCII"),
        (json!({"api_key": "sk-canary\u{e9}"}), "visible ASCII"),
        (json!({"api_key": "sk-canary\u{0}"}), "visible ASCII"),
        (json!({"api_key": 1}), "must be a string"),
        (json!({"api_key": CANARY, "model": "x"}), "model is not a known field"),
        (
            json!({"api_key": CANARY, "provider": "openai"}),
            "provider is read-only",
        ),
        (json!("{\"api_key\":\"a\",\"api_key\":\"b\"}"), "more than once"),
        (json!("{\"api_key\":\"sk-canary"), "valid JSON"),
    ] {
        // The body comes before the provider's existence, and before the membership.
        for (user, provider) in [("ada", "openai"), ("ada", "acme"), ("eve", "acme")] {
            let answer = api.save(user, provider, &text).await;
            assert_eq!(answer.status, 400, "{text}");
            assert!(
                answer.body["error"].as_str().unwrap().contains(words),
                "{}",
                answer.body
            );
        }
    }
    assert_eq!(
        api.save("ada", "openai", &json!({"api_key": "x".repeat(500)}))
            .await
            .status,
        200
    );

    let unknown = api.save("ada", "acme", &body()).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(
        unknown.body["error"],
        "provider \"acme\" not found, there are anthropic, openai"
    );
    assert_eq!(api.save("ada", "OpenAI", &body()).await.status, 404);
    assert_eq!(
        api.save("eve", "acme", &body()).await.status,
        403,
        "a stranger learns nothing"
    );
    let path = api.keys("&provider=acme");
    assert_eq!(api.session("ada", "DELETE", &path, &Value::Null).await.status, 404);
    assert_eq!(api.session("eve", "DELETE", &path, &Value::Null).await.status, 403);

    assert_eq!(api.session("ada", "PUT", &api.keys(""), &body()).await.status, 400);
    assert_eq!(
        api.session("ada", "PUT", "/api/provider-keys?provider=openai", &body())
            .await
            .status,
        400
    );
    assert_eq!(
        api.session("ada", "GET", "/api/provider-keys", &Value::Null)
            .await
            .status,
        400
    );
    assert_eq!(api.session("ada", "POST", &api.keys(""), &body()).await.status, 405);
    assert_eq!(api.save("ada", "openai", &Value::Null).await.status, 415);
}

#[tokio::test]
async fn api_keys_may_look_and_not_touch() {
    let api = Api::new(true).await;
    let key = async |scope: &str| {
        let new = json!({"workspace_id": api.workspace, "name": "ci", "environment": "development", "scope": scope});
        let made = api.session("ada", "POST", "/api/api-keys", &new).await;
        made.body["key"].as_str().unwrap().to_owned()
    };
    for (scope, lists) in [("read", 403), ("write", 403), ("admin", 200)] {
        let key = key(scope).await;
        assert_eq!(
            api.send(&key, "GET", &api.keys(""), &Value::Null).await.status,
            lists,
            "{scope}"
        );
        let models = format!("/api/models?workspace_id={}", api.workspace);
        assert_eq!(api.send(&key, "GET", &models, &Value::Null).await.status, 200);
        for (method, body) in [("PUT", body()), ("DELETE", Value::Null)] {
            let path = api.keys("&provider=openai");
            assert_eq!(api.send(&key, method, &path, &body).await.status, 403);
        }
    }
}
