//! API keys: attributes, text, rotation and revocation.

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{Environment, NewApiKey, Scope};
use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_tests::harness::{Studio, eventually};
use serde_json::{Value, json};

fn new(studio: &Studio<'_>, environment: Environment) -> NewApiKey {
    NewApiKey::new(studio.id, "pipeline", environment, Scope::Read)
}

#[tokio::test]
async fn the_prefix_of_a_key_is_its_environment() {
    let studio = Studio::open();
    let client = studio.client();
    for (environment, prefix) in [
        (Environment::Production, "svc_live_"),
        (Environment::Development, "svc_test_"),
    ] {
        let created = client.create_api_key(&new(&studio, environment)).await.unwrap();
        assert!(
            created.key.starts_with(prefix) && created.key.len() > prefix.len() + 40,
            "{}",
            created.record.id
        );
        assert_eq!(created.record.environment, environment);
    }
}

#[test]
fn name_environment_and_scope_are_required_and_the_rest_is_not() {
    let studio = Studio::open();
    let whole = json!({"workspace_id": studio.id, "name": "x", "environment": "production", "scope": "read"});
    let request = studio.server.post("/api/api-keys").bearer(&studio.owner);
    for field in ["workspace_id", "name", "environment", "scope"] {
        let mut body = whole.clone();
        body.as_object_mut().unwrap().remove(field);
        request
            .clone()
            .json(&body)
            .send()
            .refused(400, &[&format!("{field} is required")]);
    }
    let created = request.json(&whole).send().expect(201).json();
    assert_eq!(
        (&created["expires_at"], &created["rate_limit"]),
        (&Value::Null, &json!(100))
    );
    studio
        .create_key(&json!({"environment": "staging"}))
        .refused(400, &["environment"]);
    studio.create_key(&json!({"scope": "root"})).refused(400, &["scope"]);
}

#[test]
fn only_the_response_to_the_creation_contains_the_plaintext() {
    let studio = Studio::open();
    let key = studio.key("admin");
    let secret = key.key.trim_start_matches("svc_test_").trim_start_matches(&key.id);
    let all = [
        format!("/api/api-keys?workspace_id={}", studio.id),
        format!("/api/audit-log?workspace_id={}", studio.id),
        "/api/workspaces".to_owned(),
    ];
    for target in all {
        for credential in [&studio.owner, &key.key] {
            let answer = studio.server.get(&target).bearer(credential).send().expect(200);
            let text = format!("{answer:?}");
            assert!(!text.contains(secret), "{target}");
        }
    }
    let list = studio
        .server
        .get(format!("/api/api-keys?workspace_id={}", studio.id))
        .bearer(&studio.owner)
        .send();
    assert!(list.json()[0].get("key").is_none() && list.json()[0].get("hash").is_none());
}

#[test]
fn a_revoked_key_is_refused_from_the_next_request_on() {
    let studio = Studio::open();
    let key = studio.key("read");
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    studio.server.get(&target).bearer(&key.key).send().expect(200);
    studio.revoke(&key);
    studio.server.get(&target).bearer(&key.key).send().expect(401);
}

#[test]
fn an_expired_key_is_refused() {
    let studio = Studio::open();
    let ends = SystemClock.now().plus_millis(1000);
    let key = studio.key_with(&json!({"expires_at": ends.to_string()}));
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    eventually("the key expires", || {
        let answer = studio.server.get(&target).bearer(&key.key).send();
        assert!(matches!(answer.status, 200 | 401), "{answer:?}");
        answer.status == 401
    });
    // The clock of a database is followed to a millisecond.
    let now = SystemClock.now().plus_millis(2);
    assert!(now >= ends, "refused before its expiry: {now}");
}

#[tokio::test]
async fn a_key_is_rotated_by_making_a_new_one_and_revoking_the_old() {
    let studio = Studio::open();
    let owner = studio.client();
    let old = owner
        .create_api_key(&new(&studio, Environment::Production))
        .await
        .unwrap();
    let integration = studio.server.client(&old.key);
    let everything = AgentFilter::default();
    integration.list_agents(studio.id, &everything).await.unwrap();
    let fresh = owner
        .create_api_key(&new(&studio, Environment::Production))
        .await
        .unwrap();
    let renewed = integration.with_api_key(&fresh.key).unwrap();
    renewed.list_agents(studio.id, &everything).await.unwrap();
    owner.revoke_api_key(&old.record.id).await.unwrap();
    renewed.list_agents(studio.id, &everything).await.unwrap();
    let error = integration.list_agents(studio.id, &everything).await.unwrap_err();
    assert!(error.is_unauthorized(), "{error:?}");
}

#[test]
fn a_key_belongs_to_one_workspace() {
    let studio = Studio::open();
    let sibling = studio.sibling();
    let key = studio.key("admin").key;
    for method in ["GET", "HEAD"] {
        let target = format!("/api/agents/configs?workspace_id={}", sibling.id);
        studio.server.request(method, target).bearer(&key).send().expect(403);
    }
    let body = sibling.agent("writer", &Value::Null);
    studio
        .server
        .post("/api/agents/configs")
        .bearer(&key)
        .json(&body)
        .send()
        .expect(403);
}
