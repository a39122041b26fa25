//! Updating, deleting and restoring agents.

use agentcfg_client::model::AgentPatch;
use agentcfg_client::model::{NewAgent, Patch, Precondition};
use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

#[test]
fn record_ids_are_uuids_of_version_seven() {
    let studio = Studio::open();
    let ids: Vec<uuid::Uuid> = (0..20)
        .map(|number| {
            studio.create(&format!("a{number}"), &Value::Null).json()["id"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    assert!(ids.iter().all(|id| id.get_version_num() == 7));
    assert!(ids.is_sorted(), "ids increase with time");
}

#[test]
fn a_patch_replaces_each_field_completely() {
    let studio = Studio::open();
    studio
        .create(
            "a",
            &json!({"capabilities": ["x", "y"], "parameters": {"x": 1, "y": 2}}),
        )
        .expect(201);
    let record = studio
        .change("a", &json!({"capabilities": ["z"], "parameters": {"z": 3}}))
        .expect(200)
        .json();
    assert_eq!(
        (&record["capabilities"], &record["parameters"]),
        (&json!(["z"]), &json!({"z": 3}))
    );
}

#[tokio::test]
async fn null_in_a_patch_clears_a_field() {
    let studio = Studio::open();
    let client = studio.client();
    let new = NewAgent::new(studio.id, "a".parse().unwrap(), "A")
        .role("author")
        .model("m");
    client.create_agent(&new).await.unwrap();
    let patch = AgentPatch::default().role(Patch::Null);
    let agent = client
        .update_agent(Some(studio.id), "a", &patch, &Precondition::None)
        .await
        .unwrap()
        .value;
    assert_eq!((agent.role, agent.model), (None, Some("m".into())));
}

#[test]
fn every_patch_even_an_empty_one_increases_updated_at() {
    let studio = Studio::open();
    let mut times = vec![
        studio.create("a", &Value::Null).json()["updated_at"]
            .as_str()
            .unwrap()
            .to_owned(),
    ];
    for _ in 0..30 {
        times.push(
            studio.change("a", &json!({})).expect(200).json()["updated_at"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}

#[test]
fn the_identity_may_be_repeated_in_a_patch() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    let same = json!({"agent_id": "a", "workspace_id": studio.id.to_string().to_uppercase(), "role": "x"});
    assert_eq!(studio.change("a", &same).expect(200).json()["role"], "x");
    studio.change("a", &json!({"agent_id": null})).expect(400);
}

#[test]
fn a_deleted_agent_keeps_its_identifier_and_the_conflict_names_the_remedy() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    studio.remove("a").expect(200);
    studio
        .create("a", &Value::Null)
        .refused(409, &["deactivated", "restored"]);
    studio.change("a", &json!({})).expect(404);
    studio.remove("a").expect(404);
}

#[test]
fn a_restored_agent_has_its_former_fields_and_is_active() {
    let studio = Studio::open();
    let mut before = studio
        .create("a", &json!({"role": "author", "parameters": {"x": 0.5}}))
        .json();
    studio.create("b", &Value::Null).expect(201);
    studio.remove("a").expect(200);
    let mut after = studio.restore("a").expect(200).json();
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    before.as_object_mut().unwrap().remove("updated_at");
    after.as_object_mut().unwrap().remove("updated_at");
    assert_eq!(after, before);
    assert_eq!(studio.agent_ids(), ["a", "b"], "it keeps its position in the list");
}

#[test]
fn restoring_an_unknown_agent_is_404_and_an_active_one_409() {
    let studio = Studio::open();
    studio.restore("nobody").expect(404);
    studio.restore("Not%20An%20Id").expect(404);
    studio.create("a", &Value::Null).expect(201);
    studio.restore("a").expect(409);
    let target = format!("/api/agents/configs/restore?workspace_id={}", studio.id);
    studio
        .server
        .post(target)
        .bearer(&studio.owner)
        .send()
        .refused(400, &["agent_id"]);
}

#[test]
fn restoring_needs_a_free_slot_of_the_plan() {
    let studio = Studio::on_plan("free");
    for id in ["a", "b", "c"] {
        studio.create(id, &Value::Null).expect(201);
    }
    studio.remove("a").expect(200);
    studio.create("d", &Value::Null).expect(201);
    studio.restore("a").refused(422, &["free", "3"]);
    studio.remove("b").expect(200);
    studio.restore("a").expect(200);
}

#[test]
fn a_smaller_plan_deletes_no_agent_and_a_larger_plan_adds_slots() {
    let studio = Studio::on_plan("pro");
    for number in 0..5 {
        studio.create(&format!("a{number}"), &Value::Null).expect(201);
    }
    studio.set_plan("free");
    assert_eq!(studio.agent_ids().len(), 5);
    studio.create("more", &Value::Null).expect(422);
    studio.change("a0", &json!({"role": "still"})).expect(200);
    for number in 0..3 {
        studio.remove(&format!("a{number}")).expect(200);
    }
    studio.create("more", &Value::Null).expect(201);
    studio.restore("a0").expect(422);
    studio.set_plan("pro");
    studio.restore("a0").expect(200);
}

#[test]
fn an_agent_id_that_could_never_exist_is_404() {
    let studio = Studio::open();
    for id in ["UPPER", "a%20b", "%00", "%C3%A9", &"a".repeat(51), "..%2f.."] {
        studio.change(id, &json!({})).expect(404);
        studio.remove(id).expect(404);
        studio.restore(id).expect(404);
    }
}
