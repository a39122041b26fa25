//! Calls through the app as an embedding service mounts it, without a listener.

use agentcfg_core::AgentCfg;
use agentcfg_core::model::{NewAgent, NewWorkspace, Plan, Provider, WorkspacePatch};
use agentcfg_core::routing::Catalogue;
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::session::LocalSessions;
use agentcfg_core::store::MemoryStore;
use agentcfg_core::vault::Vault;
use http_body_util::BodyExt;
use std::collections::BTreeSet;

use super::*;
use crate::api::App;
use crate::http::Cors;
use crate::outbound::stub::{Stub, answer};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const TIMEOUTS: CallTimeouts = CallTimeouts {
    first_byte: Duration::from_secs(10),
    idle: Duration::from_secs(10),
};

fn vault(byte: u8) -> Vault {
    let key: String = format!("{byte:02x}").repeat(32);
    Vault::new(vec![key.parse().unwrap()]).unwrap()
}

async fn status_and_text(response: Response<crate::http::Body>) -> (u16, String) {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

fn session(user: &str) -> String {
    let now = agentcfg_core::clock::Clock::now(&agentcfg_core::clock::SystemClock);
    LocalSessions::new(SECRET).unwrap().issue(user, 60, now).unwrap()
}

/// A body that does not arrive, and whose reading is a fault.
struct Unread;

impl hyper::body::Body for Unread {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        panic!("the body was read")
    }
}

#[test]
fn the_version_is_in_the_base_url_or_in_the_path() {
    use ProviderApi::{Anthropic, OpenAi};
    for (api, base_url, path, expected) in [
        (
            OpenAi,
            "https://api.openai.com",
            "v1/models",
            "https://api.openai.com/v1/models",
        ),
        (
            OpenAi,
            "https://v1.example.com",
            "v1/models",
            "https://v1.example.com/v1/models",
        ),
        (
            OpenAi,
            "https://openrouter.ai/api",
            "v1/models",
            "https://openrouter.ai/api/v1/models",
        ),
        (
            OpenAi,
            "http://10.0.0.7:8000/v1",
            "v1/models",
            "http://10.0.0.7:8000/v1/models",
        ),
        (
            OpenAi,
            "http://10.0.0.7:8000/v1",
            "models",
            "http://10.0.0.7:8000/v1/models",
        ),
        (
            OpenAi,
            "https://g.example/v1beta/openai",
            "v1/models",
            "https://g.example/v1beta/openai/models",
        ),
        (
            OpenAi,
            "https://g.example/v1/a/openai",
            "v1/models",
            "https://g.example/v1/a/openai/models",
        ),
        (
            Anthropic,
            "https://g.example/v1/a/anthropic",
            "v1/messages",
            "https://g.example/v1/a/anthropic/v1/messages",
        ),
        (
            Anthropic,
            "https://g.example/v1",
            "v1/messages",
            "https://g.example/v1/messages",
        ),
    ] {
        assert_eq!(
            address(api, base_url, path, None).unwrap(),
            expected,
            "{base_url} {path}"
        );
    }
}

#[test]
fn another_provider_gets_the_version_that_its_base_url_lacks() {
    use ProviderApi::{Anthropic, OpenAi};
    for (api, base_url, path, expected) in [
        (
            OpenAi,
            "https://api.openai.com",
            "chat/completions",
            "v1/chat/completions",
        ),
        (
            OpenAi,
            "https://api.openai.com",
            "v1/chat/completions",
            "v1/chat/completions",
        ),
        (
            OpenAi,
            "http://10.0.0.7:8000/v1",
            "chat/completions",
            "chat/completions",
        ),
        (
            OpenAi,
            "https://g.example/v1beta/openai",
            "chat/completions",
            "chat/completions",
        ),
        (Anthropic, "https://api.anthropic.com", "messages", "v1/messages"),
        (Anthropic, "https://g.example/v1", "messages", "messages"),
    ] {
        assert_eq!(at_another(api, base_url, path), expected, "{base_url} {path}");
    }
}

#[tokio::test]
async fn membership_comes_before_the_body() {
    let service = AgentCfg::builder(MemoryStore::new())
        .sessions(LocalSessions::new(SECRET).unwrap())
        .build();
    let ada = service.trusted_user("ada").unwrap();
    let name = "S".to_owned();
    let studio = service.create_workspace(&ada, NewWorkspace::new(name)).await.unwrap();
    let app = App::new(service, Cors::default());
    let call = |user: &str, query: &str, fields: &[(&str, &str)]| {
        let path = "/api/agents/model-calls/openai/v1/responses";
        let mut request = Request::post(format!("{path}?agent_id=writer{query}"))
            .header("authorization", format!("Bearer {}", session(user)));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(Unread).unwrap()
    };
    let workspace = format!("&workspace_id={}", studio.id);
    for (user, query, fields, status) in [
        ("eve", &*workspace, &[("content-type", "application/json")][..], 403),
        ("eve", &workspace, &[("content-type", "text/plain")], 403),
        ("eve", &workspace, &[("content-encoding", "gzip")], 403),
        ("eve", "", &[("content-type", "text/plain")], 400),
        ("eve", "&workspace_id=x", &[], 400),
        // A member's body is judged.
        ("ada", &workspace, &[("content-type", "text/plain")], 415),
        ("ada", &workspace, &[("content-encoding", "gzip")], 415),
    ] {
        let (got, text) = status_and_text(app.respond(call(user, query, fields)).await).await;
        assert_eq!(got, status, "{user} {query} {fields:?}: {text}");
    }
}

#[tokio::test]
async fn a_key_that_does_not_open_is_reported_without_a_fall_back() {
    let stub = Stub::new(|_| answer(200, "{}")).await;
    let catalogue = Catalogue::default()
        .with_base_url(Provider::OPENAI, &stub.url(""))
        .unwrap();
    let service = AgentCfg::builder(MemoryStore::new())
        .settings(agentcfg_core::Settings::default().operators(BTreeSet::from(["ada".to_owned()])))
        .unwrap()
        .sessions(LocalSessions::new(SECRET).unwrap())
        .catalogue(catalogue)
        .managed_credential(Provider::OPENAI, ProviderCredential::new("sk-managed").unwrap())
        .vault(vault(1))
        .build();
    let ada = service.trusted_user("ada").unwrap();
    let studio = service.create_workspace(&ada, NewWorkspace::new("S")).await.unwrap();
    let patch = WorkspacePatch::default().plan(Plan::Pro);
    service.update_workspace(&ada, studio.id, patch).await.unwrap();
    service
        .create_agent(&ada, NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap();
    let own = ProviderCredential::new("sk-own").unwrap();
    service
        .save_provider_key(&ada, studio.id, Provider::OPENAI, &own)
        .await
        .unwrap();

    let token = session("ada");
    let request = || {
        Request::post("/api/agents/model-calls/openai/v1/responses?agent_id=writer")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from_static(b"{}")))
            .unwrap()
    };
    let without = App::new(service.clone(), Cors::default());
    let (status, text) = status_and_text(without.respond(request()).await).await;
    assert_eq!(status, 503, "{text}");

    let app = without.with_model_calls(ModelCalls::new(TIMEOUTS).unwrap());
    assert_eq!(
        status_and_text(app.respond(request()).await).await,
        (200, "{}".to_owned())
    );
    assert_eq!(stub.seen()[0].header("authorization"), Some("Bearer sk-own"));

    service.set_vault(vault(2));
    let (status, text) = status_and_text(app.respond(request()).await).await;
    assert_eq!(status, 500, "{text}");
    assert!(text.contains("cannot be decrypted"), "{text}");
    assert_eq!(stub.seen().len(), 1);
}
