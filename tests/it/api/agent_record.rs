//! Resources: the agent config.

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{AgentPatch, AgentType, NewAgent, Precondition};
use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

/// The fields of a record.
const FIELDS: [&str; 15] = [
    "id",
    "workspace_id",
    "agent_id",
    "display_name",
    "role",
    "description",
    "agent_type",
    "model",
    "color",
    "persona_prompt",
    "capabilities",
    "parameters",
    "is_active",
    "created_at",
    "updated_at",
];

fn has_all_fields(record: &Value) {
    let names: Vec<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = FIELDS.to_vec();
    expected.sort_unstable();
    let mut found = names.clone();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn list_create_and_update_return_the_record_with_all_its_fields() {
    let studio = Studio::open();
    has_all_fields(&studio.create("writer", &Value::Null).expect(201).json());
    has_all_fields(&studio.change("writer", &json!({"role": "author"})).expect(200).json());
    has_all_fields(&studio.list().json()[0]);
}

#[test]
fn each_field_has_its_type_and_reads_back_as_it_was_sent() {
    let studio = Studio::open();
    let sent = json!({
        "display_name": "Writer", "role": "author", "description": "writes", "agent_type": "human",
        "model": "gpt-5.5", "color": "#7c3aed", "persona_prompt": "Be brief.",
        "capabilities": ["draft", "edit"], "parameters": {"warmth": 70, "wit": 0.7},
    });
    let record = studio.create("writer", &sent).expect(201).json();
    for (field, value) in sent.as_object().unwrap() {
        assert_eq!(&record[field], value, "{field}");
    }
    let id: uuid::Uuid = record["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(id.to_string(), record["id"].as_str().unwrap());
    assert_eq!(record["workspace_id"], studio.id.to_string());
    assert_eq!(record["is_active"], true);
}

#[test]
fn the_fields_that_are_not_nullable_never_are_null() {
    let studio = Studio::open();
    let record = studio.create("writer", &Value::Null).json();
    for field in [
        "id",
        "workspace_id",
        "agent_id",
        "display_name",
        "agent_type",
        "capabilities",
        "parameters",
        "is_active",
    ] {
        assert!(!record[field].is_null(), "{field}");
    }
    for field in ["display_name", "agent_type", "capabilities", "parameters"] {
        studio
            .change("writer", &json!({field: null}))
            .refused(400, &[field, "null"]);
        studio
            .create("other", &json!({field: null}))
            .refused(400, &[field, "null"]);
    }
}

#[tokio::test]
async fn optional_fields_that_are_left_out_read_back_as_null() {
    let studio = Studio::open();
    let agent = studio
        .client()
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap()
        .value;
    let texts = [
        agent.role,
        agent.description,
        agent.model,
        agent.color,
        agent.persona_prompt,
    ];
    assert_eq!(texts, [const { None }; 5]);
}

#[tokio::test]
async fn a_new_agent_is_active_and_was_updated_when_it_was_created() {
    let studio = Studio::open();
    let agent = studio
        .client()
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap()
        .value;
    assert!(agent.is_active);
    assert_eq!(agent.created_at, agent.updated_at);
}

#[tokio::test]
async fn an_update_changes_updated_at_and_not_created_at() {
    let studio = Studio::open();
    let client = studio.client();
    let before = client
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap()
        .value;
    let patch = AgentPatch::default().role("author");
    let after = client
        .update_agent(Some(studio.id), "writer", &patch, &Precondition::None)
        .await
        .unwrap()
        .value;
    assert!(after.updated_at > before.updated_at);
    assert_eq!(after.created_at, before.created_at);
    assert_eq!(after.id, before.id);
}

#[tokio::test]
async fn an_agent_is_an_ai_or_a_human() {
    let studio = Studio::open();
    let client = studio.client();
    for kind in [AgentType::Ai, AgentType::Human] {
        let new = NewAgent::new(studio.id, kind.as_str().parse().unwrap(), "Agent").agent_type(kind);
        assert_eq!(client.create_agent(&new).await.unwrap().value.agent_type, kind);
    }
    studio
        .create("robot", &json!({"agent_type": "robot"}))
        .refused(400, &["agent_type", "ai", "human"]);
}

#[tokio::test]
async fn an_agent_id_is_unique_in_its_workspace_only() {
    let studio = Studio::open();
    let sibling = studio.sibling();
    let client = studio.client();
    let first = client
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap()
        .value;
    let error = client
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    let second = client
        .create_agent(&NewAgent::new(sibling.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap()
        .value;
    assert_ne!(first.id, second.id);
    let all = AgentFilter::default();
    assert_eq!(client.list_agents(studio.id, &all).await.unwrap().value, [first]);
    assert_eq!(client.list_agents(sibling.id, &all).await.unwrap().value, [second]);
}
