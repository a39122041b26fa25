//! Endpoints: create agent.

use agentcfg_client::model::{AgentType, NewAgent};
use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

#[tokio::test]
async fn a_creation_is_answered_with_201_and_the_record() {
    let studio = Studio::open();
    let created = studio.create("raw", &Value::Null).expect(201).json();
    assert_eq!(created["agent_id"], "raw");
    let agent = studio
        .client()
        .create_agent(&NewAgent::new(studio.id, "typed".parse().unwrap(), "Typed"))
        .await
        .unwrap()
        .value;
    assert_eq!(
        (&*agent.agent_id, &*agent.display_name, agent.workspace_id),
        ("typed", "Typed", studio.id)
    );
}

#[tokio::test]
async fn agent_type_is_ai_by_default() {
    let studio = Studio::open();
    let record = studio.create("writer", &json!({})).expect(201).json();
    assert_eq!(record["agent_type"], AgentType::Ai.as_str());
}

#[test]
fn the_three_required_fields_are_required() {
    let studio = Studio::open();
    for field in ["workspace_id", "agent_id", "display_name"] {
        let mut body = studio.agent("writer", &Value::Null);
        body.as_object_mut().unwrap().remove(field);
        let request = studio
            .server
            .post("/api/agents/configs")
            .bearer(&studio.owner)
            .json(&body);
        request.send().refused(400, &[&format!("{field} is required")]);
    }
    studio.create("writer", &Value::Null).expect(201);
}

#[test]
fn an_agent_id_is_lower_case_letters_digits_hyphens_and_underscores() {
    let studio = Studio::open();
    for (number, good) in ["a", "0", "-", "_", "abc-xyz_019", &"a".repeat(50)]
        .into_iter()
        .enumerate()
    {
        studio
            .create(good, &json!({"display_name": format!("{number}")}))
            .expect(201);
    }
    for bad in ["", "A", "a b", "ä", "a.b", "a/b", "a\n", "a\t", "Ａ", "🦀"] {
        studio.create(bad, &Value::Null).refused(400, &["agent_id"]);
    }
}

#[tokio::test]
async fn a_taken_agent_id_is_409() {
    let studio = Studio::open();
    let client = studio.client();
    let new = NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer");
    client.create_agent(&new).await.unwrap();
    let error = client.create_agent(&new).await.unwrap_err();
    assert!(error.is_conflict() && error.message().contains("writer"), "{error:?}");
    assert!(!error.may_have_been_applied());
    assert_eq!(studio.agent_ids(), ["writer"]);
}

#[tokio::test]
async fn one_agent_more_than_the_plan_allows_is_422() {
    let studio = Studio::on_plan("free");
    let client = studio.client();
    for id in ["a", "b", "c"] {
        client
            .create_agent(&NewAgent::new(studio.id, id.parse().unwrap(), id))
            .await
            .unwrap();
    }
    let error = client
        .create_agent(&NewAgent::new(studio.id, "d".parse().unwrap(), "d"))
        .await
        .unwrap_err();
    assert!(error.is_plan_limit() && error.message().contains('3'), "{error:?}");
    assert_eq!(studio.agent_ids(), ["a", "b", "c"]);
}

#[test]
fn a_fault_of_the_body_is_400_and_named_in_error() {
    let studio = Studio::open();
    for (field, value) in [
        ("agent_id", json!("Not Good")),
        ("display_name", json!("")),
        ("display_name", json!(7)),
        ("role", json!(["author"])),
        ("description", json!(true)),
        ("agent_type", json!("robot")),
        ("model", json!({})),
        ("color", json!("red")),
        ("persona_prompt", json!(1.5)),
        ("capabilities", json!("draft")),
        ("capabilities", json!([1])),
        ("parameters", json!([])),
        ("parameters", json!({"warmth": "high"})),
    ] {
        studio.create("writer", &json!({field: value})).refused(400, &[field]);
    }
    assert_eq!(studio.list().json(), json!([]));
}

#[test]
fn a_colour_is_a_hexadecimal_colour_code() {
    let studio = Studio::open();
    for (number, good) in ["#7c3", "#7C3A", "#7c3aed", "#7C3AEDFF"].into_iter().enumerate() {
        let record = studio
            .create(&format!("good-{number}"), &json!({"color": good}))
            .expect(201)
            .json();
        assert_eq!(record["color"], good);
    }
    for bad in [
        "", "#", "7c3aed", "#7c", "#7c3ae", "#7c3aedf", "#gggggg", "red", " #7c3aed", "#7c3aed ",
    ] {
        studio.create("bad", &json!({"color": bad})).refused(400, &["color"]);
    }
}

#[test]
fn a_creation_without_a_credential_is_401_and_without_a_right_403() {
    let studio = Studio::open();
    let request = studio
        .server
        .post("/api/agents/configs")
        .json(&studio.agent("writer", &Value::Null));
    request.send().expect(401);
    for credential in [studio.key("read").key, studio.member("viewer"), studio.outsider()] {
        request.clone().bearer(credential).send().expect(403);
    }
    assert_eq!(studio.list().json(), json!([]));
}
