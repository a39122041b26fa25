//! Endpoints: update agent.

use agentcfg_client::model::{AgentPatch, NewAgent, Precondition};
use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

#[tokio::test]
async fn an_update_returns_the_full_record_with_only_the_sent_fields_changed() {
    let studio = Studio::open();
    let client = studio.client();
    let new = NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer")
        .role("author")
        .model("gpt-5.5")
        .capabilities(vec!["draft".into()]);
    let before = client.create_agent(&new).await.unwrap().value;
    let patch = AgentPatch::default().model("opus");
    let after = client
        .update_agent(Some(studio.id), "writer", &patch, &Precondition::None)
        .await
        .unwrap()
        .value;
    let mut expected = before.clone();
    expected.model = Some("opus".into());
    expected.updated_at = after.updated_at;
    assert_eq!(after, expected);
    assert_eq!(client.get_agent(studio.id, "writer").await.unwrap().value, after);
}

#[test]
fn every_field_that_can_be_created_can_be_updated() {
    let studio = Studio::open();
    studio.create("writer", &Value::Null).expect(201);
    for (field, value) in [
        ("display_name", json!("Author")),
        ("role", json!("author")),
        ("description", json!("writes")),
        ("agent_type", json!("human")),
        ("model", json!("gpt-5.5")),
        ("color", json!("#fff")),
        ("persona_prompt", json!("Be brief.")),
        ("capabilities", json!(["draft"])),
        ("parameters", json!({"warmth": 70})),
    ] {
        let record = studio.change("writer", &json!({field: value})).expect(200).json();
        assert_eq!(record[field], value);
    }
}

#[test]
fn the_agent_is_named_by_its_agent_id_and_not_by_its_record_id() {
    let studio = Studio::open();
    let record = studio.create("writer", &Value::Null).json();
    studio.change(record["id"].as_str().unwrap(), &json!({})).expect(404);
    studio.change("writer", &json!({})).expect(200);
}

#[test]
fn an_update_without_agent_id_is_400() {
    let studio = Studio::open();
    for query in ["", "&agent_id="] {
        let target = format!("/api/agents/configs?workspace_id={}{query}", studio.id);
        let request = studio.server.patch(target).bearer(&studio.owner).json(&json!({}));
        request.send().refused(400, &["agent_id", "required"]);
    }
}

#[test]
fn an_update_with_an_invalid_body_is_400_and_changes_nothing() {
    let studio = Studio::open();
    let before = studio.create("writer", &json!({"role": "author"})).json();
    for body in [
        json!({"role": 7}),
        json!({"role": "poet", "color": "red"}),
        json!({"role": "poet", "display_name": ""}),
        json!(["role"]),
        json!("role"),
        json!({"role": "poet", "rule": "x"}),
    ] {
        studio.change("writer", &body).expect(400);
    }
    assert_eq!(studio.list().json(), json!([before]));
}

#[test]
fn workspace_id_and_agent_id_cannot_be_changed() {
    let studio = Studio::open();
    let sibling = studio.sibling();
    let before = studio.create("writer", &Value::Null).json();
    studio
        .change("writer", &json!({"agent_id": "author"}))
        .refused(400, &["agent_id"]);
    studio
        .change("writer", &json!({"workspace_id": sibling.id}))
        .refused(400, &["workspace_id"]);
    assert_eq!(studio.list().json(), json!([before]));
    assert_eq!(sibling.list().json(), json!([]));
}

#[tokio::test]
async fn an_update_of_an_agent_that_is_not_there_is_404() {
    let studio = Studio::open();
    let client = studio.client();
    let patch = AgentPatch::default();
    let error = client
        .update_agent(Some(studio.id), "nobody", &patch, &Precondition::None)
        .await
        .unwrap_err();
    assert!(error.is_not_found() && error.message().contains("nobody"), "{error:?}");
}

#[test]
fn an_update_without_a_credential_is_401_and_without_a_right_403() {
    let studio = Studio::open();
    studio.create("writer", &Value::Null).expect(201);
    let target = format!("/api/agents/configs?workspace_id={}&agent_id=writer", studio.id);
    let request = studio.server.patch(target).json(&json!({"role": "author"}));
    request.send().expect(401);
    for credential in [studio.key("read").key, studio.member("viewer"), studio.outsider()] {
        request.clone().bearer(credential).send().expect(403);
    }
    assert_eq!(studio.list().json()[0]["role"], Value::Null);
}
